// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.abi.engine;

/** Argument checks shared by the field accessors. */
public final class Checks {
  private Checks() {}

  /**
   * Returns {@code value} if it fits an unsigned field of {@code bits} bits.
   *
   * @param value the value to check
   * @param bits the width of the field, less than 64
   * @param field the name of the field, for the error
   * @return the value
   * @throws IllegalArgumentException if the value does not fit
   */
  public static long unsigned(long value, int bits, String field) {
    long last = (1L << bits) - 1;
    if (value < 0 || value > last) {
      throw new IllegalArgumentException(
          field + ": value out of range: expected 0 to " + last + ", got " + value);
    }
    return value;
  }

  /**
   * Checks that a list has an entry at an index.
   *
   * @param list the name of the list, for the error
   * @param index the index of the entry
   * @param count the number of entries
   * @param isNull whether the pointer to the list is NULL
   * @throws IndexOutOfBoundsException if {@code index} is negative or not below {@code count}
   * @throws IllegalStateException if the list is NULL
   */
  public static void entry(String list, long index, long count, boolean isNull) {
    if (index < 0 || index >= count) {
      throw new IndexOutOfBoundsException(
          list + ": index out of range: expected less than " + count + ", got " + index);
    }
    if (isNull) {
      throw new IllegalStateException(list + ": NULL: expected " + count + " entries");
    }
  }
}
