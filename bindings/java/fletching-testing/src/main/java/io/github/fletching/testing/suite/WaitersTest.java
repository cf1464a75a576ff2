// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static io.github.fletching.abi.Errno.EAGAIN;
import static io.github.fletching.abi.Errno.EINVAL;
import static io.github.fletching.abi.Errno.ENOTSUP;
import static io.github.fletching.testing.suite.Releases.assertFails;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.fletching.ArrayBuilder;
import io.github.fletching.DeviceArray;
import io.github.fletching.DeviceStream;
import io.github.fletching.FletchingException;
import io.github.fletching.SyncEvent;
import io.github.fletching.VulkanContext;
import io.github.fletching.Waiter;
import io.github.fletching.Waiters;
import io.github.fletching.abi.DeviceType;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Waiters that a program registers, and events that cannot be waited on. */
class WaitersTest {
  private static final long EVENT = 0x1234;
  private static final long QUEUE = 0x5678;

  /** Waiter that records its calls. */
  private static final class CheckingWaiter implements Waiter {
    final List<String> calls = new ArrayList<>();

    private void record(String operation, SyncEvent event) {
      calls.add(operation);
      assertEquals(EVENT, event.address());
      assertEquals(7, event.deviceId());
      assertEquals(DeviceType.EXT_DEV, event.deviceType());
    }

    @Override
    public void synchronize(SyncEvent event) {
      record("synchronize", event);
    }

    @Override
    public void waitOn(SyncEvent event, DeviceStream stream) {
      record("wait_on", event);
      assertEquals(QUEUE, stream.handle());
      throw new FletchingException(EAGAIN, "queue full");
    }

    @Override
    public boolean isReady(SyncEvent event) {
      record("ready", event);
      return false;
    }
  }

  private static DeviceArray array(DeviceType type) {
    return new Releases().array(type, 7, EVENT);
  }

  @Test
  void waiterReceivesEvent() {
    CheckingWaiter waiter = new CheckingWaiter();
    Waiters.register(DeviceType.EXT_DEV, waiter);
    DeviceStream stream = DeviceStream.of(DeviceType.EXT_DEV, QUEUE);
    try (DeviceArray array = array(DeviceType.EXT_DEV);
        DeviceArray nothing = new Releases().array(DeviceType.EXT_DEV)) {
      array.synchronize();
      assertFalse(array.isReady());
      assertFails(EAGAIN, () -> array.waitOn(stream), "queue full");
      assertFails(
          EINVAL,
          () -> array.waitOn(DeviceStream.of(DeviceType.METAL, QUEUE)),
          "waitOn: stream of another runtime: expected one of ext_dev, got one of metal");
      nothing.synchronize();
      assertEquals(List.of("synchronize", "ready", "wait_on"), waiter.calls);
      assertTrue(Waiters.unregister(DeviceType.EXT_DEV));
      assertFalse(Waiters.unregister(DeviceType.EXT_DEV));
      assertFails(
          ENOTSUP, array::synchronize, "synchronize: no way to wait on an event of ext_dev");
    }
  }

  @Test
  void waiterExceptionReachesCaller() {
    RuntimeException lost = new RuntimeException("lost");
    Waiters.register(
        DeviceType.ONEAPI,
        new Waiter() {
          @Override
          public void synchronize(SyncEvent event) {
            throw lost;
          }
        });
    try (DeviceArray array = array(DeviceType.ONEAPI)) {
      assertSame(lost, assertThrows(RuntimeException.class, array::synchronize));
      Waiters.register(DeviceType.ONEAPI, new Waiter() {}); // replaces the waiter
      DeviceStream stream = DeviceStream.of(DeviceType.ONEAPI, QUEUE);
      String text = ": event of oneapi: not supported by the registered waiter";
      assertFails(ENOTSUP, array::synchronize, "synchronize" + text);
      assertFails(ENOTSUP, () -> array.waitOn(stream), "waitOn" + text);
      assertFails(ENOTSUP, array::isReady, "isReady" + text);
    } finally {
      Waiters.unregister(DeviceType.ONEAPI);
    }
  }

