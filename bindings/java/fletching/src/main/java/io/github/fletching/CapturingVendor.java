// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

/** The operations for runtimes whose streams can be captured into a graph: CUDA and HIP. */
abstract class CapturingVendor extends Vendor {
  // CU_EVENT_RECORD_EXTERNAL, CU_EVENT_WAIT_EXTERNAL, and HIP's, which are newer than its table.
  private static final int EXTERNAL = 1;

  private final CapturingCalls calls;

  CapturingVendor(Library library, CapturingCalls calls) {
    super(library);
    this.calls = calls;
  }

  /** The handle as the runtime calls the stream. */
  private static final String CAPTURED = "one that is being captured into a graph";

  static final String CAPTURE_INVALIDATED =
      CAPTURED + ", and whose capture is invalid and not ended";

  abstract long handleOf(DeviceStream stream);

  /** Refuses with ENOTSUP where there are no events of each launch of a graph. */
  abstract void requireExternalEvents();

  /** What a function that describes an error returns; empty for an error that it does not know. */
  abstract String textOf(Symbol function, int code);

  abstract Scope newScope();

  /** Where the calls of an operation are made. On close the thread has what it had before. */
  abstract static class Scope implements AutoCloseable {
    final Cell out = new Cell();
    boolean isLost; // whether a call has failed because nothing of the context can still run

    /** Enters where the stream belongs. */
    abstract void enterStream(DeviceStream stream, long deviceId);

    // What is here is for a runtime that knows the place of an event.

    /** Enters a place from which any event can be queried. */
    void enterAny(long deviceId) {}

    /** Notes where an event is from that is recorded now. */
    void getOrigin(Recorded recorded) {}

    /** Enters where the event is from; false when it was destroyed with its context. */
    boolean enterOrigin(Recorded recorded) {
      return true;
    }

    abstract void leave();

    @Override
    public final void close() {
      try {
        leave();
      } finally {
        out.close();
      }
    }
  }

  /**
   * While it is open, the thread may make calls that are unsafe while streams are captured: then
   * they fail neither themselves nor the capture.
   */
  private final class Relaxed implements AutoCloseable {
    private final Cell mode = new Cell(); // the one to be set, afterwards the one before
    final int code;

    Relaxed() {
      C.putInt(mode.address, calls.relaxedMode);
      code = calls.exchangeMode.exists() ? exchange() : 0; // a runtime without modes
    }

    private int exchange() {
      return (int) calls.exchangeMode.call(mode.address);
    }

    @Override
    public void close() {
      CapturingVendor.this.check(calls.exchangeMode.name, closeQuietly());
    }

    /** Returns what the runtime says, for a caller that reports no error. */
    int closeQuietly() {
      int left = calls.exchangeMode.exists() && code == 0 ? exchange() : 0;
      if (left != 0) {
        exchange(); // it may have reported an earlier error
      }
      mode.close();
      return left;
    }
  }

  private void initialize() {
    library.load();
    check(calls.init, 0);
  }

  /** The result of a function that queries the event or waits for it. */
  private int call(Symbol function, SyncEvent event) {
    long handle = event.handle();
    initialize();
    try (Relaxed mode = new Relaxed();
        Scope scope = newScope()) {
      check(calls.exchangeMode.name, mode.code);
      scope.enterAny(event.deviceId());
      return (int) function.call(handle);
    }
  }

  @Override
  public final void synchronize(SyncEvent event) {
    check(calls.eventSynchronize.name, call(calls.eventSynchronize, event));
  }

  @Override
  public final boolean isReady(SyncEvent event) {
    return isDone(call(calls.eventQuery, event));
  }

  private boolean isDone(int code) {
    EventState state = calls.stateOf.apply(code);
    if (state == EventState.FAILED) {
      throw error(calls.eventQuery.name, code);
    }
    return state == EventState.DONE;
  }

  @Override
  public final void waitOn(SyncEvent event, DeviceStream stream) {
    long handle = event.handle();
    initialize();
    try (Scope scope = newScope()) {
      scope.enterStream(stream, event.deviceId());
      int flags = isCaptured(stream, scope.out) ? EXTERNAL : 0;
      check(calls.streamWaitEvent, handleOf(stream), handle, flags);
    } catch (FletchingException e) {
      throw withCaptureHint(
          "wait_on",
          e,
          "wait before the capture begins, or pass stream.onCapture(OnCapture.EXTERNAL) for a wait"
              + " at each launch of the graph");
    }
  }

