// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;
import static io.github.fletching.Native.POINTER;

import java.util.concurrent.atomic.AtomicInteger;

/** An event that was recorded here. The last user that closes it destroys it, on any thread. */
final class Recorded implements AutoCloseable {
  final Vendor vendor;
  final long address = Native.allocate(POINTER, "event"); // of the handle: what sync_event is
  private final AtomicInteger users = new AtomicInteger(1);

  // Where the event is from. CUDA: its context, and how to know that again. HIP: its device.
  long context;
  long contextId; // 0 where the driver has no cuCtxGetId
  int device;
  boolean isPrimary;

  Recorded(Vendor vendor) {
    this.vendor = vendor;
  }

  /** The handle, 0 before the event is created. */
  long event() {
    return C.getAddress(address);
  }

  void use() {
    users.incrementAndGet();
  }

  @Override
  public void close() {
    if (users.decrementAndGet() == 0) {
      if (event() != 0) {
        vendor.destroy(this);
      }
      C.free(address);
    }
  }
}
