// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

import io.github.fletching.abi.DeviceType;
import io.github.fletching.abi.engine.Handles;
import java.util.EnumSet;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

/** The consumer with its handler in memory of C: what the producer calls. */
final class AsyncHandler extends AsyncConsumer {
  /** The failure of a stream whose handler was released before its end. */
  private static final String LOST =
      "release: called too early: expected on_next_task(NULL) or on_error before";

  private static final Set<State> HAS_TASKS =
      EnumSet.of(State.STREAMING, State.CANCELLED, State.BROKEN);

  private final AtomicBoolean calling = new AtomicBoolean(); // the handler
  private final AtomicInteger users = new AtomicInteger(1); // the application, and C
  private long handler; // until nothing uses it
  private boolean closed;

  // --- Lifetime

  /** The address of the handler, which is made by the first call. */
  long expose() {
    return peer.locked(
        () -> {
          if (closed) {
            throw Owner.closed("handler");
          }
          if (handler == 0) {
            handler = AsyncAbi.takeBlock();
            users.incrementAndGet();
            AsyncAbi.installHandler(handler, this);
          }
          return handler;
        });
  }

  /** The release of a handler that no producer has. */
  void releaseUnused() {
    boolean isUnused =
        peer.locked(
            () -> {
              if (peer.producer != 0) {
                throw new IllegalStateException(
                    "releaseHandler: a producer has the handler: expected none");
              }
              return handler != 0;
            });
    if (isUnused) {
      onRelease();
    }
  }

  private void leave() {
    if (users.decrementAndGet() == 0 && handler != 0) {
      Handles.remove(C.getAddress(handler + Fields.HANDLER_PRIVATE_DATA));
      AsyncAbi.putBlock(handler);
    }
  }

  /** The end of the application's use; false when it is not the first. */
  boolean close() {
    boolean first = peer.locked(() -> !closed && (closed = true));
    if (first) {
      closeSchema();
      leave();
    }
    return first;
  }

  private void closeSchema() {
    Shared<Schema> last = peer.locked(() -> schema);
    peer.locked(() -> schema = null);
    Exported.discard(last);
  }

  // --- What the producer calls

  private int receive(Runnable body) {
    if (!calling.compareAndSet(false, true)) {
      return refuse(
          FletchingException.invalid(
              "handler call: overlaps another one: expected one call at a time"));
    }
    try {
      body.run();
      return 0;
    } catch (Throwable thrown) {
      return refuse(FletchingException.caught(thrown));
    } finally {
      calling.set(false);
    }
  }

  private int refuse(FletchingException error) {
    end(State.REFUSED, error);
    return error.errno();
  }

  int onSchema(long self, long raw) {
    return receive(() -> receiveSchema(C.getAddress(self + Fields.HANDLER_PRODUCER), raw));
  }

  int onNextTask(long task, long metadata) {
    return receive(task == 0 ? this::receiveEnd : () -> receiveTask(task, metadata));
  }

  int onError(int code, long message) {
    end(State.FAILED, FletchingException.foreign(code, Native.printable(message)));
    return 0;
  }

  int onRelease() {
    if (receiveRelease()) {
      leave();
    }
    return 0;
  }

  private void receiveSchema(long object, long raw) {
    State before = state;
    if (before != State.CREATED && before != State.CANCELLED_EARLY) {
      throw FletchingException.invalid("on_schema: called twice: expected one call");
    }
    if (raw == 0 || Kind.SCHEMA.isReleased(raw)) {
      throw FletchingException.invalid("on_schema: schema is NULL or released: expected a schema");
    }
    if (object == 0
        || Callback.PRODUCER_REQUEST.in(object) == 0
        || Callback.PRODUCER_CANCEL.in(object) == 0) {
      throw FletchingException.invalid(
          "handler.producer: NULL, or request or cancel NULL: expected callbacks");
    }
    AsyncAbi.Promise promised =
        new AsyncAbi.Promise(
            DeviceType.of(C.getInt(object + Fields.PRODUCER_DEVICE_TYPE)),
            Metadata.at(C.getAddress(object + Fields.PRODUCER_ADDITIONAL_METADATA)),
            Shape.ofTop(raw));
    Shared<Schema> shared = accepted(raw, before == State.CREATED);
    peer.locked(() -> begin(object, promised, shared));
    schemaKnown.complete(null);
    if (peer.locked(() -> closed)) {
      closeSchema();
    }
    wake();
  }

