// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import io.github.fletching.abi.engine.Failures;

/**
 * An errno value and a message, as the C interfaces return them. Of an error that a stream
 * returned, the value is the producer's and the message is what its get_last_error said, fit to
 * print.
 */
public final class FletchingException extends RuntimeException {
  private static final long serialVersionUID = 1;

  static final int ENOENT = 2;
  static final int EIO = 5;
  static final int ENOMEM = 12;
  static final int EBUSY = 16;
  static final int EINVAL = 22;
  static final int EAGAIN = ofSystem(11, 35, 11);
  static final int ENOSYS = ofSystem(38, 78, 40);
  static final int ENOTSUP = ofSystem(95, 45, 129);

  /** The errno value. */
  private final int errno;

  /**
   * An exception for a stream of yours to throw. A value below 1, success in C, becomes EIO.
   *
   * @param errno the errno value
   * @param message the text, which may be null
   */
  public FletchingException(int errno, String message) {
    this(errno, message, null);
  }

  /**
   * The same with a cause. It and the message may be null.
   *
   * @param errno the errno value
   * @param message the text, which may be null
   * @param cause the cause, which may be null
   */
  public FletchingException(int errno, String message, Throwable cause) {
    super(message == null || message.isEmpty() ? "errno " + positive(errno) : message, cause);
    this.errno = positive(errno);
  }

  /** For {@link Native#NO_MEMORY}: without a stack trace, because every thread may throw it. */
  FletchingException() {
    super("no memory", null, false, false);
    errno = ENOMEM;
  }

  /**
   * The errno value, at least 1.
   *
   * @return the errno value, at least 1
   */
  public int errno() {
    return errno;
  }

  static FletchingException invalid(String message) {
    return new FletchingException(EINVAL, message);
  }

  static FletchingException unsupported(String message) {
    return new FletchingException(ENOTSUP, message);
  }

  static FletchingException noMemory(String operation) {
    return new FletchingException(ENOMEM, operation + ": no memory");
  }

  private static int positive(int errno) {
    return errno < 1 ? EIO : errno;
  }

  private static int ofSystem(int linux, int macos, int windows) {
    String name = System.getProperty("os.name");
    return name.startsWith("Windows") ? windows : name.startsWith("Mac") ? macos : linux;
  }

  /** A rule that another party broke. The ids are in docs/reference/rules. */
  static FletchingException brokenRule(String rule, String message) {
    return invalid(message + " (rule " + rule + ")");
  }

  /** What a foreign callback returned. A value below 1 is in the text, because it becomes EIO. */
  static FletchingException foreign(int code, String text) {
    String message = code < 1 ? (text + " (code " + code + ")").trim() : text;
    return new FletchingException(code, message);
  }

  /** As {@link #of} for what this thread caught, which keeps its interrupt. */
  static FletchingException caught(Throwable thrown) {
    Failures.keepInterrupt(thrown);
    return of(thrown);
  }

  /**
   * What code of the user's threw, as it is reported to C. See {@link DeviceArrayStream#of} for the
   * errno values. Throws nothing.
   */
  static FletchingException of(Throwable thrown) {
    if (thrown instanceof FletchingException) {
      return (FletchingException) thrown;
    }
    try {
      return new FletchingException(errnoOf(thrown), textOf(thrown), thrown);
    } catch (OutOfMemoryError noMemory) {
      return Native.NO_MEMORY;
    }
  }

  private static String textOf(Throwable thrown) {
    try {
      return "" + thrown;
    } catch (Throwable again) { // a toString that throws itself
      return "no message";
    }
  }

  private static int errnoOf(Throwable thrown) {
    if (thrown instanceof OutOfMemoryError) {
      return ENOMEM;
    }
    if (thrown instanceof UnsupportedOperationException) {
      return ENOSYS;
    }
    return thrown instanceof IllegalArgumentException ? EINVAL : EIO;
  }
}
