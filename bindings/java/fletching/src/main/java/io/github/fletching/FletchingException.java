// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import io.github.fletching.abi.engine.Failures;

/**
 * An errno value and a message, as used by the C interfaces. For an error returned by a stream,
 * they are the producer's value and the message from get_last_error, made printable.
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

  /** The error number, which the serialized form contains. */
  private final int errno;

  /**
   * Creates an exception, for example to throw from a stream's iterator. A value below 1 becomes
   * EIO, because 0 is success in C.
   *
   * @param errno the errno value
   * @param message the message, which may be null
   */
  public FletchingException(int errno, String message) {
    this(errno, message, null);
  }

  /**
   * Creates an exception with a cause.
   *
   * @param errno the errno value
   * @param message the message, which may be null
   * @param cause the cause, which may be null
   */
  public FletchingException(int errno, String message, Throwable cause) {
    super(message == null || message.isEmpty() ? "errno " + positive(errno) : message, cause);
    this.errno = positive(errno);
  }

  /** Creates {@link Native#NO_MEMORY}. It has no stack trace, because all threads share it. */
  FletchingException() {
    super("no memory", null, false, false);
    errno = ENOMEM;
  }

  /**
   * The errno value, at least 1.
   *
   * @return the errno value
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

  /** Returns a copy with the operation in front of the message, or this if it is there already. */
  FletchingException named(String operation) {
    String prefix = operation + ": ";
    if (getMessage().startsWith(prefix)) {
      return this;
    }
    FletchingException named = new FletchingException(errno, prefix + getMessage(), getCause());
    named.setStackTrace(getStackTrace());
    for (Throwable suppressed : getSuppressed()) {
      named.addSuppressed(suppressed);
    }
    return named;
  }

  private static int positive(int errno) {
    return errno < 1 ? EIO : errno;
  }

  private static int ofSystem(int linux, int macos, int windows) {
    String name = System.getProperty("os.name");
    return name.startsWith("Windows") ? windows : name.startsWith("Mac") ? macos : linux;
  }

  /** The error for a rule broken by another party. The ids are listed in docs/reference/rules. */
  static FletchingException brokenRule(String rule, String message) {
    return invalid(message + " (rule " + rule + ")");
  }

  /** The error of a foreign callback. A code below 1 becomes EIO and is added to the message. */
  static FletchingException foreign(int code, String text) {
    String message = code < 1 ? (text + " (code " + code + ")").trim() : text;
    return new FletchingException(code, message);
  }

  /** Converts an exception caught on this thread as {@link #of} does. Restores a lost interrupt. */
  static FletchingException caught(Throwable thrown) {
    Failures.keepInterrupt(thrown);
    return of(thrown);
  }

  /**
   * Converts an exception of user code for C. See {@link DeviceArrayStream#of} for the errno
   * values. Never throws.
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
    } catch (Throwable again) { // toString threw
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
