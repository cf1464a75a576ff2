// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import io.github.fletching.ArrayBuilder;

/** A program that forgets to close an array. */
public final class Forgotten {
  private static volatile boolean released;

  private Forgotten() {}

  /** Returns when the array was released, after the warning. */
  public static void main(String[] arguments) {
    make();
    while (!released) {
      System.gc();
    }
    System.out.println("released");
  }

  private static void make() {
    AutoCloseable object = () -> released = true;
    new ArrayBuilder(1).build(object);
  }
}