  /** Whether the stream is captured, and may be. Does not disturb the capture. */
  private boolean isCaptured(DeviceStream stream, Cell out) {
    if (!calls.isCapturing.exists()) {
      return false;
    }
    C.putInt(out.address, 0);
    int code = (int) calls.isCapturing.call(handleOf(stream), out.address);
    String got = CAPTURED;
    if (code == calls.implicitCapture) {
      got =
          "the legacy default stream while a stream that is ordered with it is being captured into"
              + " a graph";
    } else {
      check(calls.isCapturing.name, code);
      int status = C.getInt(out.address);
      if (status == 0) {
        return false;
      }
      if (status == 1 && stream.onCapture() == OnCapture.EXTERNAL) {
        requireExternalEvents();
        return true;
      }
      got = status == 1 ? CAPTURED : CAPTURE_INVALIDATED;
    }
    throw refusal(got);
  }

  final FletchingException refusal(String got) {
    return new FletchingException(
        FletchingException.EBUSY,
        library.title + ": expected a stream whose work runs, got " + got);
  }

  @Override
  final void record(Recorded recorded, DeviceStream stream, long deviceId) {
    initialize();
    try (Relaxed mode = new Relaxed();
        Scope scope = newScope()) {
      check(calls.exchangeMode.name, mode.code);
      scope.enterStream(stream, deviceId);
      boolean isCaptured = isCaptured(stream, scope.out);
      scope.getOrigin(recorded);
      calls.eventDestroy.require();
      calls.eventRecord.require();
      check(calls.eventCreate, recorded.address, calls.disableTiming);
      if (isCaptured) {
        check(calls.eventRecordWithFlags, recorded.event(), handleOf(stream), EXTERNAL);
      } else {
        check(calls.eventRecord, recorded.event(), handleOf(stream));
      }
    }
  }

  @Override
  final boolean hasPassed(Recorded recorded) {
    boolean hasPassed = false;
    try (Relaxed mode = new Relaxed()) {
      // A loss may be another device's: the event is queried nonetheless.
      if (!calls.isLost.test(mode.code)) {
        check(calls.exchangeMode.name, mode.code);
      }
      hasPassed = hasPassedThere(recorded);
    } catch (FletchingException e) {
      if (!hasPassed) { // then it does not matter whether the mode is left as it should be
        throw e;
      }
    }
    return hasPassed;
  }

  private boolean hasPassedThere(Recorded recorded) {
    boolean isThere = false;
    Scope scope = newScope();
    try (scope) {
      isThere = scope.enterOrigin(recorded);
      int code = isThere ? (int) calls.eventQuery.call(recorded.event()) : 0;
      return calls.isLost.test(code) || isDone(code);
    } catch (FletchingException e) {
      if (!isThere && scope.isLost) {
        return true;
      }
      throw e;
    }
  }

  @Override
  final void destroy(Recorded recorded) {
    // Nothing else destroys it, so it is tried without the mode too, and once more when it did not
    // come to that.
    runRelaxed(
        () -> {
          if (!tryDestroy(recorded)) {
            tryDestroy(recorded);
          }
        });
  }

  private boolean tryDestroy(Recorded recorded) {
    boolean isTried = false;
    try (Scope scope = newScope()) {
      boolean isThere = scope.enterOrigin(recorded);
      isTried = true;
      if (isThere) {
        calls.eventDestroy.call(recorded.event());
      }
    } catch (FletchingException e) {
      return isTried;
    }
    return true;
  }

  @Override
  final void runRelaxed(Runnable body) {
    Relaxed mode = new Relaxed();
    try {
      body.run();
    } finally {
      mode.closeQuietly();
    }
  }

  @Override
  final FletchingException error(String function, int code) {
    String name = textOf(calls.getErrorName, code);
    return error(
        function,
        code,
        name.isEmpty() ? calls.nameOf.apply(code) : name,
        textOf(calls.getErrorString, code),
        code == calls.invalidHandle);
  }
}
