// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;
import static io.github.fletching.Native.POINTER;

/** A broken rule, as {@link Validation} reports it. */
public final class Finding {
  private final String[] texts = new String[6];

  /** Copies a struct FletchingFinding, which has only texts. */
  Finding(long finding) {
    for (int i = 0; i < texts.length; i++) {
      texts[i] = Native.printable(C.getAddress(finding + (long) i * POINTER));
    }
  }

  /**
   * The id of the rule: {@code stream.callbacks-set}.
   *
   * @return the id
   */
  public String rule() {
    return texts[0];
  }

  /**
   * How severe it is.
   *
   * @return {@code error} or {@code warning}
   */
  public String severity() {
    return texts[1];
  }

  /**
   * Who broke the rule.
   *
   * @return {@code producer} or {@code consumer}; {@code both} if not known
   */
  public String party() {
    return texts[2];
  }

  /**
   * The struct: {@code get_next[2].array.children[1]}.
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
