// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;
import static io.github.fletching.Native.POINTER;

/** A rule violation reported by {@link Validation}. */
public final class Finding {
  private final String[] texts = new String[6];

  /** Copies a FletchingFinding struct, which consists of strings. */
  Finding(long finding) {
    for (int i = 0; i < texts.length; i++) {
      texts[i] = Native.printable(C.getAddress(finding + (long) i * POINTER));
    }
  }

  /**
   * The rule id, such as {@code stream.callbacks-set}.
   *
   * @return the id
   */
  public String rule() {
    return texts[0];
  }

  /**
   * The severity.
   *
   * @return {@code error}, {@code warning} or {@code note}
   */
  public String severity() {
    return texts[1];
  }

  /**
   * The party that broke the rule.
   *
   * @return {@code producer} or {@code consumer}; {@code both} if unknown
   */
  public String party() {
    return texts[2];
  }

  /**
   * The path of the struct, such as {@code get_next[2].array.children[1]}.
   *
   * @return the path
   */
  public String path() {
    return texts[3];
  }

  /**
   * The expected and the actual value.
   *
   * @return the message
   */
  public String message() {
    return texts[4];
  }

  /**
   * The last calls on a stream with their results, one per line.
   *
   * @return the calls; empty for an array
   */
  public String history() {
    return texts[5];
  }

  @Override
  public String toString() {
    return path() + ": " + message() + " (rule " + rule() + ")";
  }
}
