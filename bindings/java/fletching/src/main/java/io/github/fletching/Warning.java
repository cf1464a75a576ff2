// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

/** A harmless rule violation by a foreign producer or consumer. */
public final class Warning {
  private final String rule;
  private final String message;

  Warning(String rule, String message) {
    this.rule = rule;
    this.message = message;
  }

  /**
   * The rule id, as in docs/reference/rules, such as {@code device-array.reserved-zero}.
   *
   * @return the rule id
   */
  public String rule() {
    return rule;
  }

  /**
   * The actual and the expected value.
   *
   * @return the message
   */
  public String message() {
    return message;
  }

  @Override
  public String toString() {
    return message + " (rule " + rule + ")";
  }
}
