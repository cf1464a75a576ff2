// SPDX-License-Identifier: Apache-2.0

/** Conversions to and from arrow-java's vectors. */
module io.github.fletching.arrow {
  requires transitive io.github.fletching;
  requires transitive org.apache.arrow.c;
  requires transitive org.apache.arrow.memory.core;
  requires transitive org.apache.arrow.vector;

  exports io.github.fletching.arrow;
}
