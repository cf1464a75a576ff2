// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

import io.github.fletching.abi.DeviceType;
import io.github.fletching.abi.engine.Handles;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import java.util.function.Supplier;

/**
 * The consumer of docs/reference/async.md: a handler in memory of C, the tasks that have arrived,
 * and how the stream ends. No lock is held while other code is called.
 */
final class AsyncConsumer {
  enum State {
    CREATED,
    CANCELLED_EARLY,
    STREAMING,
    CANCELLED,
    ENDED,
    BROKEN,
    FAILED,
    REFUSED,
    RELEASING,
    RELEASED;

    /** Whether the application does not know yet how the stream ends. */
    boolean isLive() {
      return this == CREATED || this == STREAMING;
    }
  }

  /** How a stream has ended of which the application knows, but not the producer. */
  private static final Set<State> ENDED_BY_US =
      EnumSet.of(State.CANCELLED_EARLY, State.CANCELLED, State.BROKEN);

  /** The failure of a stream whose handler was released before its end. */
  private static final String LOST =
      "release: called too early: expected on_next_task(NULL) or on_error before";

  /** The outcome of a stream that has ended well. */
  static final RuntimeException END = new FletchingException(1, "the end");

  Runnable news = () -> {}; // called without the lock
  Consumer<Schema> schemaCheck = schema -> {};
  Consumer<Metadata> taskCheck = metadata -> {};
  Consumer<Warning> onWarning = warning -> {};

  /** Completed when there is a schema, or there will be none. */
  final CompletableFuture<Void> schemaKnown = new CompletableFuture<>();

  volatile State state = State.CREATED; // written with the lock, as what follows
  volatile AsyncAbi.Promise promise; // null until there is a schema
  private final AtomicBoolean calling = new AtomicBoolean(); // the handler
  private final AtomicInteger users = new AtomicInteger(1); // the application, and C
  private final ReentrantLock lock = new ReentrantLock();
  private final Condition quiet = lock.newCondition(); // a call to the producer has returned
  private final List<Thread> toTasks = new ArrayList<>(); // which run calls; one for each call
  private final List<Thread> toProducer = new ArrayList<>();
  private final ArrayDeque<Queued> queue = new ArrayDeque<>();
  private final ArrayDeque<Received> kept = new ArrayDeque<>(); // extracted by the release
  private long handler; // until nobody uses it
  private Shared<Schema> schema;
  private long producer;
  private long demand; // what was requested before on_schema; then what may still arrive
  private boolean shut; // no task is taken from the queue any more
  private boolean keeping; // the release extracts what is queued
  private boolean closed;
  private RuntimeException failure;

  /** What on_next_task was called with. */
  private static final class Queued {
    final long extractData;
    final long privateData;
    final Metadata metadata;

    Queued(long task, Metadata metadata) {
      extractData = C.getAddress(task + AsyncAbi.EXTRACT_DATA);
      privateData = C.getAddress(task + AsyncAbi.TASK_PRIVATE);
      this.metadata = metadata;
    }
  }

  /** A batch, or why there is none. */
  static final class Received {
    final DeviceArray batch;
    final Metadata metadata;
    final FletchingException error;

    private Received(DeviceArray batch, Metadata metadata, FletchingException error) {
      this.batch = batch;
      this.metadata = metadata;
      this.error = error;
    }

    private void close() {
      Exported.discard(batch);
    }
  }

  private <T> T locked(Supplier<T> body) {
    lock.lock();
    try {
      return body.get();
    } finally {
      lock.unlock();
    }
  }

  private void locked(Runnable body) {
    lock.lock();
    try {
      body.run();
    } finally {
      lock.unlock();
    }
  }

  /** Runs what is not ours, with the lock before and after. */
  private void unlocked(Runnable body) {
    lock.unlock();
    try {
      body.run();
    } finally {
      lock.lock();
    }
  }

  private void wake() {
    RuntimeException error = locked(() -> failure);
    if (error != null) {
      schemaKnown.completeExceptionally(error);
    }
    news.run();
  }

  // --- Calls to the producer: with the lock, which is not held during the call

  private long out(List<Thread> running, String signature, long function, long... arguments) {
    running.add(Thread.currentThread());
    lock.unlock();
    try {
      return C.call(signature, function, arguments);
    } finally {
      lock.lock();
      running.remove(Thread.currentThread());
      quiet.signalAll();
    }
  }

  private static int outHere(List<Thread> running) {
    return Collections.frequency(running, Thread.currentThread());
  }

  private void callRequest(long n) {
    out(toProducer, "val", C.getAddress(producer + AsyncAbi.REQUEST), producer, n);
  }

  private void callCancel() {
    out(toProducer, "va", C.getAddress(producer + AsyncAbi.CANCEL), producer);
  }

