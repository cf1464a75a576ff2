// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

/** A rule that a foreign producer or consumer did not keep, and that does no harm. */
public final class Warning {
  private final String rule;
  private final String message;

  Warning(String rule, String message) {
    this.rule = rule;
    this.message = message;
  }

  /**
   * The id of the rule in docs/reference/rules: {@code device-array.reserved-zero}.
   *
   * @return the id of the rule in docs/reference/rules
   */
  public String rule() {
    return rule;
  }

  /**
   * What was found, and what was expected.
   *
   * @return the text
   */
  public String message() {
    return message;
  }

  @Override
  public String toString() {
    return message + " (rule " + rule + ")";
  }
}
