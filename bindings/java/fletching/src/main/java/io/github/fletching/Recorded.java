// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/**
 * An event recorded by this library. The last user that closes it destroys it, on any thread. It
 * owns the memory needed to query and destroy it.
 */
final class Recorded extends Origin implements AutoCloseable {
  /** Events that could not be destroyed. */
  private static final AtomicLong LEAKED = new AtomicLong();

  private static final int CELLS = 4;

  final Vendor vendor;
  // Address of the handle, the value of sync_event. The cells follow the handle.
  final long address = Native.allocate((1 + CELLS) * Vendor.Cell.SIZE, "event");
  private final AtomicInteger users = new AtomicInteger(1);

  Recorded(Vendor vendor) {
    this.vendor = vendor;
  }

  static long leaked() {
    return LEAKED.get();
  }

  /** The handle; 0 before the event is created. */
  long event() {
    return C.getAddress(address);
  }

  /** Memory for a call: 0 and 1 for calls with the event, 2 and 3 around its release. */
  Vendor.Cell cell(int index) {
    return new Vendor.Cell(address + (1 + index) * Vendor.Cell.SIZE);
  }

  void use() {
    users.incrementAndGet();
  }

  /** Never throws, because release callbacks call it. */
  @Override
  public void close() {
    if (users.decrementAndGet() == 0) {
      end();
      free();
    }
  }

  /** Destroys the event for its only user, which frees the memory later. Never throws. */
  void end() {
    try {
      if (event() != 0) {
        vendor.destroy(this);
      }
    } catch (Throwable thrown) {
      leak(thrown);
    }
  }

  void free() {
    C.free(address);
  }

  private static void leak(Throwable thrown) {
    if (LEAKED.getAndIncrement() == 0) { // loggers may throw
      System.err.println(
          "fletching: warning: event: an event is leaked, because it cannot be destroyed (printed"
              + " once, and counted): "
              + thrown);
    }
  }
}