  private int callExtract(Queued task, long out) {
    long copy = AsyncAbi.takeBlock();
    C.putAddress(copy + AsyncAbi.EXTRACT_DATA, task.extractData);
    C.putAddress(copy + AsyncAbi.TASK_PRIVATE, task.privateData);
    int code = (int) out(toTasks, "iaa", task.extractData, copy, out);
    AsyncAbi.putBlock(copy);
    return code;
  }

  private Received extract() {
    Slot slot = Slot.take(Kind.DEVICE_ARRAY);
    Queued task = queue.poll();
    int code = callExtract(task, slot.address);
    if (code != 0) { // of a failed extraction nothing is ours to release
      slot.free();
      String text = "extract_data: failed without a message";
      return new Received(null, task.metadata, FletchingException.foreign(code, text));
    }
    DeviceArray batch = new DeviceArray(slot);
    FletchingException[] error = new FletchingException[1];
    unlocked(() -> error[0] = errorOf(batch));
    return new Received(batch, task.metadata, error[0]);
  }

  /** Why a batch may not be in the stream, which closes it. */
  private FletchingException errorOf(DeviceArray batch) {
    try {
      promise.check(batch);
      DeviceArrayStream.warnOfReserved(batch, onWarning);
      return null;
    } catch (Throwable refusal) {
      batch.close();
      return FletchingException.of(refusal);
    }
  }

  // --- The application

  /** Requests n more batches, n > 0. */
  void request(long n) {
    locked(() -> sendRequest(n));
  }

  private void sendRequest(long n) {
    if (state.isLive()) {
      demand = AsyncAbi.saturated(demand, n);
    }
    if (state == State.STREAMING) {
      callRequest(n);
    }
  }

  /**
   * Extracts the oldest batch; null when none has arrived. More is requested first: the producer of
   * libarrow is destroyed with its last task.
   */
  Received take(long more) {
    return locked(
        () -> {
          if (more > 0 && !shut && !queue.isEmpty()) {
            sendRequest(more);
          }
          if (shut || queue.isEmpty()) {
            return kept.poll();
          }
          Received result = extract();
          if (result.error != null && state == State.STREAMING) {
            lose(result);
          }
          return result;
        });
  }

  /** A producer that does not know of it would wait for the next request. */
  private void lose(Received result) {
    state = State.BROKEN;
    failure = result.error;
    stop(result.batch != null);
    unlocked(this::wake);
  }

  /** Drops the oldest batch; false when none has arrived. */
  boolean skip() {
    return locked(
        () -> {
          Queued task = shut ? null : queue.poll();
          Received received = task == null ? kept.poll() : null;
          if (task != null) {
            callExtract(task, 0);
          } else if (received != null) {
            unlocked(received::close);
          }
          return task != null || received != null;
        });
  }

  /** How the stream has ended: {@link #END} or the error; null while there may be batches. */
  RuntimeException outcome() {
    return locked(
        () -> {
          boolean more = keeping || !kept.isEmpty() || (!shut && !queue.isEmpty());
          RuntimeException end = state.isLive() ? null : END;
          return more ? null : failure != null ? failure : end;
        });
  }

  /** Drops what is queued. The reason is the outcome, unless the stream has ended. */
  void cancel(RuntimeException reason) {
    List<Received> dropped = new ArrayList<>();
    locked(
        () -> {
          State before = state;
          if (before.isLive() || !kept.isEmpty() || !queue.isEmpty() || keeping) {
            failure = reason;
          }
          dropped.addAll(kept);
          kept.clear();
          keeping = false;
          if (before.isLive()) {
            state = before == State.CREATED ? State.CANCELLED_EARLY : State.CANCELLED;
          }
          stop(before == State.STREAMING);
        });
    dropped.forEach(Received::close);
    wake();
  }

  /** A schema of the caller's, when it is known. */
  Schema schema() {
    return locked(
        () -> {
          if (schema == null) {
            throw Owner.closed("schema");
          }
          return schema.view();
        });
  }

  // --- Lifetime

  /** The address of the handler, which is made by the first call. */
  long expose() {
    return locked(
        () -> {
          if (closed) {
            throw Owner.closed("handler");
          }
          if (handler == 0) {
            handler = AsyncAbi.takeBlock();
            users.incrementAndGet();
            AsyncAbi.HandlerStubs.install(handler, Handles.add(this));
          }
          return handler;
        });
  }

  private void leave() {
    if (users.decrementAndGet() == 0 && handler != 0) {
      Handles.remove(C.getAddress(handler + AsyncAbi.HANDLER_PRIVATE));
      AsyncAbi.putBlock(handler);
    }
  }

  /** The end of the application's use; false when it is not the first. */
  boolean close() {
    boolean first = locked(() -> !closed && (closed = true));
    if (first) {
      closeSchema();
      leave();
    }
    return first;
  }

