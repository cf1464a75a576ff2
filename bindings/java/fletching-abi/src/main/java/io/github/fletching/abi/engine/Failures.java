// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.abi.engine;

/**
 * Handles exceptions that must not reach C. It has no static initializer, which could fail at the
 * first StackOverflowError and break every later call.
 */
public final class Failures {
  /** The result of a throwing callback that returns an errno value. */
  public static final int EIO = 5;

  private Failures() {}

  /**
   * Logs an exception thrown by a callback, and restores a lost interrupt. Never throws.
   *
   * @param callback the name of the callback
   * @param thrown the exception
   */
  public static void log(String callback, Throwable thrown) {
    try {
      System.getLogger("io.github.fletching")
          .log(System.Logger.Level.ERROR, callback + ": the callback threw", thrown);
    } catch (Throwable ignored) {
      // The logger itself failed: the error cannot be reported.
    }
    keepInterrupt(thrown);
  }

  /**
   * Restores the interrupt status that an InterruptedException has cleared, because C does not see
   * it. Ignores other exceptions.
   *
   * @param thrown the exception
   */
  public static void keepInterrupt(Throwable thrown) {
    if (thrown instanceof InterruptedException) {
      Thread.currentThread().interrupt();
    }
  }

  /**
   * The error kind for DLPack's set_error: the name of a Python exception.
   *
   * @param thrown the exception
   * @return the kind: {@code MemoryError} or {@code RuntimeError}
   */
  public static String kind(Throwable thrown) {
    return thrown instanceof OutOfMemoryError ? "MemoryError" : "RuntimeError";
  }
}
