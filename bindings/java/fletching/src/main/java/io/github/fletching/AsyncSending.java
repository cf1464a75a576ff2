// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

import io.github.fletching.abi.DeviceType;
import io.github.fletching.abi.engine.Handles;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.Flow;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;

/**
 * The producer of docs/reference/async.md. Jobs on an executor, one at a time, call the handler and
 * the publisher; the consumer and the publisher call from any thread.
 */
final class AsyncSending<T> implements Flow.Subscriber<T> {
  /** What a step has done. */
  enum Step {
    CALLED,
    WAITS,
    RELEASED
  }

  /** What is to be called. */
  private enum Due {
    SCHEMA,
    TASK,
    END,
    STOP,
    RELEASE,
    NOTHING
  }

  /** Why a stream stops. The first reason counts. */
  private enum Stop {
    RUNNING,
    CANCELLED,
    FAILED,
    OVER // the end was sent, or the consumer has refused something
  }

  /** Completed when the handler is released. */
  final CompletableFuture<Void> done = new CompletableFuture<>();

  final long producer; // in memory of C, followed by a task
  private final long handler;
  private final DeviceType deviceType;
  private final Metadata streamMetadata;
  private final Function<T, AsyncBatch> toBatch;
  private final Executor executor;
  private final AtomicInteger due = new AtomicInteger(); // runs of the job

