// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

/** An exception whose message cannot be read. */
public final class UnreadableException extends RuntimeException {
  private static final long serialVersionUID = 1;

  @Override
  public String toString() {
    throw new IllegalStateException("on purpose");
  }
}
