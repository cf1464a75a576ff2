// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

import java.lang.ref.Reference;
import java.util.List;

/** The operations of device arrays on events. */
final class Events {
  private Events() {}

  /** The event; null for NULL. */
  static SyncEvent of(DeviceArray array, String operation) {
    array.open(operation);
    long address = array.syncEvent();
    return address == 0 ? null : new SyncEvent(array.deviceType(), array.deviceId(), address);
  }

  static void synchronize(DeviceArray array) {
    SyncEvent event = of(array, "synchronize");
    if (event != null) {
      Waiters.of("synchronize", event.deviceType()).synchronize(event);
    }
    Reference.reachabilityFence(array);
  }

  static void waitOn(DeviceArray array, DeviceStream stream) {
    SyncEvent event = of(array, "wait_on");
    if (event != null) {
      Waiter waiter = Waiters.of("wait_on", event.deviceType());
      stream.check("wait_on", event.deviceType());
      waiter.waitOn(event, stream);
    }
    Reference.reachabilityFence(array);
  }

  static boolean isReady(DeviceArray array) {
    SyncEvent event = of(array, "ready");
    boolean ready = event == null || Waiters.of("ready", event.deviceType()).isReady(event);
    Reference.reachabilityFence(array);
    return ready;
  }

  static void export(DeviceArray array, DeviceStream stream) {
    String operation = "export_with_event";
    Vendor vendor = recording(operation, array);
    if (array.syncEvent() != 0) {
      throw FletchingException.invalid(operation + ": sync_event is set: expected NULL");
    }
    stream.check(operation, array.deviceType());
    long deviceId = array.deviceId();
    long struct = array.beginChange(operation);
    try {
      List<Long> targets = Tree.liveArrays(operation, struct);
      try (Recorded recorded = record(operation, vendor, deviceId, stream)) {
        for (long target : targets) {
          Share.Hook.attach(Kind.ARRAY, target, recorded);
          recorded.use();
        }
        C.putAddress(struct + Fields.DEVICE_ARRAY_SYNC_EVENT, recorded.address);
      }
    } finally {
      array.endChange();
    }
  }

  private static Recorded record(
      String operation, Vendor vendor, long deviceId, DeviceStream stream) {
    try {
      return vendor.record(stream, deviceId);
    } catch (FletchingException e) {
      throw Vendor.withCaptureHint(
          operation,
          e,
          operation.equals("release_after")
              ? "keep the array until the graph is destroyed, and call releaseAfter with the stream"
                  + " of its last launch"
              : "export before the capture begins, or pass stream.onCapture(OnCapture.EXTERNAL) for"
                  + " an event that each launch of the graph records");
    }
  }

  static void releaseAfter(DeviceArray array, DeviceStream stream) {
    String operation = "release_after";
    Vendor vendor = recording(operation, array);
    stream.check(operation, array.deviceType());
    DeviceStream refusing = stream.onCapture(OnCapture.REFUSE);
    Recorded recorded = record(operation, vendor, array.deviceId(), refusing);
    try {
      Reaper.add(operation, recorded, array);
    } catch (Throwable thrown) {
      recorded.close();
      throw thrown;
    }
  }

  /** The runtime for a producer's operation. */
  private static Vendor recording(String operation, DeviceArray array) {
    array.open(operation);
    Vendor vendor = Vendor.of(array.deviceType());
    if (vendor == null) {
      throw FletchingException.unsupported(
          operation + " on " + array.deviceType() + ": " + whyNot(array));
    }
    return vendor;
  }

  private static String whyNot(DeviceArray array) {
    RuntimeKind kind = RuntimeKind.of(array.deviceType());
    if (kind == RuntimeKind.VULKAN) {
      return "not supported by Vulkan: a VkEvent is set by a command buffer, which the caller"
          + " records";
    }
    if (kind == RuntimeKind.SYCL) {
      return "not supported for SYCL: a sycl::event is a C++ object of the SYCL implementation";
    }
    if (kind == RuntimeKind.METAL) {
      return "not supported by Metal: an MTLEvent is signaled by a command buffer, which the caller"
          + " encodes";
    }
    return "no runtime that records events";
  }
}
