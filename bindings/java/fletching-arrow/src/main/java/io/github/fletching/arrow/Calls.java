// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.arrow;

import io.github.fletching.FletchingException;
import io.github.fletching.Owner;
import io.github.fletching.abi.Errno;
import java.util.function.Supplier;
import org.apache.arrow.memory.OutOfMemoryException;

/** Calls arrow-java and converts its exceptions to FletchingExceptions. */
final class Calls {
  private Calls() {}

  static <T> T guarded(String operation, Supplier<T> body) {
    try {
      return body.get();
    } catch (FletchingException e) {
      throw e;
    } catch (RuntimeException e) {
      int errno = errnoOf(e);
      String problem = e.getMessage() == null ? e.toString() : e.getMessage();
      throw new FletchingException(errno, operation + ": arrow-java: " + problem, e);
    }
  }

  private static int errnoOf(RuntimeException thrown) {
    for (Throwable cause = thrown; cause != null; cause = cause.getCause()) {
      if (cause instanceof OutOfMemoryException) {
        return Errno.ENOMEM;
      }
    }
    return thrown instanceof UnsupportedOperationException ? Errno.ENOSYS : Errno.EINVAL;
  }

  /** Does the same, and runs {@code close} if the call fails. */
  static <T> T guarded(String operation, Runnable close, Supplier<T> body) {
    boolean done = false;
    try {
      T result = guarded(operation, body);
      done = true;
      return result;
    } finally {
      if (!done) {
        close.run();
      }
    }
  }

  static <T extends Owner> T live(String operation, T owner) {
    if (owner.isReleased()) {
      throw new IllegalStateException(operation + ": closed or moved: expected a live struct");
    }
    return owner;
  }

  /** Adds the operation's name to an error message. */
  static <T> T named(String operation, Supplier<T> body) {
    try {
      return body.get();
    } catch (FletchingException e) {
      String text = e.getMessage();
      boolean named = text.startsWith(operation + ": ");
      throw named ? e : new FletchingException(e.errno(), operation + ": " + text, e);
    }
  }

  static void named(String operation, Runnable body) {
    named(
        operation,
        () -> {
          body.run();
          return null;
        });
  }

  static FletchingException invalid(String operation, String problem) {
    return new FletchingException(Errno.EINVAL, operation + ": " + problem);
  }
}
