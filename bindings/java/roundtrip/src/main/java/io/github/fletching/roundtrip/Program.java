// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.roundtrip;

import com.sun.jna.Pointer;
import io.github.fletching.testing.suite.Conformance;
import io.github.fletching.testing.suite.ConformanceSubject;

/**
 * The library as the subject of the conformance suite in this JVM. The system property
 * io.github.fletching.engine chooses the engine, and so the column of the round trip.
 */
public final class Program {
  private static final Conformance.Subject SUBJECT =
      ConformanceSubject.views("java-" + System.getProperty("io.github.fletching.engine"));

  private Program() {}

  /**
   * Plays the groups. The suite writes the cells (tests/roundtrip/README.md). Exit codes: 0 nothing
   * is wrong, 1 something is.
   */
  public static void main(String[] groups) {
    int wrong = 0;
    for (String group : groups) {
      Conformance.Results results = Conformance.run(SUBJECT, group, null);
      results.wrong.forEach(System.err::println);
      System.out.println(group + ": " + results.counts);
      wrong += results.wrong.size();
    }
    ConformanceSubject.finish();
    System.exit(wrong > 0 ? 1 : 0);
  }

  /** Returns the address of the subject's table, for peers in the process of the JVM. */
  public static long subject() {
    SUBJECT.write();
    return Pointer.nativeValue(SUBJECT.getPointer());
  }
}
