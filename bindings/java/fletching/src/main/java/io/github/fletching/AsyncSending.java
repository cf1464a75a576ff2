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
 * the publisher; the consumer and the publisher may call from any thread.
 */
final class AsyncSending<T> implements Flow.Subscriber<T> {
  /** The actions of a step. */
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

  final long producer; // in C memory; a task follows it
  private final ForeignHandler handler;
  private final DeviceType deviceType;
  private final Function<T, AsyncBatch> toBatch;
  private final Executor executor;
  Executor spare = AsyncDeviceStreams.executor(); // used if the executor rejects a job
  private final AtomicInteger due = new AtomicInteger(); // scheduled runs
  private final AtomicLong batches = new AtomicLong(); // batches received from the publisher

  // Guarded by this.
  private boolean stopped; // set once: by the end, a failure, a cancel or a rejection
  private FletchingException failure; // null unless a failure stopped the stream
  private Flow.Subscription upstream;
  private Schema schema; // not sent yet
  private volatile AsyncAbi.Promise promise;
  private final ArrayDeque<AsyncTask> queue = new ArrayDeque<>();
  private boolean ended; // the publisher is exhausted
  private long requested;
  private long passedOn; // requests forwarded to the publisher
  private long sent;
  private int open; // delivered tasks that are not extracted
  private boolean over; // only the release is left

  // Used by the jobs only.
  Iterator<? extends T> iterator; // replaces a publisher; read one batch ahead of the requests
  private AsyncTask task; // the next task to send
  FletchingException result; // error of a finished stream; null for none

  /** Sets the handler's producer. Throws EINVAL or ENOMEM and leaves the handler unchanged. */
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
          "send: device_type: 0: expected the device type of the batches");
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
    this.handler.setProducer(producer);
  }

  /** Moves the schema in and sends it next. A malformed schema fails the stream. */
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

  /** Frees the C memory after the consumer is released. */
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
      } catch (RuntimeException | Error e) { // OutOfMemoryError: no thread could be started
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
      turn.take(); // on this thread, because the stream would otherwise never end
    }
  }

  /** A scheduled run. It runs once, even if the executor keeps the job and also rejects it. */
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

    /** Called when the job is collected. If it has not run, the executor has dropped it. */
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

  /** The job of one turn, submitted to the executor. */
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

  // --- Callbacks for the consumer

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

  /** Stops the stream. Has no effect on a stopped stream. */
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

  // --- Signals from the publisher

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

  /** Moves an array in. Throws EINVAL and closes the array if it does not match the stream. */
  DeviceArray moved(DeviceArray array, long number) {
    try {
      promise.check(array, number);
      return new DeviceArray(array.takeSlot("batch"));
    } catch (Throwable refusal) {
      array.close();
      throw refusal;
    }
  }

  // --- Calls made by the jobs

  /** Makes a step. An exception, such as for a lack of memory, fails the stream. */
  private Due tryStep() {
    try {
      return step();
    } catch (Throwable thrown) {
      result = FletchingException.of(thrown);
      stop(result);
      return Due.STOP;
    }
  }

  /** Makes at most one call to the handler. */
  Due step() {
    callPublisher();
    Due due = next();
    switch (due) {
      case SCHEMA:
        try (Schema first = takeSchema()) { // the consumer may move it out
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

  /** Checks the result of a handler call. An error code ends the stream. */
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

  /** Discards all unsent data. Only the release is left. */
  private void finish() {
    synchronized (this) {
      over = true; // stopped is set too, so the queue does not grow
    }
    Exported.discard(takeSchema());
    for (AsyncTask next = queue.poll(); next != null; next = queue.poll()) {
      next.discard();
    }
    Exported.discard(iterator);
    iterator = null;
  }
}
