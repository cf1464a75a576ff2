// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

/** The operations of runtimes that can capture streams into graphs: CUDA and HIP. */
abstract class CapturingVendor extends Vendor {
  // CU_EVENT_RECORD_EXTERNAL and CU_EVENT_WAIT_EXTERNAL. HIP's constants are newer than its table.
  private static final int EXTERNAL = 1;

  /** The largest handle of a default stream. Lower handles are default streams too. */
  static final long LAST_DEFAULT = 2;

  private static final String CAPTURED = "one that is being captured into a graph";

  static final String CAPTURE_INVALIDATED =
      CAPTURED + ", and whose capture is invalid and not ended";

  private final CapturingCalls calls;

  CapturingVendor(Library library, CapturingCalls calls) {
    super(library);
    this.calls = calls;
  }

  /** The stream's handle in the runtime. */
  abstract long handleOf(DeviceStream stream);

  /** Throws ENOTSUP if the runtime lacks events for each launch of a graph. */
  abstract void requireExternalEvents(boolean isRecord);

  /** Throws ENOSYS if a function needed by every operation is missing. */
  void requireScopes() {}

  /** The result of a function that describes an error; empty for unknown errors. */
  abstract String textOf(Symbol function, int code);

  abstract Scope newScope(Cell out);

  /** The context or device of an operation's calls. Closing it restores the thread's state. */
  abstract class Scope implements AutoCloseable {
    final Cell out;
    boolean isLost; // a call has failed because no work of the context can still run

    Scope(Cell out) {
      this.out = out;
    }

    final void checkHere(Symbol function, long... arguments) {
      checkResult(function, (int) function.call(arguments));
    }

    final void checkResult(Symbol function, int code) {
      isLost |= calls.isLost.test(code);
      check(function.name, code);
    }

    /** Enters the stream's context or device. */
    abstract void enterStream(DeviceStream stream);

    /** Enters a context in which the thread can wait for any event. */
    abstract void enterAny(long deviceId);

    /** Stores the current context or device, for an event recorded in it. */
    abstract void getOrigin(Origin origin);

    /** Enters an event's context or device. Returns false if the event was destroyed with it. */
    abstract boolean enterOrigin(Origin origin);

    /** Enters the context or device that a producer's callback may expect to be current. */
    abstract void enterPlace(Origin origin);

    /** The legacy default stream of the current context or device. */
    abstract DeviceStream resolve(DeviceStream stream);

    abstract void leave();

    /** Closes the scope where an error cannot be returned or does not affect the result. */
    final void closeQuietly() {
      try {
        close();
      } catch (FletchingException e) {
        // The error concerns other work.
      }
    }

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
   * Relaxes the thread's capture mode until closed. Calls that are unsafe during a capture then
   * neither fail nor invalidate the capture.
   */
  private final class Relaxed implements AutoCloseable {
    private final Cell mode; // input: the new mode; output: the previous one
    final int code;
    private final int before;
    private final boolean isSet;

    Relaxed(Cell mode) {
      this.mode = mode;
      boolean exists = calls.exchangeMode.exists(); // older runtimes have no modes
      C.putInt(mode.address, calls.relaxedMode);
      code = exists ? exchange() : 0;
      before = C.getInt(mode.address);
      // The call may report an earlier error and still set the mode.
      isSet = exists && (code == 0 || before != calls.relaxedMode);
    }

    private int exchange() {
      return (int) calls.exchangeMode.call(mode.address);
    }

    @Override
    public void close() {
      CapturingVendor.this.check(calls.exchangeMode.name, closeQuietly());
    }

    /** Returns the runtime's error code, for callers that report no error. */
    int closeQuietly() {
      int left = isSet ? exchange() : 0;
      if (left != 0 && C.getInt(mode.address) == before) {
        exchange(); // it reported an earlier error and exchanged nothing
      }
      mode.close();
      return left;
    }
  }

  private void initialize() {
    library.load();
    requireScopes();
    check(calls.init, 0);
  }

  @Override
  public final void synchronize(SyncEvent event) {
    long handle = event.handle();
    initialize();
    calls.eventSynchronize.require();
    try (Relaxed mode = new Relaxed(new Cell());
        Scope scope = newScope(new Cell())) {
      check(calls.exchangeMode.name, mode.code);
      scope.enterAny(event.deviceId());
      check(calls.eventSynchronize, handle);
    }
  }

  /** Queries the event in any context. */
  @Override
  public final boolean isReady(SyncEvent event) {
    long handle = event.handle();
    initialize();
    calls.eventQuery.require();
    try (Relaxed mode = new Relaxed(new Cell())) {
      check(calls.exchangeMode.name, mode.code);
      return isDone((int) calls.eventQuery.call(handle));
    }
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
    calls.streamWaitEvent.require();
    try (Scope scope = newScope(new Cell())) {
      scope.enterStream(stream);
      int flags = 0;
      if (isCaptured(stream, stream.onCapture(), scope.out)) {
        requireExternalEvents(false);
        flags = EXTERNAL;
      }
      check(calls.streamWaitEvent, handleOf(stream), handle, flags);
    } catch (FletchingException e) {
      throw withCaptureHint(
          e,
          "wait before the capture begins, or pass stream.onCapture(OnCapture.EXTERNAL) for a wait"
              + " at each launch of the graph");
    }
  }

  /** Whether the stream is being captured and may be. Does not disturb the capture. */
  private boolean isCaptured(DeviceStream stream, OnCapture choice, Cell out) {
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
      if (status == 1 && choice == OnCapture.EXTERNAL) {
        return true;
      }
      got = status == 1 ? CAPTURED : CAPTURE_INVALIDATED;
    }
    throw refusal(got);
  }

