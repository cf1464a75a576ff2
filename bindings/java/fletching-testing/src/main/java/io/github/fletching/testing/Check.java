// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

/** One test, which continues after a mismatch and writes a cell at its end. */
public final class Check {
  private final String name;
  private final Cell cell;
  private final Consumer<Check> body;
  private final List<String> problems = new ArrayList<>();
  private long asserted;

  Check(String name, Cell cell, Consumer<Check> body) {
    this.name = name;
    this.cell = cell;
    this.body = body;
  }

  /** Returns the name of the test. */
  public String name() {
    return name;
  }

  /** Counts one comparison; {@code problem} is null if both sides agree. */
  void expect(String problem) {
    asserted++;
    if (problem != null) {
      problems.add(problem);
    }
  }

  /** Returns the first problem, or null. */
  String firstProblem() {
    return problems.isEmpty() ? null : problems.get(0);
  }

  /** Runs the test; throws an error that lists every mismatch, one per line. */
  public void run() {
    try {
      body.accept(this);
    } catch (RuntimeException | Error e) {
      problems.add(name + ": " + e);
    }
    if (asserted == 0) {
      problems.add(name + ": nothing was compared");
    }
    cell.write(asserted, firstProblem());
    if (!problems.isEmpty()) {
      throw new AssertionError(String.join("\n", problems));
    }
  }
}
