// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import io.github.fletching.abi.DeviceType;
import io.github.fletching.abi.EventPointer;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;

/** The registered waiters by device type, per class loader of this library. */
public final class Waiters {
  private static final Map<DeviceType, Waiter> REGISTERED = new ConcurrentHashMap<>();

  private Waiters() {}

  /**
   * Registers a waiter for a device type. Replaces an existing waiter; calls in progress finish
   * with the old one. Thread-safe.
   *
   * @param deviceType the device type
   * @param waiter the waiter for this device type
   * @throws FletchingException EINVAL for the device types of CUDA, HIP and OpenCL, which need no
   *     waiter
   */
  public static void register(DeviceType deviceType, Waiter waiter) {
    Objects.requireNonNull(waiter, "Waiters.register: waiter is null: expected a waiter");
    if (Vendor.of(deviceType) != null) {
      throw FletchingException.invalid(
          "Waiters.register: "
              + deviceType
              + " needs no waiter: expected a device type without a runtime in Fletching");
    }
    REGISTERED.put(deviceType, waiter);
  }

  /**
   * Removes the waiter of a device type.
   *
   * @param deviceType the device type
   * @return whether there was a waiter
   */
  public static boolean unregister(DeviceType deviceType) {
    return REGISTERED.remove(deviceType) != null;
  }

  /**
   * Returns the runtime of a device type or the registered waiter. Throws ENOTSUP with the reason.
   */
  static Waiter of(DeviceType deviceType) {
    Vendor ours = Vendor.of(deviceType);
    Waiter found = ours != null ? ours : REGISTERED.get(deviceType);
    if (found != null) {
      return found;
    }
    if (RuntimeKind.of(deviceType) == RuntimeKind.VULKAN) {
      throw FletchingException.unsupported(
          "VkEvent without its VkDevice and VkQueue; hint: pass a Vulkan context, or register a"
              + " waiter");
    }
    String more =
        deviceType.eventPointer().orElse(null) == EventPointer.NONE
            ? ": expected sync_event NULL on this device type"
            : "; hint: register a waiter for this device type";
    throw FletchingException.unsupported("no way to wait on an event of " + deviceType + more);
  }

  static FletchingException notOfWaiter(String operation, SyncEvent event) {
    String what = operation + ": event of " + event.deviceType();
    return FletchingException.unsupported(what + ": not supported by the registered waiter");
  }
}
