// SPDX-License-Identifier: Apache-2.0

/** Constants, device types and struct offsets of the Arrow C interfaces. */
@SuppressWarnings("module") // the engine modules are built later
module io.github.fletching.abi {
  exports io.github.fletching.abi;
  exports io.github.fletching.abi.engine to
      io.github.fletching,
      io.github.fletching.ffm,
      io.github.fletching.jna;
}
