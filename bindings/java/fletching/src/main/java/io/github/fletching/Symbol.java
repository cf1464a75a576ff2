// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

/** A function of a {@link Library}, which must be loaded before the call. */
final class Symbol {
  /** The exported name, such as {@code cuEventDestroy_v2}. */
  final String name;

  final Library library;
  final String signature;
  long address; // 0 if the library lacks it

  Symbol(Library library, String name, String signature) {
    this.library = library;
    this.name = name;
    this.signature = signature;
  }

  boolean exists() {
    return address != 0;
  }

  /**
   * Checks that the library has the function.
   *
   * @throws FletchingException ENOSYS if the library lacks it
   */
  void require() {
    if (address == 0) {
      throw library.lacks(name);
    }
  }

  /** Calls the function. Its result must be as wide as an int or a handle. */
  long call(long... arguments) {
    require();
    return C.call(signature, address, arguments);
  }
}
