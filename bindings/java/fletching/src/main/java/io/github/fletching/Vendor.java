// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

import io.github.fletching.abi.DeviceType;

/**
 * A runtime that is called directly: the waiter of its device types, which records events too. All
 * calls of an operation are made on the caller's thread.
 */
abstract class Vendor implements Waiter {
  final Library library;

  Vendor(Library library) {
    this.library = library;
  }

  /** Null for a device type without such a runtime. Nothing is loaded. */
  static Vendor of(DeviceType deviceType) {
    RuntimeKind kind = RuntimeKind.of(deviceType);
    return kind == null ? null : kind.vendor();
  }

  /** Records an event that happens when all is done that is on the stream now. */
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

  /** Sets the event as soon as there is one. */
  abstract void record(Recorded recorded, DeviceStream stream);

  /** Whether nothing that was on the stream can still run. An error says nothing about it. */
  abstract boolean hasPassed(Recorded recorded);

  /** Whether work can never run on the stream again, because its context or device is lost. */
  abstract boolean isLost(DeviceStream stream);

  /** Destroys the event, unless it was destroyed with its context. */
  abstract void destroy(Recorded recorded);

  /** Finishes other work on the queue after a failed command, before a release. Throws nothing. */
  abstract void settle(Recorded recorded);

  /**
   * Runs the body where the event is from, anywhere for null, and so that no other thread's capture
   * is in its way, nor it in theirs.
   */
  abstract void runAtOrigin(Recorded recorded, Runnable body);

  /** Whether the calling thread has no current device. */
  boolean isNoneCurrent() {
    return false;
  }

  /** Blocks until the work on the stream is done. */
  abstract void finish(DeviceStream stream);

  /** A stream for later use on another thread: a default stream names the same one there. */
  abstract DeviceStream resolve(DeviceStream stream);

  /** The error of a function that has failed. */
  abstract FletchingException error(String function, int code);

  final void check(String function, int code) {
    if (code != 0) { // which is success everywhere
      throw error(function, code);
    }
  }

  final void check(Symbol function, long... arguments) {
    check(function.name, (int) function.call(arguments));
  }

  /** The name and the text are about the code, or empty. */
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

  /** An error of a captured stream says what to do. Any other one is as it was. */
  static FletchingException withCaptureHint(
      String operation, FletchingException error, String hint) {
    return error.errno() != FletchingException.EBUSY
        ? error
        : new FletchingException(
            FletchingException.EBUSY,
            operation + ": " + error.getMessage() + "; hint: " + hint,
            error);
  }

  /** Room for two numbers that a function writes. */
  static final class Cell implements AutoCloseable {
    static final long SIZE = 16;

    final long address;
    private final boolean isLent;

    Cell() {
      address = Native.allocate(SIZE, "call of a runtime");
      isLent = false;
    }

    /** In memory of the caller's. */
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
