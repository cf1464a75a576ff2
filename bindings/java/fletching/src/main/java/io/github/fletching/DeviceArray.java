// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

import io.github.fletching.abi.DeviceType;
import java.lang.ref.Reference;

/**
 * Owns an ArrowDeviceArray, with the event that it has. See {@link Owner}.
 *
 * <p>Text: Arrow C device data interface, "Structure definitions".
 */
public final class DeviceArray extends ArrayOwner {
  static final long DEVICE_ID = Kind.DEVICE_ARRAY.offset("device_id");
  static final long DEVICE_TYPE = Kind.DEVICE_ARRAY.offset("device_type");
  static final long SYNC_EVENT = Kind.DEVICE_ARRAY.offset("sync_event");
  static final long RESERVED = Kind.DEVICE_ARRAY.offset("reserved");

  DeviceArray(Slot slot) {
    super(Kind.DEVICE_ARRAY, slot);
  }

  /**
   * Moves the struct at an address in; see {@link Array#wrap} for promises and errors. sync_event
   * is NULL or the event of the device type.
   */
  public static DeviceArray wrap(long address) {
    return new DeviceArray(imported(Kind.DEVICE_ARRAY, address));
  }

  /** The type of the device that the buffers are on. */
  public DeviceType deviceType() {
    int value = C.getInt(live("read").address + DEVICE_TYPE);
    Reference.reachabilityFence(this);
    return DeviceType.of(value);
  }

  /** Which device of that type; -1 where it does not matter, as on the CPU. */
  public long deviceId() {
    long value = C.getLong(live("read").address + DEVICE_ID);
    Reference.reachabilityFence(this);
    return value;
  }

  /** The event to wait on before a buffer is read, 0 for none. It lives until the release. */
  public long syncEvent() {
    long value = C.getAddress(live("read").address + SYNC_EVENT);
    Reference.reachabilityFence(this);
    return value;
  }

  boolean hasZeroReserved() {
    long reserved = live("read").address + RESERVED;
    boolean zero = (C.getLong(reserved) | C.getLong(reserved + 8) | C.getLong(reserved + 16)) == 0;
    Reference.reachabilityFence(this);
    return zero;
  }

  /**
   * Moves a child out, as a device array on the same device with the parent's event, which lives
   * until the parent and every child that was taken are released: then release and private_data of
   * both change. See {@link Array#takeChild}.
   */
  public DeviceArray takeChild(int index) {
    return takeBelow(Tree.childToTake(this, index));
  }

  /** The same for the dictionary. */
  public DeviceArray takeDictionary() {
    return takeBelow(Tree.dictionaryToTake(this));
  }

  private DeviceArray takeBelow(long below) {
    Slot taken = moveBelow(below, syncEvent() != 0);
    copyDevice(live("take_child").address, taken.address);
    Reference.reachabilityFence(this);
    return new DeviceArray(taken);
  }

  /** Writes what is beside the array. */
  static void copyDevice(long from, long to) {
    C.putLong(to + DEVICE_ID, C.getLong(from + DEVICE_ID));
    C.putInt(to + DEVICE_TYPE, C.getInt(from + DEVICE_TYPE));
    C.putAddress(to + SYNC_EVENT, C.getAddress(from + SYNC_EVENT));
  }

  /** Moves the array into a {@link Shared}, which several users may read, with its event. */
  public Shared<DeviceArray> share() {
    return Shared.of(this, DeviceArray::new);
  }

  /**
   * Moves the array of a device array on the CPU out.
   *
   * @throws FletchingException EINVAL for another device type, and for an array with an event,
   *     which an ArrowArray cannot carry; then nothing was moved
   */
  public Array toHost() {
    if (!deviceType().equals(DeviceType.CPU)) {
      throw FletchingException.invalid(
          "array: wrong device type: expected cpu, got " + deviceType());
    }
    if (syncEvent() != 0) {
      throw FletchingException.invalid("array: sync_event not NULL: expected none on cpu");
    }
    Slot host = Slot.take(Kind.ARRAY);
    Slot source = takeSlot("to_host");
    Kind.ARRAY.move(source.address, host.address);
    source.free();
    return new Array(host);
  }
}
