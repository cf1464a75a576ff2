// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.roundtrip;

import com.sun.jna.Pointer;
import io.github.fletching.testing.suite.Conformance;
import io.github.fletching.testing.suite.ConformanceSubject;

/**
 * The library as the subject of the conformance suite in this JVM. The system property
 * io.github.fletching.engine selects the engine, and with it the round trip's column.
 */
public final class Program {
  private static final Conformance.Subject SUBJECT =
      ConformanceSubject.views("java-" + System.getProperty("io.github.fletching.engine"));

  private Program() {}

  /**
   * Runs the groups. The suite writes the cells (tests/roundtrip/README.md). Exits with 0 on
   * success, 1 on failure.
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

  /** Returns the address of the subject's table, for peers in the JVM's process. */
  public static long subject() {
    SUBJECT.write();
    return Pointer.nativeValue(SUBJECT.getPointer());
  }
}
