// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.abi.engine;

/**
 * What becomes of an exception that must not reach C. There is nothing to initialize: that would
 * fail at the first StackOverflowError, and every later call with it.
 */
public final class Failures {
  /** What a callback that returns an errno value returns when it throws. */
  public static final int EIO = 5;

  private Failures() {}

  /**
   * Logs the exception of a callback, and keeps an interrupt. Never throws.
   *
   * @param callback the name of the callback
   * @param thrown the exception
   */
  public static void log(String callback, Throwable thrown) {
    try {
      System.getLogger("io.github.fletching")
          .log(System.Logger.Level.ERROR, callback + ": the callback threw", thrown);
    } catch (Throwable ignored) {
      // Nothing is left that could report it.
    }
    keepInterrupt(thrown);
  }

  /**
   * Sets the interrupt status that an InterruptedException has cleared: C does not see it. Does
   * nothing for other exceptions.
   *
   * @param thrown the exception
   */
  public static void keepInterrupt(Throwable thrown) {
    if (thrown instanceof InterruptedException) {
      Thread.currentThread().interrupt();
    }
  }

  /**
   * The kind of an error as DLPack's set_error names it: a Python exception.
   *
   * @param thrown the exception
   * @return the kind: {@code MemoryError} or {@code RuntimeError}
   */
  public static String kind(Throwable thrown) {
    return thrown instanceof OutOfMemoryError ? "MemoryError" : "RuntimeError";
  }
}
