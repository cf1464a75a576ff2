// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import io.github.fletching.ArrayBuilder;
import io.github.fletching.Owner;

/** A program that does not close its arrays. */
public final class UnclosedArrays {
  private UnclosedArrays() {}

  /**
   * Returns once the arrays are released and the warnings printed. The property {@code arrays} is
   * the number of arrays.
   */
  public static void main(String[] arguments) {
    int count = Integer.getInteger("arrays", 1);
    for (int i = 0; i < count; i++) {
      make();
    }
    for (int leaks = count; leaks <= count + 1; leaks++) { // one more array after the last warning
      while (Owner.leaks() < leaks) {
        System.gc();
      }
      make();
    }
    System.out.println("released");
  }

  private static void make() {
    new ArrayBuilder(1).build(null);
  }
}
