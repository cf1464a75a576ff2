// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static io.github.fletching.testing.suite.Releases.assertFails;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.jna.Pointer;
import io.github.fletching.DeviceArray;
import io.github.fletching.FletchingException;
import io.github.fletching.VulkanContext;
import io.github.fletching.abi.DeviceType;
import io.github.fletching.testing.Counting;
import io.github.fletching.testing.Pretending;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What libfletching is called with, on one that is written in Java. */
@Timeout(120)
class PretendedVulkanTest {
  private static final int EINVAL = 22;
  private static final int ENOMEM = 12;
  private static final int ESRCH = 3;
  private static final long BUFFER = 0x1_0000_0007L;
  private static final long TEXT_SIZE = 1024;

  private final List<String> calls = new ArrayList<>();
  private int code;
  private boolean ready;
  private String message = "";

  /** Succeeds, or writes the message. */
  private long call(String function, long struct, long context, long out, long text) {
    Pointer fields = new Pointer(context);
    calls.add(
        String.format(
            "%s %x: %x %x %x %x %x",
            function,
            struct,
            fields.getLong(0),
            fields.getLong(8),
            fields.getLong(16),
            fields.getInt(24),
            fields.getLong(32)));
    if (function.equals("Ready")) {
      new Pointer(out).setInt(0, ready ? 1 : 0);
    }
    new Pointer(text).setString(0, message);
    return code;
  }

  private void pretend() {
    Pretending.libraries(Map.of("libfletching.so", true));
    Pretending.replace(
        "FletchingDeviceArraySynchronizeVulkan",
        (struct, context, text, d, e) -> call("Synchronize", struct, context, 0, text));
    Pretending.replace(
        "FletchingDeviceArrayReadyVulkan",
        (struct, context, out, text, e) -> call("Ready", struct, context, out, text));
    Pretending.replace(
        "FletchingDeviceArrayWaitOnVulkan",
        (struct, context, buffer, text, e) -> {
          assertEquals(BUFFER, buffer);
          return call("WaitOn", struct, context, 0, text);
        });
  }

  private List<String> take() {
    List<String> taken = List.copyOf(calls);
    calls.clear();
    return taken;
  }

  @Test
  void libfletchingGetsTheContext() {
    Copy.run(this, "callLibfletching");
  }

  void callLibfletching() {
    pretend();
    long[] handles = {0x1_0000_000dL, 0x1_0000_000bL, 0x1_0000_000cL, 0x1_0000_000aL};
    VulkanContext context =
        VulkanContext.of(handles[0], handles[3]).onQueue(handles[1], handles[2], 0x8000_0001);
    try (DeviceArray array = new Releases().array(DeviceType.VULKAN, 0, 0x1234)) {
      String where = Long.toHexString(array.address());
      int live = Counting.live();
      String all = ": 10000000d 10000000b 10000000c 80000001 10000000a";
      array.synchronize(context);
      array.waitOn(context, BUFFER);
      assertFalse(array.isReady(context));
      ready = true;
      assertTrue(array.isReady(context));
      assertEquals(
          List.of(
              "Synchronize " + where + all,
              "WaitOn " + where + all,
              "Ready " + where + all,
              "Ready " + where + all),
          take());
      array.synchronize(VulkanContext.of(handles[0], 0));
      assertEquals(List.of("Synchronize " + where + ": 10000000d 0 0 0 0"), take());
      assertFails(EINVAL, () -> array.waitOn(context, 0), "wait_on: command buffer is NULL");
      assertEquals(List.of(), take());
      assertEquals(live, Counting.live());
    }
  }

  @Test
  void theErrorOfLibfletchingHasItsText() {
    Copy.run(this, "failInLibfletching");
  }

  void failInLibfletching() {
    pretend();
    VulkanContext context = VulkanContext.of(1, 0);
    try (DeviceArray array = new Releases().array(DeviceType.VULKAN, 0, 0x1234)) {
      array.synchronize(context);
      int live = Counting.live();
      code = ESRCH;
      List<Runnable> operations =
          List.of(
              () -> array.synchronize(context),
              () -> array.isReady(context),
              () -> array.waitOn(context, BUFFER));
      for (String text : List.of("device lost", "x".repeat((int) TEXT_SIZE - 1))) {
        message = text;
        for (Runnable operation : operations) {
          FletchingException error = Releases.errorOf(operation);
          assertEquals(text, error.getMessage());
          assertEquals(ESRCH, error.errno());
        }
      }
      // The context, the answer and the text are one allocation.
      Counting.refuse(6 * 8 + TEXT_SIZE);
      for (Runnable operation : operations) {
        assertFails(ENOMEM, operation::run, "Vulkan: no memory");
      }
      Counting.refuse(-1);
      assertEquals(live, Counting.live());
    }
  }

  @Test
  void withoutAnEventNothingIsLoaded() {
    Copy.run(this, "callNothing");
  }

  void callNothing() {
    pretend();
    VulkanContext context = VulkanContext.of(1, 0);
    try (DeviceArray array = new Releases().array(DeviceType.VULKAN)) {
      array.synchronize(context);
      array.waitOn(context, 0);
      assertTrue(array.isReady(context));
      assertEquals(List.of(), Pretending.opened());
    }
    try (DeviceArray array = new Releases().array(DeviceType.METAL, 0, 0x1234)) {
      String text = "VulkanContext: expected an event of Vulkan, got one of metal";
      assertFails(EINVAL, () -> array.synchronize(context), text);
      assertFails(EINVAL, () -> array.waitOn(context, BUFFER), text);
      assertFails(EINVAL, () -> array.isReady(context), text);
    }
    assertEquals(List.of(), Pretending.opened());
  }
}
