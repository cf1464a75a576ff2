// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.jna.abi;

import io.github.fletching.testing.AbiSuite;

/** The checks of AbiTest as a program: tests/mutants runs it once per wrong spec. */
final class AbiMain {
  private AbiMain() {}

  public static void main(String[] args) {
    new AbiSuite("java-jna", JnaStruct.all()).main();
  }
}
