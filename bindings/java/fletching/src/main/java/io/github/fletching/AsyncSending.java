// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

import io.github.fletching.abi.DeviceType;
import io.github.fletching.abi.engine.Handles;
import java.lang.ref.Cleaner;
import java.lang.ref.Reference;
import java.util.ArrayDeque;
import java.util.Iterator;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.Flow;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;

/**
 * The producer of docs/reference/async.md. Jobs on an executor, one at a time, call the handler and
 * the publisher; the consumer and the publisher call from any thread.
 */
final class AsyncSending<T> implements Flow.Subscriber<T> {
  /** What a step does. */
  enum Due {
    SCHEMA,
    TASK,
    END,
    STOP,
    RELEASE,
    NOTHING
  }

  /** Completed when the handler is released. */
  final CompletableFuture<Void> done = new CompletableFuture<>();

  final long producer; // in memory of C, followed by a task
  private final ForeignHandler handler;
  private final DeviceType deviceType;
  private final Function<T, AsyncBatch> toBatch;
  private final Executor executor;
  Executor spare = AsyncDeviceStreams.executor(); // after a refusal
  private final AtomicInteger due = new AtomicInteger(); // runs of the job
  private final AtomicLong batches = new AtomicLong(); // that the publisher has passed on

  // With the lock of this object.
  private boolean stopped; // by the first of the end, a failure, a cancel and a refusal
  private FletchingException failure; // null for the others
  private Flow.Subscription upstream;
  private Schema schema; // not sent yet
  private volatile AsyncAbi.Promise promise;
  private final ArrayDeque<AsyncTask> queue = new ArrayDeque<>();
  private boolean ended; // there is no further batch
  private long requested;
  private long passedOn; // of what was requested, to the publisher
  private long sent;
  private int open; // the tasks that are delivered and not extracted
  private boolean over; // only the release is due

  // Of the jobs.
  Iterator<? extends T> iterator; // instead of a publisher; read one ahead of the requests
  private AsyncTask task; // to send
  FletchingException result; // of a stream that is over; null for none

  /** Sets the producer of the handler. Errors: EINVAL, ENOMEM; then the handler is untouched. */
  AsyncSending(
      long handler,
      DeviceType deviceType,
      Metadata metadata,
      Executor executor,
      Function<T, AsyncBatch> toBatch) {
    if (handler == 0) {
      throw FletchingException.invalid("send: handler is NULL: expected an address");
    }
    if (deviceType.value() == 0) {
      throw FletchingException.brokenRule(
          "async-producer.device-type-set",
          "producer: device_type: 0: expected the device type of the batches");
    }
    this.handler = new ForeignHandler(handler);
    this.deviceType = deviceType;
    this.executor = Objects.requireNonNull(executor, "executor");
    this.toBatch = toBatch;
    producer = AsyncAbi.takeBlock();
    long block = 0;
    try {
      block = metadata.size() == 0 ? 0 : AsyncAbi.newBlock(metadata.encode());
      AsyncAbi.installProducer(producer, this);
    } catch (Throwable thrown) {
      C.free(block);
      AsyncAbi.putBlock(producer);
      throw thrown;
    }
    C.putAddress(producer + Fields.PRODUCER_ADDITIONAL_METADATA, block);
    C.putInt(producer + Fields.PRODUCER_DEVICE_TYPE, deviceType.value());
    C.putAddress(handler + Fields.HANDLER_PRODUCER, producer);
  }

  /** Moves the schema in, which is sent next. A malformed one fails the stream. */
  void open(Schema next) {
    boolean taken = false;
    try {
      promise = new AsyncAbi.Promise(deviceType, Metadata.EMPTY, Shape.of("send", next));
      synchronized (this) {
        schema = stopped ? null : new Schema(next.takeSlot("send"));
        taken = schema != null;
      }
    } catch (Throwable refusal) {
      fail(refusal);
    }
    if (taken) {
      schedule();
    } else {
      next.close();
    }
  }

