// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

import io.github.fletching.abi.DeviceType;
import java.util.function.LongConsumer;

/** Owns an ArrowArray: data in CPU memory. See {@link Owner}. */
public final class Array extends ArrayOwner {
  Array(Slot slot) {
    super(Kind.ARRAY, slot);
  }

  /**
   * Moves the struct at an address in, which is released afterwards. It calls nothing.
   *
   * <p>The struct is as the texts ask for it: its callbacks, lists and children are what they say,
   * no other party releases it, and its release may run on any thread. This is the only place where
   * the caller promises something. No buffer is ever read.
   *
   * @throws FletchingException EINVAL for an address of 0, and for a released struct
   */
  public static Array wrap(long address) {
    return new Array(imported(Kind.ARRAY, address));
  }

  /**
   * Owns what a function of C writes into an empty struct, such as {@code get_schema(self, out)}.
   * The function is called once with the address of the zeroed struct. What it throws is passed on,
   * and the contents are ignored.
   *
   * @throws FletchingException EINVAL when the function does not fill the struct; ENOMEM
   */
  public static Array filledBy(LongConsumer function) {
    return new Array(filled(Kind.ARRAY, function));
  }

  /**
   * Moves a child out. The parent lists it as released; the texts ask that the parent is released
   * soon afterwards.
   *
   * @throws FletchingException EINVAL when there is no such child, or it was moved out before
   */
  public Array takeChild(int index) {
    return new Array(Tree.takeChild(this, index));
  }

  /** The same for the dictionary. */
  public Array takeDictionary() {
    return new Array(Tree.takeDictionary(this));
  }

  /** Moves the array into a {@link Shared}, which several users may read. */
  public Shared<Array> share() {
    return Shared.of(this, Array::new);
  }

  /** Moves it into a device array, with the device_id -1 that Arrow has for the CPU. */
  public DeviceArray toDevice() {
    Slot device = Slot.take(Kind.DEVICE_ARRAY);
    Slot source = takeSlot("to_device");
    Kind.ARRAY.move(source.address, device.address);
    source.free();
    C.putLong(device.address + Fields.DEVICE_ARRAY_DEVICE_ID, -1);
    C.putInt(device.address + Fields.DEVICE_ARRAY_DEVICE_TYPE, DeviceType.CPU.value());
    return new DeviceArray(device);
  }
}
