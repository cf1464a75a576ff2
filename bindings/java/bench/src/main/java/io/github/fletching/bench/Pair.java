// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.bench;

import org.openjdk.jmh.annotations.Benchmark;

/** The floor: what a call of C that calls Java costs. */
public class Pair {
  @Benchmark
  public void take() throws Throwable {
    Peer.downAndUp();
  }

  @Benchmark
  public void give() throws Throwable {
    Peer.downAndUp();
  }
}
