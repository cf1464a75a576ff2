// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

/**
 * The environment variable FLETCHING_VALIDATE: libfletching validates the structs that owners
 * import and export.
 */
enum Handover {
  IMPORT,
  EXPORT;

  private static final String VALUE = System.getenv("FLETCHING_VALIDATE");

  /** Whether the variable is set. */
  static final boolean VALIDATES = VALUE != null && !VALUE.isEmpty();

  // Numbers of fletching/handover.h. The others are the ordinals of Kind.
  private static final int HANDLER = 7;

  /** Loaded by the first struct. */
  private static final class Layer {
    static final Library LIBRARY = Library.fletching("FLETCHING_VALIDATE");
    static final Symbol CHECK_LAYOUT = LIBRARY.symbol("FletchingCheckLayout", "ila");
    static final Symbol FUNCTION = LIBRARY.symbol("FletchingValidateHandover", "viia");
    static final boolean IS_FOUND = find();

    private static boolean find() {
      try {
        LIBRARY.load();
        FUNCTION.require();
        Validation.requireLayout(CHECK_LAYOUT, LIBRARY.title);
        return true;
      } catch (FletchingException missing) {
        System.err.println(
            "fletching: " + missing.getMessage() + ", or set FLETCHING_LIBRARY to its path");
        if (VALUE.equals("abort") || VALUE.startsWith("abort:")) {
          C.call("v", C.symbol(0, "abort"));
        }
        return false;
      }
    }
  }

  /** Wraps the struct in a slot in place. */
  void validate(Kind kind, long address) {
    if (VALIDATES) {
      validate(kind.ordinal(), address);
    }
  }

  /** Returns the address of a handler, or of its wrapper. */
  long validatedHandler(long handler) {
    if (!VALIDATES) {
      return handler;
    }
    long pointer = Native.allocate(Native.POINTER, "handler");
    try {
      C.putAddress(pointer, handler);
      validate(HANDLER, pointer);
      return C.getAddress(pointer);
    } finally {
      C.free(pointer);
    }
  }

  private void validate(int number, long address) {
    if (Layer.IS_FOUND) {
      Layer.FUNCTION.call(ordinal(), number, address);
    }
  }
}