  @Test
  void ruleSyncEventWaitedBeforeAccess() {
    Map<DeviceType, String> reasons =
        Map.of(
            DeviceType.METAL,
            "no way to wait on an event of metal; hint: register a waiter",
            DeviceType.VULKAN,
            "VkEvent without its VkDevice and VkQueue; hint: pass a Vulkan",
            DeviceType.CPU,
            "an event of cpu: expected sync_event NULL on this device type",
            DeviceType.of(9999),
            "an event of unknown(9999); hint: register a waiter");
    reasons.forEach(
        (type, why) -> {
          try (DeviceArray array = array(type)) {
            assertFails(ENOTSUP, array::isReady, "isReady: ", why);
            assertFails(ENOTSUP, array::synchronize, "synchronize: ", why);
            assertFails(ENOTSUP, () -> array.waitOn(DeviceStream.of(type, 0)), "waitOn: ", why);
          }
        });
  }

  @Test
  void ruleSyncEventNullAccepted() {
    for (int i = 0; i < 30; i++) {
      DeviceType type = DeviceType.of(i);
      try (DeviceArray array = new Releases().array(type)) {
        array.synchronize();
        array.waitOn(DeviceStream.of(type, QUEUE));
        assertTrue(array.isReady());
      }
    }
  }

  @Test
  void builtArrayHasNoEvent() {
    try (DeviceArray array = new ArrayBuilder(0).buildOn(DeviceType.CUDA, 0, 0, null)) {
      assertEquals(0, array.syncEvent());
      assertTrue(array.isReady());
    }
  }

  @Test
  void registerRejectsDeviceWithRuntime() {
    for (DeviceType type :
        new DeviceType[] {DeviceType.CUDA, DeviceType.ROCM_HOST, DeviceType.OPENCL}) {
      assertFails(EINVAL, () -> Waiters.register(type, new CheckingWaiter()), "needs no waiter");
      assertFalse(Waiters.unregister(type));
    }
    NullPointerException error =
        assertThrows(NullPointerException.class, () -> Waiters.register(DeviceType.METAL, null));
    assertEquals("Waiters.register: waiter is null: expected a waiter", error.getMessage());
  }

  @Test
  void vulkanContextRejectsOtherDevices() {
    VulkanContext context = VulkanContext.of(QUEUE, 0);
    String text = ": expected an event of Vulkan, got one of ext_dev";
    try (DeviceArray array = array(DeviceType.EXT_DEV);
        DeviceArray nothing = new Releases().array(DeviceType.VULKAN);
        DeviceArray other = array(DeviceType.VULKAN)) {
      assertFails(EINVAL, () -> array.synchronize(context), "synchronize" + text);
      assertFails(EINVAL, () -> array.waitOn(context, QUEUE), "waitOn" + text);
      assertFails(EINVAL, () -> array.isReady(context), "isReady" + text);
      nothing.synchronize(context);
      nothing.waitOn(context, 0);
      assertTrue(nothing.isReady(context));
      assertFails(EINVAL, () -> other.waitOn(context, 0), "waitOn: command buffer is NULL");
    }
  }

  @Test
  void streamToStringHasHandleAndDevice() {
    DeviceStream stream = DeviceStream.of(DeviceType.CUDA, 255);
    assertEquals("stream 0xff of cuda", stream.toString());
    assertEquals(DeviceType.CUDA, stream.deviceType());
  }

  @Test
  void exportWithEventRejectsDeviceWithoutRuntime() {
    Map<DeviceType, String> reasons =
        Map.of(
            DeviceType.VULKAN,
            "device type vulkan: not supported by Vulkan: a VkEvent is set by a command",
            DeviceType.ONEAPI,
            "device type oneapi: not supported for SYCL: a sycl::event is a C++ object",
            DeviceType.METAL,
            "device type metal: not supported by Metal: an MTLEvent is signaled by a",
            DeviceType.of(9999),
            "device type unknown(9999): no runtime that records events");
    reasons.forEach(
        (type, why) -> {
          Releases releases = new Releases();
          DeviceArray array = releases.array(type);
          DeviceStream stream = DeviceStream.of(type, 1);
          assertFails(ENOTSUP, () -> array.exportWithEvent(stream), "exportWithEvent: " + why);
          assertFails(ENOTSUP, () -> array.releaseAfter(stream), "releaseAfter: " + why);
          assertTrue(array.isReleased());
          releases.assertCount(0); // the array leaks
        });
  }
}
