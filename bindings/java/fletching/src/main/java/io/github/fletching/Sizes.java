// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.POINTER;

/** Sizes that are not negative, and addresses. */
final class Sizes {
  private static final long HIGHEST = POINTER == 8 ? -1 : 0xFFFF_FFFFL;

  private Sizes() {}

  /** Returns a * b, or -1 when int64_t cannot hold it. */
  static long multiply(long a, long b) {
    return b != 0 && a > Long.MAX_VALUE / b ? -1 : a * b;
  }

  /**
   * The distance one dimension further out. It is too large for int64_t only if another dimension
   * is empty; then its value does not matter.
   */
  static long nextStep(long step, long extent) {
    long product = multiply(step, Math.max(extent, 1));
    return product < 0 ? Long.MAX_VALUE : product;
  }

  /** Whether so many bytes behind an address have addresses. The numbers are unsigned. */
  static boolean fit(long address, long bytes) {
    return Long.compareUnsigned(bytes, HIGHEST - address) <= 0;
  }
}
