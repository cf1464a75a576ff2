// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;
import static io.github.fletching.Native.POINTER;

import io.github.fletching.abi.DeviceType;

/**
 * The event of a live device array, as a {@link Waiter} gets it. It is the producer's, and lives
 * until the call of the waiter returns.
 */
public final class SyncEvent {
  private static final long LOWEST = 4096; // nothing is mapped below

  private final DeviceType deviceType;
  private final long deviceId;
  private final long address;

  SyncEvent(DeviceType deviceType, long deviceId, long address) {
    this.deviceType = deviceType;
    this.deviceId = deviceId;
    this.address = address;
  }

  /**
   * The type of the device that the array is on.
   *
   * @return the type of the device that the array is on
   */
  public DeviceType deviceType() {
    return deviceType;
  }

  /**
   * Which device of that type.
   *
   * @return which device of that type
   */
  public long deviceId() {
    return deviceId;
  }

  /**
   * sync_event as the struct has it, never 0.
   *
   * @return the address
   */
  public long address() {
    return address;
  }

  /** The handle that sync_event is the address of. */
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
