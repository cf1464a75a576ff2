// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.bench;

import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/** The floor: the cost of one call to C that calls back or does the work itself. */
@State(Scope.Thread)
public class Pair {
  @Setup
  public void setUp() throws Throwable {
    Peer.setUp(Peer.ROWS);
  }

  @Benchmark
  public void take() throws Throwable {
    Peer.downAndUp();
  }

  @Benchmark
  public void give() throws Throwable {
    Peer.downAndUp();
  }

  @Benchmark
  public void tensor() throws Throwable {
    Peer.passAsTensor(Peer.leaf());
  }
}
