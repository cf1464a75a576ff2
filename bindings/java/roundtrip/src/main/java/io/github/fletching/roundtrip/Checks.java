// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.roundtrip;

import io.github.fletching.testing.Cell;
import io.github.fletching.testing.Producer;
import java.util.ArrayList;
import java.util.List;

/** Counts the comparisons of one cell, and reports it: tests/roundtrip/README.md. */
final class Checks {
  static final String LANGUAGE = "java-" + Rooms.ENGINE;

  private final Producer producer;
  private final long exportedBefore = Reexport.exported();
  private final long releasedBefore = Reexport.released();
  private final List<String> problems = new ArrayList<>();
  private long asserted;

  /** Begins a cell: the counters of the producer are 0. */
  Checks(Producer producer) {
    this.producer = producer;
    producer.resetCounters();
  }

  /** The work of a cell; an exception is a problem of the cell. */
  interface Work {
    void run(Checks checks) throws Exception;
  }

  void run(Work work) {
    try {
      work.run(this);
    } catch (Throwable thrown) {
      problems.add(thrown.toString());
    }
  }

  void equal(String what, long found, long expected) {
    require(found == expected, what + ": expected " + expected + ", got " + found);
  }

  void require(boolean condition, String problem) {
    asserted++;
    if (!condition) {
      problems.add(problem);
    }
  }

  /** Adds comparisons that the producer made; 0 is a problem. */
  void compared(String what, long count) {
    asserted += count;
    require(count > 0, what + ": compared nothing");
  }

  /** Everything was released, here and by the producer, once. */
  private void requireAtRest() {
    long exported = Reexport.exported() - exportedBefore;
    require(exported > 0, "Java exported nothing");
    equal("the number of releases in Java", Reexport.released() - releasedBefore, exported);
    Producer.Counters counters = producer.counters();
    require(counters.exported > 0, "the producer exported nothing");
    equal("live_allocations", counters.liveAllocations, 0);
    equal("live_schemas", counters.liveSchemas, 0);
    equal("live_arrays", counters.liveArrays, 0);
    equal("live_streams", counters.liveStreams, 0);
    equal("the producer's released", counters.released, counters.exported);
    equal("double_released", counters.doubleReleased, 0);
  }

  /** Ends the cell; returns whether it is ok, and prints its problems. */
  boolean report(String backend, String name, String direction) {
    return report(backend, name, direction, "real");
  }

  /** The same, with a status such as "stand-in". */
  boolean report(String backend, String name, String direction, String status) {
    requireAtRest();
    String problem = problems.isEmpty() ? null : String.join("; ", problems);
    new Cell(LANGUAGE, backend, "case", name, direction)
        .status(status)
        .write(asserted, Reexport.released() - releasedBefore, problem);
    if (problem != null) {
      System.err.println(LANGUAGE + ": " + backend + " " + name + " " + direction + ": " + problem);
    }
    return problem == null;
  }
}
