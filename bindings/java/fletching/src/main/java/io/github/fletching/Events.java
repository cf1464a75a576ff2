// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

import io.github.fletching.abi.DeviceType;
import java.lang.ref.Reference;
import java.util.List;
import java.util.function.Function;
import java.util.function.Supplier;

/** The event operations of device arrays. */
final class Events {
  private Events() {}

  /** Returns the array's event; null for NULL. */
  static SyncEvent of(DeviceArray array, String operation) {
    array.open(operation);
    long address = array.syncEvent();
    return address == 0 ? null : new SyncEvent(array.deviceType(), array.deviceId(), address);
  }

  /** Runs the body, and puts the operation in front of the message of its FletchingException. */
  static <T> T named(String operation, Supplier<T> body) {
    try {
      return body.get();
    } catch (FletchingException e) {
      throw e.named(operation);
    }
  }

  /** Calls the waiter of the event. The errors of a registered waiter do not change. */
  private static <T> T call(String operation, SyncEvent event, Function<Waiter, T> body) {
    Waiter waiter = named(operation, () -> Waiters.of(event.deviceType()));
    boolean isOurs = waiter instanceof Vendor;
    return isOurs ? named(operation, () -> body.apply(waiter)) : body.apply(waiter);
  }

  static void synchronize(DeviceArray array) {
    String operation = "synchronize";
    SyncEvent event = of(array, operation);
    if (event != null) {
      call(
          operation,
          event,
          waiter -> {
            waiter.synchronize(event);
            return true;
          });
    }
    Reference.reachabilityFence(array);
  }

  static void waitOn(DeviceArray array, DeviceStream stream) {
    String operation = "waitOn";
    SyncEvent event = of(array, operation);
    if (event != null) {
      DeviceStream there = stream.completed(event.deviceId());
      named(operation, () -> there.checked(event.deviceType()));
      call(
          operation,
          event,
          waiter -> {
            waiter.waitOn(event, there);
            return true;
          });
    }
    Reference.reachabilityFence(array);
  }

  static boolean isReady(DeviceArray array) {
    String operation = "isReady";
    SyncEvent event = of(array, operation);
    boolean ready = event == null || call(operation, event, waiter -> waiter.isReady(event));
    Reference.reachabilityFence(array);
    return ready;
  }

  static void export(DeviceArray array, DeviceStream stream) {
    String operation = "exportWithEvent";
    if (of(array, operation) != null) {
      throw FletchingException.invalid(operation + ": sync_event is set: expected NULL");
    }
    export(array, stream.completed(array.deviceId()), operation);
  }

  /** The stream has its device set, or -1 for the current device. */
  static void export(DeviceArray array, DeviceStream there, String operation) {
    DeviceType type = array.deviceType();
    Vendor vendor = named(operation, () -> recording(type, type));
    named(operation, () -> there.checked(type));
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
                e,
                "export before the capture begins, or pass stream.onCapture(OnCapture.EXTERNAL) for"
                    + " an event that each launch of the graph records")
            .named(operation);
      }
    } finally {
      array.endChange();
    }
  }

  /** Returns the runtime of a stream. Throws ENOTSUP if its device type cannot record events. */
  static Vendor recording(DeviceType type, DeviceType ofStream) {
    Vendor vendor = Vendor.of(ofStream);
    if (vendor == null) {
      throw FletchingException.unsupported("device type " + type + ": " + whyNot(ofStream));
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
