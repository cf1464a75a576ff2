// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

import io.github.fletching.abi.engine.Engine;
import java.util.List;

/**
 * Removes or replaces single functions of a loaded library, for what neither a stand-in nor a real
 * driver does on request.
 */
public final class VendorFunctions {
  private static final List<Library> LIBRARIES =
      List.of(
          CudaTable.LIBRARY,
          HipTable.LIBRARY,
          OpenclTable.LIBRARY,
          Validation.LIBRARY,
          VulkanContext.LIBRARY);
  private static final int MOST = 1 + 4; // a stub gets the first four arguments

  private VendorFunctions() {}

  /** Runs the body while the library lacks the function. */
  public static void without(String name, Runnable body) {
    change(find(name), 0, body);
  }

  /** Runs the body while the library has this function instead. */
  public static void replace(String name, Engine.Callback function, Runnable body) {
    Symbol symbol = find(name);
    String signature = symbol.signature;
    String known = signature.substring(0, Math.min(signature.length(), MOST));
    change(symbol, C.stub(name, known, -1, function), body);
  }

  private static Symbol find(String name) {
    return LIBRARIES.stream()
        .flatMap(library -> library.symbols.stream())
        .filter(symbol -> symbol.name.equals(name))
        .findAny()
        .orElseThrow();
  }

  private static void change(Symbol symbol, long address, Runnable body) {
    symbol.library.load(); // which sets the addresses
    long before = symbol.address;
    symbol.address = address;
    try {
      body.run();
    } finally {
      symbol.address = before;
    }
  }
}