  final FletchingException refusal(String got) {
    return new FletchingException(
        FletchingException.EBUSY,
        library.title + ": expected a stream that is not captured, got " + got);
  }

  @Override
  final void record(Recorded recorded, DeviceStream stream) {
    initialize();
    calls.eventCreate.require();
    calls.eventDestroy.require();
    calls.eventRecord.require();
    try (Relaxed mode = new Relaxed(recorded.cell(0));
        Scope scope = newScope(recorded.cell(1))) {
      check(calls.exchangeMode.name, mode.code);
      scope.enterStream(stream);
      boolean isCaptured = isCaptured(stream, stream.onCapture(), scope.out);
      scope.getOrigin(recorded);
      if (isCaptured) {
        requireExternalEvents(true);
      }
      // Without blockingSync, a host wait for the event spins and occupies a core.
      int flags = calls.disableTiming | calls.blockingSync;
      int code = (int) calls.eventCreate.call(recorded.address, flags);
      if (code != 0) {
        C.putAddress(recorded.address, 0);
      }
      check(calls.eventCreate.name, code);
      if (isCaptured) {
        check(calls.eventRecordWithFlags, recorded.event(), handleOf(stream), EXTERNAL);
      } else {
        check(calls.eventRecord, recorded.event(), handleOf(stream));
      }
    }
  }

  /** Ignores errors while restoring the thread's state: they concern other work. */
  @Override
  final boolean hasPassed(Recorded recorded) {
    Relaxed mode = new Relaxed(recorded.cell(0));
    try {
      // The loss may be another device's, so the event is still queried.
      if (!calls.isLost.test(mode.code)) {
        check(calls.exchangeMode.name, mode.code);
      }
      return hasPassedThere(recorded);
    } finally {
      mode.closeQuietly();
    }
  }

  private boolean hasPassedThere(Recorded recorded) {
    boolean isThere = false;
    Scope scope = newScope(recorded.cell(1));
    try {
      isThere = scope.enterOrigin(recorded);
      int code = isThere ? (int) calls.eventQuery.call(recorded.event()) : 0;
      return calls.isLost.test(code) || isDone(code);
    } catch (FletchingException e) {
      if (!isThere && scope.isLost) {
        return true;
      }
      throw e;
    } finally {
      scope.closeQuietly();
    }
  }

  @Override
  final void settle(Recorded recorded) {}

  /** Uses the capture query with which record begins. */
  @Override
  final boolean isLost(DeviceStream stream) {
    Scope scope = newScope(new Cell());
    try {
      scope.enterStream(stream);
      if (calls.isCapturing.exists()) {
        scope.checkHere(calls.isCapturing, handleOf(stream), scope.out.address);
      }
      return false;
    } catch (FletchingException e) {
      return scope.isLost;
    } finally {
      scope.closeQuietly();
    }
  }

  @Override
  final void destroy(Recorded recorded) {
    // Only this call destroys the event. So it continues if the mode cannot be set, and tries again
    // if the event's context cannot be entered.
    Relaxed mode = new Relaxed(recorded.cell(0));
    try {
      tryDestroy(recorded);
    } catch (FletchingException e) {
      tryDestroy(recorded);
    } finally {
      mode.closeQuietly();
    }
  }

  private void tryDestroy(Recorded recorded) {
    Scope scope = newScope(recorded.cell(1));
    try {
      if (scope.enterOrigin(recorded)) {
        calls.eventDestroy.call(recorded.event());
      }
    } finally {
      scope.closeQuietly();
    }
  }

  @Override
  final void runAtOrigin(Recorded recorded, Runnable body) {
    Relaxed mode = new Relaxed(recorded == null ? new Cell() : recorded.cell(2));
    try {
      runAtOrigin(newScope(recorded == null ? new Cell() : recorded.cell(3)), recorded, body);
    } finally {
      mode.closeQuietly();
    }
  }

  private static void runAtOrigin(Scope scope, Origin origin, Runnable body) {
    try {
      enterPlace(scope, origin);
      body.run();
    } finally {
      scope.closeQuietly();
    }
  }

  private static void enterPlace(Scope scope, Origin origin) {
    try {
      if (origin != null) {
        scope.enterPlace(origin);
      }
    } catch (FletchingException e) {
      // No caller can receive the error.
    }
  }

  /** Tries twice, because the first failure may be left over from earlier work. */
  @Override
  final void finish(DeviceStream stream) {
    try {
      tryFinish(stream);
    } catch (FletchingException e) {
      if (e.errno() == FletchingException.EBUSY) {
        throw e;
      }
      tryFinish(stream);
    }
  }

  private void tryFinish(DeviceStream stream) {
    initialize();
    calls.streamSynchronize.require();
    try (Relaxed mode = new Relaxed(new Cell());
        Scope scope = newScope(new Cell())) {
      check(calls.exchangeMode.name, mode.code);
      scope.enterStream(stream);
      isCaptured(stream, OnCapture.REFUSE, scope.out);
      check(calls.streamSynchronize, handleOf(stream));
    }
  }

  /**
   * Replaces a default stream with the legacy one: the per-thread default stream differs on another
   * thread. The legacy default stream and all per-thread default streams wait for each other (CUDA
   * driver API, "Stream synchronization behavior").
   */
  @Override
  final DeviceStream resolve(DeviceStream stream) {
    if (Long.compareUnsigned(stream.handle(), LAST_DEFAULT) > 0) {
      return stream;
    }
    initialize();
    try (Scope scope = newScope(new Cell())) {
      scope.enterStream(stream);
      return scope.resolve(stream);
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
