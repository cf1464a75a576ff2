// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.fletching.AsyncNoMemory;
import io.github.fletching.abi.engine.Engines;
import io.github.fletching.testing.Counting;
import org.junit.jupiter.api.Test;

/** Memory of C: on the engine that counts, in a JVM of its own unless this one has it. */
public abstract class AllocationsSuite {
  @Test
  void isFreedOnceAlsoWhenAnAllocationFails() {
    String option = "-D" + Engines.PROPERTY + "=" + Counting.NAME;
    String report = Counting.isChosen() ? Leaks.report() : Child.runMain(Leaks.class, option);
    String expected =
        "unsent 0, slabs true, of an empty array 0, kept true, failures true,"
            + " signals [batch, end, async stream: no memory, a text], left 0 and 0, problems []";
    assertTrue(report.trim().endsWith(expected), report);
  }

  @Test
  void anAsyncStreamWithoutRoomLosesNoTask() {
    String option = "-D" + Engines.PROPERTY + "=" + Counting.NAME;
    String report =
        Counting.isChosen() ? AsyncNoMemory.report() : Child.runMain(AsyncNoMemory.class, option);
    String expected =
        "request 2, drop 1, code 12, DeviceArray[released], async stream: no memory;"
            + " request 2, drop 1, drop 2, true, device array: no memory";
    assertTrue(report.trim().endsWith(expected), report);
  }
}