  /** Gives the memory back when the consumer is gone. */
  void free() {
    Handles.remove(C.getAddress(producer + Fields.PRODUCER_PRIVATE_DATA));
    C.free(C.getAddress(producer + Fields.PRODUCER_ADDITIONAL_METADATA));
    AsyncAbi.putBlock(producer);
  }

  private void schedule() {
    if (due.getAndIncrement() == 0) {
      Turn turn = null;
      try {
        turn = new Turn(this);
        executor.execute(new Job(turn));
      } catch (RuntimeException | Error e) { // no thread is an OutOfMemoryError
        runElsewhere(turn, FletchingException.of(e));
      }
    }
  }

  /** Fails the stream, and makes its last calls without the executor. The turn may be null. */
  private void runElsewhere(Turn turn, FletchingException error) {
    stop(error);
    if (turn == null) {
      run();
      return;
    }
    try {
      spare.execute(turn::take);
    } catch (RuntimeException | Error alsoRefused) {
      turn.take(); // on this thread: without it the stream would never end
    }
  }

  /** A run that is due; one that is kept by an executor and refused happens once. */
  private static final class Turn implements Runnable {
    private final AsyncSending<?> sending;
    private final AtomicBoolean taken = new AtomicBoolean();

    Turn(AsyncSending<?> sending) {
      this.sending = sending;
    }

    void take() {
      if (taken.compareAndSet(false, true)) {
        sending.run();
      }
    }

    /** The job was collected: the executor has dropped it, unless it has run. */
    @Override
    public void run() {
      if (!taken.get()) {
        sending.runElsewhere(this, dropped());
      }
    }

    private static FletchingException dropped() {
      try {
        return new FletchingException(
            FletchingException.EIO,
            "send: job dropped by the executor: expected a run or a refusal");
      } catch (OutOfMemoryError noMemory) {
        return FletchingException.of(noMemory);
      }
    }
  }

  /** The job of one turn, for the executor. */
  private static final class Job implements Runnable {
    private final Turn turn;
    private final Cleaner.Cleanable cleanable;

    Job(Turn turn) {
      this.turn = turn;
      cleanable = Slot.onCollected(this, turn);
    }

    @Override
    public void run() {
      turn.take();
      cleanable.clean();
      Reference.reachabilityFence(this);
    }
  }

  private void run() {
    for (int runs = due.get(); runs != 0; runs = due.addAndGet(-runs)) {
      Due last;
      do {
        last = tryStep();
      } while (last != Due.NOTHING && last != Due.RELEASE);
      if (last == Due.RELEASE) {
        try {
          free();
        } finally {
          complete();
        }
        return;
      }
    }
  }

  private void complete() {
    if (result == null) {
      done.complete(null);
    } else {
      done.completeExceptionally(result);
    }
  }

  // --- What the consumer calls

  int onRequest(long n) {
    if (n < 1) {
      fail(FletchingException.invalid("request: n is not positive: expected 1 or more, got " + n));
      return 0;
    }
    synchronized (this) {
      requested = AsyncAbi.saturated(requested, n);
    }
    schedule();
    return 0;
  }

  int onCancel() {
    stop(null);
    return 0;
  }

  void taskClosed() {
    synchronized (this) {
      open--;
    }
    schedule();
  }

  /** Does nothing for a stream that has stopped. */
  private void stop(FletchingException error) {
    synchronized (this) {
      if (!stopped) {
        stopped = true;
        failure = error;
      }
    }
    schedule();
  }

  void fail(Throwable thrown) {
    stop(FletchingException.of(thrown));
  }

  // --- What the publisher calls

  @Override
  public void onSubscribe(Flow.Subscription subscription) {
    Objects.requireNonNull(subscription, "subscription");
    boolean taken;
    synchronized (this) {
      taken = upstream == null && !stopped;
      upstream = taken ? subscription : upstream;
    }
    if (taken) {
      schedule();
    } else {
      subscription.cancel();
    }
  }