  /** Moves the schema in, unless it is refused. */
  private Shared<Schema> accepted(long raw, boolean checked) {
    Schema given = Schema.wrap(raw);
    try {
      if (checked) {
        schemaCheck.accept(given);
      }
      return given.share();
    } catch (Throwable refusal) {
      if (!given.isReleased()) {
        given.moveTo(raw);
      }
      throw refusal;
    }
  }

  /** The first demand, unless the application has cancelled. */
  private void begin(long object, AsyncAbi.Promise promised, Shared<Schema> shared) {
    peer.producer = object;
    if (state != State.CREATED) {
      state = State.CANCELLED;
      demand = 0;
      peer.cancel();
      peer.unlocked(shared::close);
      return;
    }
    state = State.STREAMING;
    promise = promised;
    schema = shared;
    if (demand > 0) {
      peer.request(demand);
    }
  }

  private void receiveTask(long task, long address) {
    if (Callback.TASK_EXTRACT_DATA.in(task) == 0) {
      throw FletchingException.invalid("task.extract_data: NULL: expected a callback");
    }
    ForeignProducer.Task copy = new ForeignProducer.Task(task, Metadata.at(address));
    try {
      if (state == State.STREAMING) {
        taskCheck.accept(copy.metadata);
      }
      peer.locked(() -> receive(copy));
    } catch (Throwable refusal) {
      copy.free();
      throw refusal;
    }
    wake();
  }

  private void receive(ForeignProducer.Task task) {
    if (!HAS_TASKS.contains(state)) {
      throw FletchingException.invalid(
          "on_next_task: out of order: expected a call after on_schema and before the end");
    }
    if (demand == 0) {
      throw FletchingException.invalid(
          "on_next_task: too many tasks: expected at most the sum of the requests");
    }
    demand--;
    if (state == State.STREAMING) {
      queue.add(task);
    } else {
      peer.drop(task);
    }
  }

  private void receiveEnd() {
    peer.locked(
        () -> {
          if (!HAS_TASKS.contains(state)) {
            throw FletchingException.invalid(
                "on_next_task(NULL): out of order: expected one call after on_schema");
          }
          state = state == State.BROKEN ? State.FAILED : State.ENDED;
        });
    wake();
  }

  /** An error, unless the application knows how the stream has ended. */
  private void end(State next, FletchingException error) {
    peer.locked(
        () -> {
          boolean live = state.isLive();
          if (live || state == State.CANCELLED_EARLY || HAS_TASKS.contains(state)) {
            state = next;
          }
          if (live) {
            failure = error;
            stop(false);
          }
        });
    wake();
  }

  /** False when it is not the first call. */
  private boolean receiveRelease() {
    return peer.locked(
        () -> {
          if (state == State.RELEASING || state == State.RELEASED) {
            return false;
          }
          boolean waits = peer.runsElsewhere();
          keeping = state == State.ENDED && !shut;
          boolean notifies = state.isLive() || keeping;
          if (state.isLive()) {
            failure = new FletchingException(FletchingException.EIO, LOST);
          }
          shut = true;
          state = waits ? State.RELEASING : State.RELEASED;
          // A producer that is destroyed with its last task outlives another thread's call to it.
          peer.awaitRequests();
          settle();
          if (notifies) {
            peer.unlocked(this::wake);
          }
          if (waits) {
            peer.awaitAll();
          }
          state = State.RELEASED;
          return true;
        });
  }

  /** Extracts what is queued: for the application, or to drop it. */
  private void settle() {
    try {
      while (keeping && !queue.isEmpty()) {
        Received result = extract();
        if (keeping) {
          kept.add(result);
        } else { // cancelled meanwhile
          peer.unlocked(result::close);
        }
      }
    } catch (RuntimeException | Error noMemory) { // the batches that are left are lost
      failure = FletchingException.of(noMemory);
    }
    keeping = false;
    dropQueue();
  }
}
