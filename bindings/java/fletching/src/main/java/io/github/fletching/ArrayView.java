// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;
import static io.github.fletching.Native.POINTER;

import io.github.fletching.abi.DeviceType;
import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** A read-only view of an array that an owner keeps alive; see {@link View}. */
public final class ArrayView extends View {
  ArrayView(Owner owner, View parent, long address) {
    super(owner, parent, address);
  }

  /**
   * The number of values.
   *
   * @return the number of values
   */
  public long length() {
    return readLong(Fields.ARRAY_LENGTH, 0);
  }

  /**
   * The number of nulls; -1 if the producer has not counted them.
   *
   * @return the number of nulls, or -1
   */
  public long nullCount() {
    return readLong(Fields.ARRAY_NULL_COUNT, 0);
  }

  /**
   * The index of the first value in every buffer.
   *
   * @return the index of the first value in every buffer
   */
  public long offset() {
    return readLong(Fields.ARRAY_OFFSET, 0);
  }

  /**
   * The addresses of the buffers on the array's device; 0 for a missing buffer.
   *
   * @return the addresses of the buffers
   */
  public long[] buffers() {
    return read(
        new long[0],
        array -> {
          long count = C.getLong(array + Fields.ARRAY_N_BUFFERS);
          long list = C.getAddress(array + Fields.ARRAY_BUFFERS);
          boolean plausible = list != 0 && count > 0 && count <= Kind.MOST_STRUCTS;
          long[] buffers = new long[plausible ? (int) count : 0];
          for (int i = 0; i < buffers.length; i++) {
            buffers[i] = C.getAddress(list + (long) i * POINTER);
          }
          return buffers;
        });
  }

  /**
   * Bytes of a CPU-accessible buffer: read-only, in native byte order. The cleaner does not release
   * the array while the result is reachable. The result must not be read after the owner is closed
   * or moved. Call {@link DeviceArray#synchronize} first.
   *
   * @param index the index of the buffer
   * @param offset the first byte
   * @param size the number of bytes, computed from the type, length and offset of the array: the
   *     array does not store buffer sizes
   * @return the bytes
   * @throws IndexOutOfBoundsException if the index is out of range
   * @throws FletchingException EINVAL if the CPU cannot access the memory, for a NULL buffer with
   *     an offset or size other than 0, and for a negative offset or size
   */
  public ByteBuffer hostBuffer(int index, long offset, int size) {
    checkHost();
    long[] buffers = buffers();
    if (index < 0 || index >= buffers.length) {
      throw new IndexOutOfBoundsException(
          "buffer " + index + ": no such buffer: expected an index below " + buffers.length);
    }
    if (offset < 0 || size < 0 || (buffers[index] == 0 && (offset | size) != 0)) {
      throw FletchingException.invalid(
          "buffer "
              + index
              + ": expected bytes of a buffer that is not NULL, got "
              + size
              + " at "
              + offset
              + " of "
              + (buffers[index] == 0 ? "NULL" : "a buffer"));
    }
    ByteBuffer bytes =
        size == 0 ? ByteBuffer.allocateDirect(0) : C.view(buffers[index] + offset, size);
    Owner kept = owner;
    Slot.onCollected(bytes, () -> Reference.reachabilityFence(kept));
    return bytes.asReadOnlyBuffer().order(ByteOrder.nativeOrder());
  }

  private void checkHost() {
    if (!(owner instanceof DeviceArray)) {
      return;
    }
    DeviceType device = ((DeviceArray) owner).deviceType();
    if (!device.accessibleFrom().contains(DeviceType.CPU)) {
      throw FletchingException.invalid(
          "buffer: expected memory that the CPU can access, got " + device);
    }
  }

  /**
   * A child. The view reads as a released struct if the list entry is NULL or the child was moved
   * out.
   *
   * @param index the index, from 0
   * @return the child
   * @throws IndexOutOfBoundsException if the index is not below {@link #childCount}
   */
  public ArrayView child(int index) {
    return new ArrayView(owner, this, childAddress(index));
  }

  /**
   * The dictionary. The view reads as a released struct if the array has none.
   *
   * @return the dictionary
   */
  public ArrayView dictionary() {
    return new ArrayView(owner, this, dictionaryAddress());
  }
}
