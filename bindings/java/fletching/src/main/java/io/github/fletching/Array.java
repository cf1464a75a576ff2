// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

import io.github.fletching.abi.DeviceType;
import java.util.function.LongConsumer;

/** Owner of an ArrowArray with data in CPU memory. See {@link Owner}. */
public final class Array extends ArrayOwner {
  Array(Slot slot) {
    super(Kind.ARRAY, slot);
  }

  /**
   * Moves the struct at an address into an owner, and marks the source as released. Calls no
   * callback.
   *
   * <p>The struct must be valid according to the specification: its callbacks, lists and children
   * are correct, no other party releases it, and its release callback may run on any thread. These
   * are the only guarantees required of the caller. Buffers are never read.
   *
   * <p>Keep a Java object that owns the struct's memory, such as JNA's {@code Memory}, reachable
   * during the call ({@code Reference.reachabilityFence}). The address alone does not.
   *
   * @param address the address of a struct
   * @return the owner
   * @throws FletchingException EINVAL if the address is 0 or the struct is released
   */
  public static Array wrap(long address) {
    return new Array(imported(Kind.ARRAY, address));
  }

  /**
   * Owns the struct that a C function fills, such as {@code get_schema(self, out)}. The function is
   * called once with the address of a zeroed struct. An exception of the function is rethrown, and
   * the struct's contents are ignored.
   *
   * @param function the function, which is called once
   * @return the owner
   * @throws FletchingException EINVAL if the function does not fill the struct; ENOMEM
   */
  public static Array filledBy(LongConsumer function) {
    return new Array(filled(Kind.ARRAY, function));
  }

  /**
   * Moves a child out of the array. The parent then lists it as released; the specification
   * requires the parent to be released soon afterwards.
   *
   * @param index the index, from 0
   * @return the child
   * @throws FletchingException EINVAL if the child does not exist or was moved out
   */
  public Array takeChild(int index) {
    return new Array(Tree.takeChild(this, index));
  }

  /**
   * Moves the dictionary out of the array, as {@link #takeChild} does.
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
   * Moves the array into a device array with device_id -1, Arrow's value for the CPU.
   *
   * @return the device array
   */
  public DeviceArray toDevice() {
    Slot device = Slot.take(Kind.DEVICE_ARRAY);
    Slot source = takeSlot("toDevice");
    Kind.ARRAY.move(source.address, device.address);
    source.free();
    C.putLong(device.address + Fields.DEVICE_ARRAY_DEVICE_ID, -1);
    C.putInt(device.address + Fields.DEVICE_ARRAY_DEVICE_TYPE, DeviceType.CPU.value());
    return new DeviceArray(device);
  }
}
