// SPDX-License-Identifier: Apache-2.0

/** The structs of the Arrow C interfaces for JNA. */
@SuppressWarnings({"requires-automatic", "requires-transitive-automatic"}) // or its jna-jpms
module io.github.fletching.jna {
  requires transitive com.sun.jna;
  requires transitive io.github.fletching.abi;

  exports io.github.fletching.jna.abi;

  provides io.github.fletching.abi.engine.EngineProvider with
      io.github.fletching.jna.abi.JnaProvider;
}
