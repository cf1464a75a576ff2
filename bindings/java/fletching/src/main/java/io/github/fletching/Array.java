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
   * @param address the address of a struct
   * @return the owner
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
   * @param function the function, which is called once
   * @return the owner
   * @throws FletchingException EINVAL when the function does not fill the struct; ENOMEM
   */
  public static Array filledBy(LongConsumer function) {
    return new Array(filled(Kind.ARRAY, function));
  }

  /**
   * Moves a child out. The parent lists it as released; the texts ask that the parent is released
   * soon afterwards.
   *
   * @param index the index, from 0
   * @return the child
   * @throws FletchingException EINVAL when there is no such child, or it was moved out before
   */
  public Array takeChild(int index) {
    return new Array(Tree.takeChild(this, index));
  }

  /**
   * The same for the dictionary.
   *
   * @return the dictionary
   */
  public Array takeDictionary() {
    return new Array(Tree.takeDictionary(this));
  }

  /**
   * Moves the array into a {@link Shared}, which several users may read.
   *
   * @return the shared struct
   */
  public Shared<Array> share() {
    return Shared.of(this, Array::new);
  }

  /**
   * Moves it into a device array, with the device_id -1 that Arrow has for the CPU.
   *
   * @return the device array
   */
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
