// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;
import static io.github.fletching.Native.POINTER;

/** Reads an array that an owner keeps alive; see {@link View}. */
public final class ArrayView extends View {
  ArrayView(Owner owner, View parent, long address) {
    super(owner, parent, address);
  }

  /** The number of values. */
  public long length() {
    return readLong(Fields.ARRAY_LENGTH, 0);
  }

  /** The number of nulls, -1 when the producer has not counted. */
  public long nullCount() {
    return readLong(Fields.ARRAY_NULL_COUNT, 0);
  }

  /** The index of the first value in every buffer. */
  public long offset() {
    return readLong(Fields.ARRAY_OFFSET, 0);
  }

  /** The addresses of the buffers, on the device of the array; 0 for none. */
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
   * A child; a view of a released struct where the list has NULL, and for a child that was moved
   * out.
   *
   * @throws IndexOutOfBoundsException when the index is not below {@link #childCount}
   */
  public ArrayView child(int index) {
    return new ArrayView(owner, this, childAddress(index));
  }

  /** The dictionary; a view of a released struct where there is none. */
  public ArrayView dictionary() {
    return new ArrayView(owner, this, dictionaryAddress());
  }
}
