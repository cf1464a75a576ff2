// SPDX-License-Identifier: Apache-2.0

/** To and from the vectors of arrow-java. */
module io.github.fletching.arrow {
  requires transitive io.github.fletching;
  requires transitive org.apache.arrow.c;
  requires transitive org.apache.arrow.memory.core;
  requires transitive org.apache.arrow.vector;

  exports io.github.fletching.arrow;
}
