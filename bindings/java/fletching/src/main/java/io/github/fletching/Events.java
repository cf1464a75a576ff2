// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

import io.github.fletching.abi.DeviceType;
import java.lang.ref.Reference;
import java.util.List;

/** The event operations of device arrays. */
final class Events {
  private Events() {}

  /** Returns the array's event; null for NULL. */
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
      DeviceStream there = stream.completed(event.deviceId());
      there.check("wait_on", event.deviceType());
      Waiters.of("wait_on", event.deviceType()).waitOn(event, there);
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
    if (of(array, operation) != null) {
      throw FletchingException.invalid(operation + ": sync_event is set: expected NULL");
    }
    export(array, stream.completed(array.deviceId()), operation);
  }

  /** The stream has its device set, or -1 for the current device. */
  static void export(DeviceArray array, DeviceStream there, String operation) {
    Vendor vendor = recording(operation, array.deviceType(), array.deviceType());
    there.check(operation, array.deviceType());
    long struct = array.beginChange(operation);
    try {
      List<Long> targets = Tree.liveArrays(operation, struct);
      try (Recorded recorded = vendor.record(there)) {
        for (long target : targets) {
          Share.Hook.attach(Kind.ARRAY, target, recorded);
          recorded.use();
        }
        C.putAddress(struct + Fields.DEVICE_ARRAY_SYNC_EVENT, recorded.address);
      } catch (FletchingException e) {
        throw Vendor.withCaptureHint(
            operation,
            e,
            "export before the capture begins, or pass stream.onCapture(OnCapture.EXTERNAL) for an"
                + " event that each launch of the graph records");
      }
    } finally {
      array.endChange();
    }
  }

  /** Returns the runtime of a stream. Throws ENOTSUP if its device type cannot record events. */
  static Vendor recording(String operation, DeviceType type, DeviceType ofStream) {
    Vendor vendor = Vendor.of(ofStream);
    if (vendor == null) {
      throw FletchingException.unsupported(operation + " on " + type + ": " + whyNot(ofStream));
    }
    return vendor;
  }

  private static String whyNot(DeviceType type) {
    RuntimeKind kind = RuntimeKind.of(type);
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
