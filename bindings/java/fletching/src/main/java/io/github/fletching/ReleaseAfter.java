// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import io.github.fletching.abi.DeviceType;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicLong;

/** Releases arrays when a stream's work that reads them is done, and never earlier. */
final class ReleaseAfter {
  private static final String OPERATION = "releaseAfter";
  private static final AtomicLong LEAKED = new AtomicLong();

  private final Slot slot;
  private final DeviceType type;
  private final DeviceStream stream;

  private ReleaseAfter(Slot slot, DeviceType type, DeviceStream stream) {
    this.slot = slot;
    this.type = type;
    this.stream = stream;
  }

  static long leaked() {
    return LEAKED.get();
  }

  /** Takes the array in every case. */
  static void run(DeviceArray array, DeviceStream stream) {
    Objects.requireNonNull(stream, "releaseAfter: stream is null: expected a stream");
    array.open(OPERATION);
    DeviceType type = array.deviceType();
    // The id of host memory does not identify a GPU, so the current device is used.
    DeviceStream there = stream.isOfRuntime(type) ? stream.completed(array.deviceId()) : stream;
    new ReleaseAfter(array.takeSlot(OPERATION), type, there).takeArray();
  }

  private void takeArray() {
    boolean isDone;
    try {
      isDone = Events.named(OPERATION, this::deferOrWait);
    } catch (Throwable thrown) {
      leak();
      throw thrown;
    }
    if (isDone) {
      release(slot);
    }
  }

  /** Whether no work can still read the array; otherwise the reaper has it. */
  private boolean deferOrWait() {
    if (RuntimeKind.of(type) != null) {
      // A stream of another runtime is not ordered with the work on this memory. Work of any
      // runtime may read host memory.
      stream.checked(type);
    }
    if (RuntimeKind.of(stream.deviceType()) == null && stream.handle() == 0) {
      return true; // no stream, no pending work
    }
    try {
      defer();
      return false;
    } catch (FletchingException e) {
      if (e.errno() == FletchingException.EBUSY) { // waiting would invalidate the capture
        throw Vendor.withCaptureHint(
            e,
            "keep the array until the graph is destroyed, and release it after the stream of its"
                + " last launch");
      }
      await(e);
    } catch (OutOfMemoryError e) {
      await(e);
    }
    return true;
  }

  private void defer() {
    Vendor vendor = Events.recording(type, stream.deviceType());
    Recorded recorded = null;
    DeviceStream later = null;
    try {
      recorded = vendor.record(stream.onCapture(OnCapture.REFUSE));
    } catch (FletchingException e) {
      boolean isKept = stream.onCapture() == OnCapture.KEEP;
      if (!isKept || e.errno() != FletchingException.EBUSY) {
        throw e;
      }
      later = vendor.resolve(stream.onCapture(OnCapture.REFUSE));
    }
    boolean isAdded = false;
    try {
      Reaper.add(new Reaper.Deferred(vendor, recorded, later, slot));
      isAdded = true;
    } finally {
      if (!isAdded && recorded != null) {
        recorded.close();
      }
    }
  }

  /** Waits for the stream, or throws the first error. */
  private <E extends Throwable> void await(E first) throws E {
    Vendor vendor = Vendor.of(stream.deviceType());
    if (vendor == null) {
      throw first;
    }
    try {
      vendor.finish(stream);
    } catch (FletchingException | OutOfMemoryError second) {
      first.addSuppressed(second);
      throw first;
    }
  }

  static void release(Slot slot) {
    Kind.DEVICE_ARRAY.releaseOnce(slot.address);
    slot.free();
  }

  private void leak() {
    slot.free(); // also marks the struct as released
    if (LEAKED.getAndIncrement() == 0) { // loggers may throw
      System.err.println(
          "fletching: warning: an array is leaked, because its release can neither"
              + " be deferred nor wait for the stream; the error says why (printed once, and"
              + " counted)");
    }
  }
}
