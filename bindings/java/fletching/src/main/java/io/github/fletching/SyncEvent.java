// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;
import static io.github.fletching.Native.POINTER;

import io.github.fletching.abi.DeviceType;

/**
 * The event of a live device array, passed to a {@link Waiter}. It belongs to the producer, and is
 * valid until the waiter returns.
 */
public final class SyncEvent {
  private static final long LOWEST = 4096; // no memory is mapped below

  private final DeviceType deviceType;
  private final long deviceId;
  private final long address;

  SyncEvent(DeviceType deviceType, long deviceId, long address) {
    this.deviceType = deviceType;
    this.deviceId = deviceId;
    this.address = address;
  }

  /**
   * The device type of the array.
   *
   * @return the device type
   */
  public DeviceType deviceType() {
    return deviceType;
  }

  /**
   * The device id within the type.
   *
   * @return the device id
   */
  public long deviceId() {
    return deviceId;
  }

  /**
   * The value of sync_event, never 0.
   *
   * @return the address
   */
  public long address() {
    return address;
  }

  /** The handle at the address sync_event. Throws EINVAL for an invalid address or handle. */
  long handle() {
    if (Long.compareUnsigned(address, LOWEST) < 0 || address % POINTER != 0) {
      throw invalid(
          "not the address of a handle: expected an aligned address; hint: pass the handle's"
              + " address, not the handle");
    }
    long handle = C.getAddress(address);
    if (handle == 0) {
      throw invalid("the handle is NULL: expected an event");
    }
    return handle;
  }

  private FletchingException invalid(String problem) {
    return FletchingException.invalid("sync_event of " + deviceType + ": " + problem);
  }
}
