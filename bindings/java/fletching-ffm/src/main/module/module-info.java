// SPDX-License-Identifier: Apache-2.0

/** The structs of the Arrow C interfaces for java.lang.foreign. */
module io.github.fletching.ffm {
  requires transitive io.github.fletching.abi;

  exports io.github.fletching.ffm.abi;

  provides io.github.fletching.abi.engine.EngineProvider with
      io.github.fletching.ffm.FfmProvider;
}
