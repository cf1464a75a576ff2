// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;
import static io.github.fletching.Native.POINTER;

/**
 * OpenCL. A wait is enqueued on a queue of the event's cl_context. OpenCL has no stream capture.
 */
final class Opencl extends Vendor {
  static final Opencl INSTANCE = new Opencl();

  private Opencl() {
    super(OpenclTable.LIBRARY);
  }

  @Override
  FletchingException error(String function, int code) {
    String name = OpenclTable.nameOf(code);
    return error(function, code, name, "", code == OpenclTable.CL_INVALID_EVENT);
  }

  private static long queueOf(DeviceStream stream) {
    if (stream.handle() == 0) {
      throw FletchingException.invalid(
          "stream is NULL: expected a cl_command_queue, because OpenCL has no default queue");
    }
    return stream.handle();
  }

  /** Queries an event or a queue. The result may be narrower than a pointer. */
  private long get(Symbol function, long of, int what, int size, Cell out) {
    C.putLong(out.address, size == Integer.BYTES ? OpenclTable.CL_QUEUED : 0);
    check(function, of, what, size, out.address, 0);
    return C.getAddress(out.address);
  }

  /** The queue of an event; 0 for a user event. */
  private long queueOf(long event) {
    try (Cell out = new Cell()) {
      return queueOf(event, out);
    }
  }

  private long queueOf(long event, Cell out) {
    int what = OpenclTable.CL_EVENT_COMMAND_QUEUE;
    return get(OpenclTable.CL_GET_EVENT_INFO, event, what, POINTER, out);
  }

  private int stateOf(long event) {
    try (Cell out = new Cell()) {
      return stateOf(event, out);
    }
  }

  private int stateOf(long event, Cell out) {
    int what = OpenclTable.CL_EVENT_COMMAND_EXECUTION_STATUS;
    return (int) get(OpenclTable.CL_GET_EVENT_INFO, event, what, Integer.BYTES, out);
  }

  private boolean isDone(int state) {
    if (OpenclTable.stateOf(state) == EventState.FAILED) {
      throw error("the command of the event", state);
    }
    return OpenclTable.stateOf(state) == EventState.DONE;
  }

  @Override
  public boolean isReady(SyncEvent event) {
    long handle = event.handle();
    library.load();
    int state = stateOf(handle);
    // A command may stay queued until a flush. Without a flush, a polling caller may never see it
    // complete.
    long producer = state == OpenclTable.CL_QUEUED ? queueOf(handle) : 0;
    if (producer != 0) {
      check(OpenclTable.CL_FLUSH, producer);
    }
    return isDone(state);
  }

  @Override
  public void synchronize(SyncEvent event) {
    long handle = event.handle();
    library.load();
    int code = (int) OpenclTable.CL_WAIT_FOR_EVENTS.call(1, event.address());
    if (code == OpenclTable.CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST) {
      isDone(stateOf(handle)); // throws if the command itself has failed
    }
    check(OpenclTable.CL_WAIT_FOR_EVENTS.name, code);
  }

  @Override
  public void waitOn(SyncEvent event, DeviceStream stream) {
    long handle = event.handle();
    long queue = queueOf(stream);
    library.load();
    try (Cell out = new Cell()) {
      checkContext(handle, queue, out);
    }
    long producer = queueOf(handle);
    if (producer != 0) {
      // A queue need not start a command before it is flushed.
      check(OpenclTable.CL_FLUSH, producer);
    }
    check(OpenclTable.CL_ENQUEUE_BARRIER_WITH_WAIT_LIST, queue, 1, event.address(), 0);
  }

  private void checkContext(long event, long queue, Cell out) {
    Symbol ofEvent = OpenclTable.CL_GET_EVENT_INFO;
    long own = get(ofEvent, event, OpenclTable.CL_EVENT_CONTEXT, POINTER, out);
    Symbol ofQueue = OpenclTable.CL_GET_COMMAND_QUEUE_INFO;
    if (get(ofQueue, queue, OpenclTable.CL_QUEUE_CONTEXT, POINTER, out) != own) {
      throw FletchingException.invalid(
          "cl_context of the queue differs from the event's; hint: pass a queue of the"
              + " event's context, or wait on the host");
    }
  }

  @Override
  void record(Recorded recorded, DeviceStream stream) {
    long queue = queueOf(stream);
    library.load();
    OpenclTable.CL_RELEASE_EVENT.require();
    OpenclTable.CL_FLUSH.require();
    check(OpenclTable.CL_ENQUEUE_MARKER_WITH_WAIT_LIST, queue, 0, 0, recorded.address);
    // An event that no queue has submitted to the device never completes.
    check(OpenclTable.CL_FLUSH, queue);
  }

  /** A failed marker is final, but other commands on the queue may still run; see settle. */
  @Override
  boolean hasPassed(Recorded recorded) {
    int state = stateOf(recorded.event(), recorded.cell(0));
    return OpenclTable.stateOf(state) == EventState.DONE || OpenclTable.isLost(state);
  }

  /** OpenCL has no stream capture, so no event is recorded later. */
  @Override
  boolean isLost(DeviceStream stream) {
    return false;
  }

  @Override
  void destroy(Recorded recorded) {
    OpenclTable.CL_RELEASE_EVENT.call(recorded.event()); // no caller can receive an error
  }

  @Override
  void settle(Recorded recorded) {
    try {
      long event = recorded.event();
      Cell out = recorded.cell(0);
      if (OpenclTable.isLost(stateOf(event, out))) {
        check(OpenclTable.CL_FINISH, queueOf(event, out));
      }
    } catch (FletchingException e) {
      // No caller can receive the error.
    }
  }

  @Override
  void runAtOrigin(Recorded recorded, Runnable body) {
    body.run();
  }

  @Override
  void finish(DeviceStream stream) {
    long queue = queueOf(stream);
    library.load();
    check(OpenclTable.CL_FINISH, queue);
  }

  @Override
  DeviceStream resolve(DeviceStream stream) {
    return stream;
  }
}
