// SPDX-License-Identifier: Apache-2.0

/** Owners, builders and streams of the Arrow C device interfaces. */
module io.github.fletching {
  requires transitive io.github.fletching.abi;

  exports io.github.fletching;

  uses io.github.fletching.abi.engine.EngineProvider;
}
