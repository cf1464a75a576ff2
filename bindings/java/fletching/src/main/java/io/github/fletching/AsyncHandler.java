// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

import io.github.fletching.abi.DeviceType;
import io.github.fletching.abi.engine.Handles;
import java.util.EnumSet;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

/** A consumer whose handler is in C memory. Implements the callbacks that the producer calls. */
final class AsyncHandler extends AsyncConsumer {
  /** The error of a stream whose handler is released before the end. */
  private static final String LOST =
      "release: called too early: expected on_next_task(NULL) or on_error before";

  private static final Set<State> HAS_TASKS =
      EnumSet.of(State.STREAMING, State.CANCELLED, State.BROKEN);

  private final AtomicBoolean calling = new AtomicBoolean(); // a handler callback is running
  private final AtomicInteger users = new AtomicInteger(1); // the application, and C after expose
  private long handler; // valid until the last user leaves
  private long given; // the handler, or its wrapper, for the producer
  private boolean closed;

  // --- Lifetime

  /** Returns the address of the handler. The first call creates it. */
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
            given = Handover.IMPORT.validatedHandler(handler);
          }
          return given;
        });
  }

  /** Releases a handler that no producer uses. */
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

  /** Ends the application's use. Returns false unless this is the first call. */
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

  // --- Callbacks for the producer

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

  /** Moves the schema in. If it is rejected, the producer keeps it. */
  private Shared<Schema> accepted(long raw, boolean checked) {
    Schema given = Schema.wrap(raw);
    try {
      if (checked) {
        schemaCheck.accept(given);
      }
      return given.share();
    } catch (Throwable refusal) {
      if (!given.isReleased()) {
        given.moveWithin(raw);
      }
      throw refusal;
    }
  }

  /** Stores the producer and sends the first request, or the cancel if the application canceled. */
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

  /** Ends the stream. The error becomes the outcome, unless the application already knows one. */
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

  /** Returns false unless this is the first call. */
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
          // Extracting the last task may destroy the producer: wait for other threads' calls to it.
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

  /** Extracts the queued tasks for the application, or drops them. */
  private void settle() {
    try {
      while (keeping && !queue.isEmpty()) {
        Received result = extract();
        if (keeping) {
          kept.add(result);
        } else { // canceled meanwhile
          peer.unlocked(result::close);
        }
      }
    } catch (RuntimeException | Error noMemory) { // the remaining batches are lost
      failure = FletchingException.of(noMemory);
    }
    keeping = false;
    dropQueue();
  }
}