  // With the lock of this object.
  private Stop stopped = Stop.RUNNING;
  private FletchingException failure;
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
  private Iterator<? extends T> iterator; // instead of a publisher
  private AsyncTask task; // to send
  private FletchingException result;

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
    this.handler = handler;
    this.deviceType = deviceType;
    this.streamMetadata = metadata;
    this.executor = executor;
    this.toBatch = toBatch;
    long block = metadata.size() == 0 ? 0 : AsyncAbi.newBlock(metadata.encode());
    producer = AsyncAbi.takeBlock();
    C.putInt(producer + AsyncAbi.DEVICE_TYPE, deviceType.value());
    C.putAddress(producer + AsyncAbi.REQUEST, AsyncAbi.ProducerStubs.REQUEST);
    C.putAddress(producer + AsyncAbi.CANCEL, AsyncAbi.ProducerStubs.CANCEL);
    C.putAddress(producer + AsyncAbi.METADATA, block);
    C.putAddress(producer + AsyncAbi.PRODUCER_PRIVATE, Handles.add(this));
    C.putAddress(handler + AsyncAbi.PRODUCER, producer);
  }

  /** Moves the schema in, which is sent next. */
  void open(Schema next) {
    boolean taken;
    synchronized (this) {
      taken = stopped == Stop.RUNNING;
      if (taken) {
        promise = new AsyncAbi.Promise(deviceType, streamMetadata, next.address());
        schema = next;
      }
    }
    if (taken) {
      schedule();
    } else {
      next.close();
    }
  }

  /** Reads the batches of an iterator, one ahead of the requests, so that the end needs none. */
  void read(Iterator<? extends T> batches) {
    iterator = batches;
  }

  /** Gives the memory back when the consumer is gone. */
  void free() {
    Handles.remove(C.getAddress(producer + AsyncAbi.PRODUCER_PRIVATE));
    C.free(C.getAddress(producer + AsyncAbi.METADATA));
    AsyncAbi.putBlock(producer);
  }

  private void schedule() {
    if (due.getAndIncrement() != 0) {
      return;
    }
    try {
      executor.execute(this::run);
    } catch (RejectedExecutionException e) {
      stop(Stop.FAILED, FletchingException.of(e));
      ForkJoinPool.commonPool().execute(this::run);
    }
  }

  private void run() {
    for (int done = due.get(); done != 0; done = due.addAndGet(-done)) {
      Step step = step();
      while (step == Step.CALLED) {
        step = step();
      }
      if (step == Step.RELEASED) {
        free();
        complete();
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
    stop(Stop.CANCELLED, null);
    return 0;
  }

  void taskClosed() {
    synchronized (this) {
      open--;
    }
    schedule();
  }

  /** Does nothing for a stream that has stopped. */
  private void stop(Stop reason, FletchingException error) {
    synchronized (this) {
      if (stopped == Stop.RUNNING) {
        stopped = reason;
        failure = error;
      }
    }
    schedule();
  }

  void fail(Throwable thrown) {
    stop(Stop.FAILED, FletchingException.of(thrown));
  }

  // --- What the publisher calls

  @Override
  public void onSubscribe(Flow.Subscription subscription) {
    Objects.requireNonNull(subscription, "subscription");
    boolean taken;
    synchronized (this) {
      taken = upstream == null && stopped == Stop.RUNNING;
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
    AsyncBatch batch = toBatch.apply(Objects.requireNonNull(item, "batch"));
    try {
      AsyncTask task = new AsyncTask(this, batch);
      boolean taken;
      synchronized (this) {
        taken = stopped == Stop.RUNNING && queue.add(task);
      }
      if (taken) {
        schedule();
      } else {
        task.discard();
      }
    } catch (Throwable refusal) {
      Exported.discard(batch.array);
      fail(refusal);
    }
  }

  @Override
  public void onError(Throwable thrown) {
    Objects.requireNonNull(thrown, "throwable");
    onComplete();
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
  DeviceArray moved(DeviceArray array) {
    try {
      promise.check(array);
      return new DeviceArray(array.takeSlot("batch"));
    } catch (RuntimeException refusal) {
      array.close();
      throw refusal;
    }
  }

  // --- What is called: in the jobs

  /** Makes at most one call of the handler. */
  Step step() {
    callPublisher();
    switch (next()) {
      case SCHEMA:
        return sendSchema();
      case TASK:
        return sendTask();
      case END:
        finish();
        return called("on_next_task", call("on_next_task", AsyncAbi.ON_NEXT_TASK, "iaaa", 0, 0));
      case STOP:
        finish();
        return failure == null ? step() : sendError();
      case RELEASE:
        long release = C.getAddress(handler + AsyncAbi.RELEASE);
        if (release != 0) {
          C.run(release, handler);
        }
        return Step.RELEASED;
      default:
        return Step.WAITS;
    }
  }

  private synchronized Due next() {
    if (over) {
      return open > 0 ? Due.NOTHING : Due.RELEASE;
    }
    if (stopped != Stop.RUNNING) {
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
      stopped = Stop.OVER;
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
      cancels = stopped != Stop.RUNNING;
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
      onError(thrown);
    }
  }

  private void readNext() {
    if (iterator.hasNext()) {
      onNext(iterator.next());
    } else {
      onComplete();
    }
  }

  private int call(String name, long field, String signature, long... arguments) {
    long function = C.getAddress(handler + field);
    if (function == 0) {
      result = FletchingException.invalid("handler." + name + ": NULL: expected a callback");
      return -1;
    }
    long[] all = new long[arguments.length + 1];
    all[0] = handler;
    System.arraycopy(arguments, 0, all, 1, arguments.length);
    return (int) C.call(signature, function, all);
  }

  private Step sendSchema() {
    Schema next;
    synchronized (this) {
      next = schema;
      schema = null;
    }
    int code = call("on_schema", AsyncAbi.ON_SCHEMA, "iaa", next.address());
    next.close(); // when the consumer has not moved it out
    return called("on_schema", code);
  }

  private Step sendTask() {
    AsyncTask next = task;
    task = null;
    long struct = producer + AsyncAbi.TASK;
    long handle = Handles.add(next);
    long metadata = next.metadata == null ? 0 : AsyncAbi.newBlock(next.metadata);
    C.putAddress(struct + AsyncAbi.EXTRACT_DATA, AsyncAbi.ProducerStubs.EXTRACT_DATA);
    C.putAddress(struct + AsyncAbi.TASK_PRIVATE, handle);
    int code = call("on_next_task", AsyncAbi.ON_NEXT_TASK, "iaaa", struct, metadata);
    C.free(metadata);
    if (code != 0 && Handles.poll(AsyncTask.class, handle) != null) { // not extracted
      next.close();
    }
    return called("on_next_task", code);
  }

  private Step sendError() {
    long text = Native.newText(failure.getMessage());
    result = failure;
    long onError = C.getAddress(handler + AsyncAbi.ON_ERROR);
    if (onError != 0) {
      C.call("vaiaa", onError, handler, failure.errno(), text, 0);
    }
    C.free(text);
    return Step.CALLED;
  }

  /** Takes what a call of the handler has returned. */
  private Step called(String name, int code) {
    if (code != 0) {
      if (result == null) {
        String text = name + ": refused by the consumer: expected 0, got " + code;
        result = new FletchingException(code, text);
      }
      synchronized (this) {
        stopped = Stop.OVER;
      }
      finish();
    }
    return Step.CALLED;
  }

  /** Ends the reading: only the release is due. */
  private void finish() {
    List<AsyncTask> left;
    Schema unsent;
    synchronized (this) {
      over = true;
      unsent = schema;
      schema = null;
      left = new ArrayList<>(queue);
      queue.clear();
    }
    Exported.discard(unsent);
    left.forEach(AsyncTask::discard);
    Exported.discard(iterator);
    iterator = null;
  }
}
