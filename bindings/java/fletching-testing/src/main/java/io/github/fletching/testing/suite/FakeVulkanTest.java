// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static io.github.fletching.testing.suite.Releases.assertFails;
import static org.junit.jupiter.api.Assertions.assertEquals;

import com.sun.jna.Pointer;
import io.github.fletching.DeviceArray;
import io.github.fletching.VulkanContext;
import io.github.fletching.abi.DeviceType;
import io.github.fletching.testing.CountingEngine;
import io.github.fletching.testing.FakeLibraryEngine;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The arguments and results of a fake libfletching. The conformance suite covers real events. */
@OnLibraryCopy
@Timeout(120)
class FakeVulkanTest {
  private static final int ENOMEM = 12;
  private static final int ESRCH = 3;
  private static final long BUFFER = 0x1_0000_0007L;
  private static final int TEXT_SIZE = 1024;

  private String call = "";
  private int code;
  private int ready;
  private String message = "";

  private long call(String function, long struct, long context, long text) {
    Pointer fields = new Pointer(context);
    StringBuilder all = new StringBuilder(function + " " + Long.toHexString(struct) + ":");
    for (int offset : new int[] {0, 8, 16, 32}) {
      all.append(" ").append(Long.toHexString(fields.getLong(offset)));
    }
    call = all + " " + Integer.toHexString(fields.getInt(24));
    new Pointer(text).setString(0, message);
    return code;
  }

  private void installFake() {
    FakeLibraryEngine.libraries(Map.of("libfletching.so", true));
    FakeLibraryEngine.replace(
        "FletchingDeviceArraySynchronizeVulkan",
        (struct, context, text, d, e) -> call("synchronize", struct, context, text));
    FakeLibraryEngine.replace(
        "FletchingDeviceArrayReadyVulkan",
        (struct, context, out, text, e) -> {
          new Pointer(out).setInt(0, ready);
          return call("ready", struct, context, text);
        });
    FakeLibraryEngine.replace(
        "FletchingDeviceArrayWaitOnVulkan",
        (struct, context, buffer, text, e) ->
            call("wait " + Long.toHexString(buffer), struct, context, text));
  }

  @Test
  void operationsPassContextAndReturnErrors() {
    installFake();
    VulkanContext context =
        VulkanContext.of(0x1_0000_000dL, 0x1_0000_000aL)
            .onQueue(0x1_0000_000bL, 0x1_0000_000cL, 0x8000_0001);
    try (DeviceArray array = new Releases().array(DeviceType.VULKAN, 0, 0x1234)) {
      Map<String, Runnable> operations =
          Map.of(
              "synchronize", () -> array.synchronize(context),
              "ready", () -> assertEquals(ready != 0, array.isReady(context)),
              "wait 100000007", () -> array.waitOn(context, BUFFER));
      String arguments =
          " " + Long.toHexString(array.address()) + ": 10000000d 10000000b 10000000c 10000000a";
      operations.get("synchronize").run(); // loads the library
      int live = CountingEngine.live();
      operations.forEach(
          (function, operation) -> {
            code = 0;
            for (int answer : new int[] {0, 1}) {
              ready = answer;
              operation.run();
              assertEquals(function + arguments + " 80000001", call);
            }
            code = ESRCH;
            for (String text : List.of("device lost", "x".repeat(TEXT_SIZE - 1))) {
              message = text;
              assertFails(ESRCH, operation::run, ": " + text);
            }
            // The context, the result and the text share one allocation.
            CountingEngine.refuse(6 * 8 + TEXT_SIZE);
            assertFails(ENOMEM, operation::run, ": no memory");
            CountingEngine.refuse(-1);
          });
      assertEquals(live, CountingEngine.live());
    }
  }
}