  private void closeSchema() {
    Shared<Schema> last = locked(() -> schema);
    locked(() -> schema = null);
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
      return refuse(FletchingException.of(thrown));
    } finally {
      calling.set(false);
    }
  }

  private int refuse(FletchingException error) {
    end(State.REFUSED, error);
    return error.errno();
  }

  int onSchema(long self, long raw) {
    return receive(() -> receiveSchema(C.getAddress(self + AsyncAbi.PRODUCER), raw));
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
        || C.getAddress(object + AsyncAbi.REQUEST) == 0
        || C.getAddress(object + AsyncAbi.CANCEL) == 0) {
      throw FletchingException.invalid(
          "handler.producer: NULL, or request or cancel NULL: expected callbacks");
    }
    AsyncAbi.Promise promised =
        new AsyncAbi.Promise(
            DeviceType.of(C.getInt(object + AsyncAbi.DEVICE_TYPE)),
            Metadata.at(C.getAddress(object + AsyncAbi.METADATA)),
            raw);
    Shared<Schema> shared = accepted(raw, before == State.CREATED);
    locked(() -> begin(object, promised, shared));
    schemaKnown.complete(null);
    if (locked(() -> closed)) {
      closeSchema();
    }
    wake();
  }

  /** Moves the schema in, unless it is refused. */
  private Shared<Schema> accepted(long raw, boolean asks) {
    Schema given = Schema.wrap(raw);
    try {
      if (asks) {
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
    producer = object;
    if (state != State.CREATED) {
      state = State.CANCELLED;
      demand = 0;
      callCancel();
      unlocked(shared::close);
      return;
    }
    state = State.STREAMING;
    promise = promised;
    schema = shared;
    if (demand > 0) {
      callRequest(demand);
    }
  }

  private void receiveTask(long task, long address) {
    Queued queued = new Queued(task, Metadata.at(address));
    if (queued.extractData == 0) {
      throw FletchingException.invalid("task.extract_data: NULL: expected a callback");
    }
    if (state == State.STREAMING) {
      taskCheck.accept(queued.metadata);
    }
    locked(() -> receive(queued));
    wake();
  }

  private void receive(Queued task) {
    if (state != State.STREAMING && state != State.CANCELLED && state != State.BROKEN) {
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
      callExtract(task, 0);
    }
  }

  private void receiveEnd() {
    locked(
        () -> {
          if (state != State.STREAMING && state != State.CANCELLED && state != State.BROKEN) {
            throw FletchingException.invalid(
                "on_next_task(NULL): out of order: expected one call after on_schema");
          }
          state = state == State.BROKEN ? State.FAILED : State.ENDED;
        });
    wake();
  }

  /** An error, unless the application knows how the stream has ended. */
  private void end(State next, FletchingException error) {
    boolean tells =
        locked(
            () -> {
              boolean live = state.isLive();
              if (live || ENDED_BY_US.contains(state)) {
                state = next;
              }
              if (live) {
                failure = error;
                stop(false);
              }
              return live;
            });
    if (tells) {
      wake();
    }
  }

  /** False when it is not the first call. */
  private boolean receiveRelease() {
    lock.lock();
    try {
      if (state == State.RELEASING || state == State.RELEASED) {
        return false;
      }
      // The calls further out on this thread cannot return before this does.
      int toProducerHere = outHere(toProducer);
      boolean inside = toProducerHere + outHere(toTasks) > 0;
      boolean waits = !inside && !isQuiet();
      keeping = state == State.ENDED && !shut;
      boolean tells = keeping || state.isLive();
      if (state.isLive()) {
        failure = new FletchingException(FletchingException.EIO, LOST);
      }
      shut = true;
      state = waits ? State.RELEASING : State.RELEASED;
      // A producer that is destroyed with its last task outlives another thread's call to it.
      while (toProducer.size() > toProducerHere) {
        quiet.awaitUninterruptibly();
      }
      settle();
      if (tells) {
        unlocked(this::wake);
      }
      while (waits && !isQuiet()) {
        quiet.awaitUninterruptibly();
      }
      state = State.RELEASED;
      return true;
    } finally {
      lock.unlock();
    }
  }

  private boolean isQuiet() {
    return toTasks.isEmpty() && toProducer.isEmpty();
  }

  /** Ends the taking of tasks. */
  private void stop(boolean cancel) {
    if (shut) {
      return;
    }
    shut = true;
    if (cancel) {
      callCancel();
    }
    dropQueue();
  }

  private void dropQueue() {
    while (!queue.isEmpty()) {
      callExtract(queue.poll(), 0);
    }
  }

  /** Extracts what is queued: for the application, or to drop it. */
  private void settle() {
    while (keeping && !queue.isEmpty()) {
      Received result = extract();
      if (keeping) {
        kept.add(result);
      } else { // cancelled meanwhile
        unlocked(result::close);
      }
    }
    keeping = false;
    dropQueue();
  }
}
