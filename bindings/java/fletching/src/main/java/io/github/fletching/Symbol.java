// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

/** A function of a {@link Library}, which was loaded before it is called. */
final class Symbol {
  /** As the library exports it: {@code cuEventDestroy_v2}. */
  final String name;

  private final Library library;
  private final String signature;
  long address; // 0 when the library lacks it

  Symbol(Library library, String name, String signature) {
    this.library = library;
    this.name = name;
    this.signature = signature;
  }

  boolean exists() {
    return address != 0;
  }

  /**
   * Does nothing when the library has the function.
   *
   * @throws FletchingException ENOSYS
   */
  void require() {
    if (address == 0) {
      throw library.lacks(name);
    }
  }

  /** Calls it, with a result as wide as an int or a handle. */
  long call(long... arguments) {
    require();
    return C.call(signature, address, arguments);
  }
}
