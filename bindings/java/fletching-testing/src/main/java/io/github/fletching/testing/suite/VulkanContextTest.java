// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static io.github.fletching.abi.Errno.EIO;
import static io.github.fletching.abi.Errno.ENOMEM;
import static io.github.fletching.abi.Errno.ENOTSUP;
import static io.github.fletching.testing.suite.Releases.assertError;
import static io.github.fletching.testing.suite.Releases.assertFails;
import static org.junit.jupiter.api.Assertions.assertEquals;

import com.sun.jna.Callback;
import com.sun.jna.CallbackReference;
import com.sun.jna.Memory;
import com.sun.jna.Pointer;
import io.github.fletching.DeviceArray;
import io.github.fletching.VendorFunctions;
import io.github.fletching.VulkanContext;
import io.github.fletching.abi.DeviceType;
import io.github.fletching.testing.CountingEngine;
import io.github.fletching.testing.NativeLibraries;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What libfletching passes to a device with two functions. The conformance suite has real ones. */
@OnLibraryCopy
@Timeout(120)
class VulkanContextTest {
  private static final long DEVICE = 0x1_0000_000dL;
  private static final long QUEUE = 0x1_0000_000bL;
  private static final long EVENT = 0x1_0000_000eL;
  private static final long BUFFER = 0x1_0000_0007L;
  private static final int TEXT_SIZE = 1024;

  interface Function extends Callback {
    long call(long first, long second, long third, long fourth);
  }

  private int status = 3; // VK_EVENT_SET
  private String call = "";

  private final Function getEventStatus =
      (device, event, c, d) -> {
        call = String.format("%x status of %x", device, event);
        return status;
      };
  private final Function waitEvents =
      (buffer, n, list, stages) -> {
        long event = new Pointer(list).getLong(0);
        call =
            String.format("%x waits for %d: %x, set by %x", buffer, (int) n, event, (int) stages);
        return 0;
      };
  private final Function getDeviceProcAddr =
      (device, name, c, d) ->
          address(new Pointer(name).getString(0).contains("Get") ? getEventStatus : waitEvents);
  private final VulkanContext context =
      VulkanContext.of(DEVICE, address(getDeviceProcAddr)).onQueue(QUEUE, QUEUE, 0x8000_0001);

  private static long address(Function function) {
    return Pointer.nativeValue(CallbackReference.getFunctionPointer(function));
  }

  private static DeviceArray array() {
    NativeLibraries.open("libfletching.so.0.1");
    Memory handle = new Memory(8);
    handle.setLong(0, EVENT);
    return Releases.awaited(DeviceType.VULKAN, handle);
  }

  @Test
  void operationsPassContext() {
    try (DeviceArray array = array()) {
      array.synchronize(context);
      assertEquals("10000000d status of 10000000e", call);
      for (boolean isSet : new boolean[] {true, false}) {
        status = isSet ? 3 : 4;
        assertEquals(isSet, array.isReady(context));
      }
      array.waitOn(context, BUFFER);
      assertEquals("100000007 waits for 1: 10000000e, set by 80000001", call);
    }
  }

  @Test
  void operationsReturnErrors() {
    try (DeviceArray array = array()) {
      status = -4;
      String lost = "Vulkan: vkGetEventStatus failed with VK_ERROR_DEVICE_LOST (-4)";
      assertError(EIO, "synchronize: " + lost, () -> array.synchronize(context));
      assertError(EIO, "isReady: " + lost, () -> array.isReady(context));
      VulkanContext otherQueue = context.onQueue(QUEUE + 1, QUEUE, 1);
      assertFails(ENOTSUP, () -> array.waitOn(otherQueue, BUFFER), "waitOn: another VkQueue: ");
      String longest = "x".repeat(TEXT_SIZE - 1);
      VendorFunctions.replace(
          "FletchingDeviceArraySynchronizeVulkan",
          (struct, handles, message, d) -> {
            new Pointer(message).setString(0, longest);
            return EIO;
          },
          () -> assertError(EIO, "synchronize: " + longest, () -> array.synchronize(context)));
      assertEquals(List.of(), CountingEngine.problems());
    }
  }

  @Test
  void operationsWithoutMemoryReturnEnomem() {
    try (DeviceArray array = array()) {
      array.synchronize(context); // loads the library
      int live = CountingEngine.live();
      // The context, the result and the text share one allocation.
      CountingEngine.refuse(6 * 8 + TEXT_SIZE);
      assertFails(ENOMEM, () -> array.synchronize(context), "synchronize: no memory");
      assertFails(ENOMEM, () -> array.isReady(context), "isReady: no memory");
      assertFails(ENOMEM, () -> array.waitOn(context, BUFFER), "waitOn: no memory");
      CountingEngine.refuse(-1);
      array.synchronize(context);
      assertEquals(live, CountingEngine.live());
    }
  }
}
