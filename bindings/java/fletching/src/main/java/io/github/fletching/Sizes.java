// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.POINTER;

/** Overflow checks for nonnegative sizes and for addresses. */
final class Sizes {
  private static final long HIGHEST = POINTER == 8 ? -1 : 0xFFFF_FFFFL;

  private Sizes() {}

  /** Returns a * b, or -1 if int64_t overflows. */
  static long multiply(long a, long b) {
    return b != 0 && a > Long.MAX_VALUE / b ? -1 : a * b;
  }

  /**
   * The stride of the next outer dimension. It exceeds int64_t only if another dimension is empty;
   * its value is then irrelevant.
   */
  static long nextStep(long step, long extent) {
    long product = multiply(step, Math.max(extent, 1));
    return product < 0 ? Long.MAX_VALUE : product;
  }

  /** Whether the bytes at an address fit the address space. The numbers are unsigned. */
  static boolean fit(long address, long bytes) {
    return Long.compareUnsigned(bytes, HIGHEST - address) <= 0;
  }
}