  @Override
  public void onNext(T item) {
    Objects.requireNonNull(item, "batch");
    AsyncBatch batch = null;
    AsyncTask task = null;
    boolean taken = false;
    try {
      batch = toBatch.apply(item);
      task = new AsyncTask(this, batch, batches.getAndIncrement());
      synchronized (this) {
        taken = !stopped && queue.add(task);
      }
    } catch (Throwable refusal) {
      Exported.discard(batch == null ? item : batch.array);
      fail(refusal);
    }
    if (taken) {
      schedule();
    } else if (task != null) {
      task.discard();
    }
  }

  @Override
  public void onError(Throwable thrown) {
    Objects.requireNonNull(thrown, "throwable");
    synchronized (this) {
      upstream = null;
    }
    fail(thrown);
  }

  @Override
  public void onComplete() {
    synchronized (this) {
      ended = true;
      upstream = null;
    }
    schedule();
  }

  /** Moves an array in, unless the stream may not have it. Errors: EINVAL. */
  DeviceArray moved(DeviceArray array, long number) {
    try {
      promise.check(array, number);
      return new DeviceArray(array.takeSlot("batch"));
    } catch (Throwable refusal) {
      array.close();
      throw refusal;
    }
  }

  // --- What is called: in the jobs

  /** A step that finds no memory fails the stream. */
  private Due tryStep() {
    try {
      return step();
    } catch (Throwable thrown) {
      result = FletchingException.of(thrown);
      stop(result);
      return Due.STOP;
    }
  }

  /** Makes at most one call of the handler. */
  Due step() {
    callPublisher();
    Due due = next();
    switch (due) {
      case SCHEMA:
        try (Schema first = takeSchema()) { // which the consumer may move out
          called("on_schema", handler.onSchema(first.address()));
        }
        break;
      case TASK:
        called("on_next_task", task.deliver(handler, producer + AsyncAbi.TASK));
        break;
      case END:
        finish();
        called("on_next_task", handler.onNextTask(0, 0));
        break;
      case STOP:
        finish();
        result = failure;
        if (failure == null) {
          return step();
        }
        handler.onError(failure);
        break;
      case RELEASE:
        handler.release();
        break;
      default:
    }
    return due;
  }

  private synchronized Due next() {
    if (over) {
      return open > 0 ? Due.NOTHING : Due.RELEASE;
    }
    if (stopped) {
      return Due.STOP;
    }
    if (schema != null) {
      return Due.SCHEMA;
    }
    if (!queue.isEmpty() && requested > sent) {
      task = queue.poll();
      sent++;
      open++;
      return Due.TASK;
    }
    if (ended && queue.isEmpty()) {
      stopped = true;
      return Due.END;
    }
    return Due.NOTHING;
  }

  private void callPublisher() {
    Flow.Subscription subscription;
    boolean cancels;
    boolean reads;
    long more = 0;
    synchronized (this) {
      subscription = upstream;
      cancels = stopped;
      reads = !cancels && iterator != null && !ended && schema == null && queue.isEmpty();
      if (cancels) {
        upstream = null;
      } else if (subscription != null) {
        more = requested - passedOn;
        passedOn = requested;
      }
    }
    try {
      if (reads) {
        readNext();
      } else if (cancels && subscription != null) {
        subscription.cancel();
      } else if (more > 0) {
        subscription.request(more);
      }
    } catch (Throwable thrown) {
      onError(FletchingException.caught(thrown));
    }
  }

  private void readNext() {
    if (iterator.hasNext()) {
      onNext(iterator.next());
    } else {
      onComplete();
    }
  }

  private synchronized Schema takeSchema() {
    Schema next = schema;
    schema = null;
    return next;
  }

  /** Takes what a call of the handler has returned. */
  private void called(String name, int code) {
    if (code == 0) {
      return;
    }
    result =
        new FletchingException(code, name + ": refused by the consumer: expected 0, got " + code);
    synchronized (this) {
      stopped = true;
    }
    finish();
  }

  /** Ends the reading: only the release is due. */
  private void finish() {
    synchronized (this) {
      over = true; // and stopped: nothing is added to the queue
    }
    Exported.discard(takeSchema());
    for (AsyncTask next = queue.poll(); next != null; next = queue.poll()) {
      next.discard();
    }
    Exported.discard(iterator);
    iterator = null;
  }
}
