// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

import io.github.fletching.abi.DeviceType;

/**
 * A runtime that this library calls directly: the waiter of its device types, which also records
 * events. All calls of an operation are made on the caller's thread.
 */
abstract class Vendor implements Waiter {
  final Library library;

  Vendor(Library library) {
    this.library = library;
  }

  /** Returns the runtime of a device type; null for none. Loads no library. */
  static Vendor of(DeviceType deviceType) {
    RuntimeKind kind = RuntimeKind.of(deviceType);
    return kind == null ? null : kind.vendor();
  }

  /** Records an event that completes when all current work on the stream is done. */
  final Recorded record(DeviceStream stream) {
    Recorded recorded = new Recorded(this);
    try {
      record(recorded, stream);
      return recorded;
    } catch (Throwable thrown) {
      recorded.close();
      throw thrown;
    }
  }

  /** Stores the event as soon as it is created. */
  abstract void record(Recorded recorded, DeviceStream stream);

  /** Whether no work before the event can still run. After an error the answer is unknown. */
  abstract boolean hasPassed(Recorded recorded);

  /** Whether work can never run on the stream again, because its context or device is lost. */
  abstract boolean isLost(DeviceStream stream);

  /** Destroys the event, unless it was destroyed with its context. */
  abstract void destroy(Recorded recorded);

  /** Finishes other work on the queue after a failed command, before a release. Never throws. */
  abstract void settle(Recorded recorded);

  /**
   * Runs the body at the event's origin, or anywhere for null, without interfering with a capture
   * of another thread.
   */
  abstract void runAtOrigin(Recorded recorded, Runnable body);

  /** Whether the calling thread has no current device. */
  boolean isNoneCurrent() {
    return false;
  }

  /** Blocks until the work on the stream is done. */
  abstract void finish(DeviceStream stream);

  /** Returns a stream that refers to the same default stream on another thread. */
  abstract DeviceStream resolve(DeviceStream stream);

  /** The error of a failed function. */
  abstract FletchingException error(String function, int code);

  final void check(String function, int code) {
    if (code != 0) { // 0 is success in all runtimes
      throw error(function, code);
    }
  }

  final void check(Symbol function, long... arguments) {
    check(function.name, (int) function.call(arguments));
  }

  /** The name and the text describe the code, and may be empty. */
  final FletchingException error(
      String function, int code, String name, String text, boolean isInvalidHandle) {
    String number = name.isEmpty() ? String.valueOf(code) : name + " (" + code + ")";
    String message =
        String.format(
            "%s: %s failed with %s%s%s",
            library.title, function, number, text.isEmpty() ? "" : ": ", text);
    if (!isInvalidHandle) {
      return new FletchingException(FletchingException.EIO, message);
    }
    return FletchingException.invalid(
        message
            + "; hint: check that stream and event are alive, and that sync_event is the address of"
            + " the event's handle, not the handle");
  }

  /** Adds a hint to the error of a captured stream. Returns any other error unchanged. */
  static FletchingException withCaptureHint(FletchingException error, String hint) {
    return error.errno() != FletchingException.EBUSY
        ? error
        : new FletchingException(
            FletchingException.EBUSY, error.getMessage() + "; hint: " + hint, error);
  }

  /** Memory for two numbers that a function writes. */
  static final class Cell implements AutoCloseable {
    static final long SIZE = 16;

    final long address;
    private final boolean isLent;

    Cell() {
      address = Native.allocate(SIZE, "call of a runtime");
      isLent = false;
    }

    /** Uses memory that the caller owns. */
    Cell(long address) {
      this.address = address;
      isLent = true;
    }

    @Override
    public void close() {
      if (!isLent) {
        C.free(address);
      }
    }
  }
}
