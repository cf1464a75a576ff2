// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.fletching.AsyncOutOfMemory;
import io.github.fletching.abi.engine.Engines;
import io.github.fletching.testing.CountingEngine;
import org.junit.jupiter.api.Test;

/**
 * Native memory on the counting engine, in a separate JVM unless this JVM already uses that engine.
 */
class AllocationsTest {
  private static final String OPTION = "-D" + Engines.PROPERTY + "=" + CountingEngine.NAME;

  @Test
  void failedAllocationFreesMemoryOnce() {
    String report = CountingEngine.isChosen() ? Leaks.report() : Child.runMain(Leaks.class, OPTION);
    String expected =
        "events 0 and 0, 0 and 0, unsent 0, slabs true, of an empty array 0, kept true, failures"
            + " true, signals [batch, end, async stream: no memory, a text], left 0 and 0, problems"
            + " []";
    assertTrue(report.trim().endsWith(expected), report);
  }

  @Test
  void asyncStreamWithoutMemoryLosesNoTask() {
    String report =
        CountingEngine.isChosen()
            ? AsyncOutOfMemory.report()
            : Child.runMain(AsyncOutOfMemory.class, OPTION);
    String expected =
        "request 2, drop 1, code 12, DeviceArray[released], async stream: no memory;"
            + " request 2, cancel, drop 1, device array: no memory;"
            + " request 2, drop 1, drop 2, true, device array: no memory; lost 0";
    assertTrue(report.trim().endsWith(expected), report);
  }

  @Test
  void memoryIsReusedAndBounded() {
    String report =
        CountingEngine.isChosen() ? MemoryReuse.report() : Child.runMain(MemoryReuse.class, OPTION);
    String expected =
        "not used again [], owners in a slab 64, forgotten true, reserve 17, bytes [400, 312],"
            + " at the limit array: no memory";
    assertTrue(report.trim().endsWith(expected), report);
  }
}
