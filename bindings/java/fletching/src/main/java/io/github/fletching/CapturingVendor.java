// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

/** The operations for runtimes whose streams can be captured into a graph: CUDA and HIP. */
abstract class CapturingVendor extends Vendor {
  // CU_EVENT_RECORD_EXTERNAL, CU_EVENT_WAIT_EXTERNAL, and HIP's, which are newer than its table.
  private static final int EXTERNAL = 1;

  /** The handle of the last default stream: those below it are default streams too. */
  static final long LAST_DEFAULT = 2;

  private static final String CAPTURED = "one that is being captured into a graph";

  static final String CAPTURE_INVALIDATED =
      CAPTURED + ", and whose capture is invalid and not ended";

  private final CapturingCalls calls;

  CapturingVendor(Library library, CapturingCalls calls) {
    super(library);
    this.calls = calls;
  }

  /** The handle as the runtime calls the stream. */
  abstract long handleOf(DeviceStream stream);

  /** Refuses with ENOTSUP where there are no events of each launch of a graph. */
  abstract void requireExternalEvents(boolean isRecord);

  /** Refuses with ENOSYS where a function is missing that every operation needs. */
  void requireScopes() {}

  /** What a function that describes an error returns; empty for an error that it does not know. */
  abstract String textOf(Symbol function, int code);

  abstract Scope newScope(Cell out);

  /** Where the calls of an operation are made. On close the thread has what it had before. */
  abstract class Scope implements AutoCloseable {
    final Cell out;
    boolean isLost; // whether a call has failed because nothing of the context can still run

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

    /** Enters where the stream belongs. */
    abstract void enterStream(DeviceStream stream);

    /** Enters a place from which a thread can wait for any event. */
    abstract void enterAny(long deviceId);

    /** Notes where this is, for an event that is recorded now. */
    abstract void getOrigin(Origin origin);

    /** Enters where an event is from; false when it was destroyed with its context. */
    abstract boolean enterOrigin(Origin origin);

    /** The same, as far as a callback of a producer may expect it to be current. */
    abstract void enterPlace(Origin origin);

    /** The legacy default stream of where this is. */
    abstract DeviceStream resolve(DeviceStream stream);

    abstract void leave();

    /** Leaves where no error can be returned, or where it says nothing about the answer. */
    final void closeQuietly() {
      try {
        close();
      } catch (FletchingException e) {
        // It is of something else.
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
   * While it is open, the thread may make calls that are unsafe while streams are captured: then
   * they fail neither themselves nor the capture.
   */
  private final class Relaxed implements AutoCloseable {
    private final Cell mode; // the one to be set, afterwards the one before
    final int code;
    private final int before;
    private final boolean isSet;

    Relaxed(Cell mode) {
      this.mode = mode;
      boolean exists = calls.exchangeMode.exists(); // not in a runtime without modes
      C.putInt(mode.address, calls.relaxedMode);
      code = exists ? exchange() : 0;
      before = C.getInt(mode.address);
      // It may report an earlier error, and have set the mode nonetheless.
      isSet = exists && (code == 0 || before != calls.relaxedMode);
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
      int left = isSet ? exchange() : 0;
      if (left != 0 && C.getInt(mode.address) == before) {
        exchange(); // it has reported an earlier error, and exchanged nothing
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

  /** A query works in any context. */
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
          "wait_on",
          e,
          "wait before the capture begins, or pass stream.onCapture(OnCapture.EXTERNAL) for a wait"
              + " at each launch of the graph");
    }
  }

  /** Whether the stream is captured, and may be. Does not disturb the capture. */
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
        library.title + ": expected a stream whose work runs, got " + got);
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
      // A host wait for an event without the second flag spins, and takes a whole core.
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

  /** Ignores errors of the way back: they are about other work. */
  @Override
  final boolean hasPassed(Recorded recorded) {
    Relaxed mode = new Relaxed(recorded.cell(0));
    try {
      // A loss may be another device's: the event is queried nonetheless.
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

  /** Before an event can be recorded on a stream, the stream is asked whether it is captured. */
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
    // Nothing else destroys it, so it is tried without the mode too, and once more when it did not
    // come to that.
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
      // No caller can receive it.
    }
  }

  /** One failure may be left over from earlier work, so that it is tried twice. */
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
   * On another thread the per-thread default stream is another one. The legacy default stream waits
   * for every other thread's, and they for it (CUDA driver API, "Stream synchronization behavior").
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
