// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;

/**
 * The application's side of the consumer in docs/reference/async.md: received tasks and the outcome
 * of the stream. No lock is held while foreign code runs.
 */
class AsyncConsumer {
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

    /** Whether the outcome of the stream is still unknown to the application. */
    boolean isLive() {
      return this == CREATED || this == STREAMING;
    }
  }

  /** The outcome of a stream that ended without an error. */
  static final RuntimeException END = new FletchingException(1, "the end");

  Runnable news = () -> {}; // called without the lock
  Consumer<Schema> schemaCheck = schema -> {};
  Consumer<Metadata> taskCheck = metadata -> {};
  Consumer<Warning> onWarning = warning -> {};

  /** Completed when the schema has arrived, or the stream has failed without one. */
  final CompletableFuture<Void> schemaKnown = new CompletableFuture<>();

  volatile State state = State.CREATED; // guarded by the lock for writes, as are the fields below
  volatile AsyncAbi.Promise promise; // null until the schema arrives
  final ForeignProducer peer = new ForeignProducer();
  final ArrayDeque<ForeignProducer.Task> queue = new ArrayDeque<>();
  final ArrayDeque<Received> kept = new ArrayDeque<>(); // extracted by the release
  Shared<Schema> schema;
  long demand; // before on_schema: requested batches; afterwards: batches that may still arrive
  boolean shut; // the queue is closed to the application
  boolean keeping; // the release extracts the queued tasks
  RuntimeException failure;

  /** A batch, or the error of its extraction. */
  static final class Received {
    final DeviceArray batch;
    final Metadata metadata;
    final FletchingException error;

    private Received(DeviceArray batch, Metadata metadata, FletchingException error) {
      this.batch = batch;
      this.metadata = metadata;
      this.error = error;
    }

    void close() {
      Exported.discard(batch);
    }
  }

  final void wake() {
    RuntimeException error = peer.locked(() -> failure);
    if (error != null) {
      schemaKnown.completeExceptionally(error);
    }
    news.run();
  }

  final Received extract() {
    Slot slot = Slot.take(Kind.DEVICE_ARRAY);
    ForeignProducer.Task task = queue.poll();
    int code = peer.extract(task, slot.address);
    if (code != 0) { // a failed extraction fills no struct
      slot.free();
      String text = "extract_data: failed without a message";
      return new Received(null, task.metadata, FletchingException.foreign(code, text));
    }
    DeviceArray batch = new DeviceArray(slot);
    FletchingException[] error = new FletchingException[1];
    peer.unlocked(() -> error[0] = errorOf(batch));
    return new Received(batch, task.metadata, error[0]);
  }

  /**
   * Returns the error if the batch does not match the stream, and closes the batch; null if it
   * matches.
   */
  private FletchingException errorOf(DeviceArray batch) {
    try {
      promise.check(batch, -1);
      DeviceArrayStream.warnOfReserved(batch, onWarning);
      return null;
    } catch (Throwable refusal) {
      batch.close();
      return FletchingException.caught(refusal);
    }
  }

  // --- The application

  /** Requests n more batches, n > 0. */
  void request(long n) {
    peer.locked(() -> sendRequest(n));
  }

  private void sendRequest(long n) {
    if (state.isLive()) {
      demand = AsyncAbi.saturated(demand, n);
    }
    if (state == State.STREAMING) {
      peer.request(n);
    }
  }

  /**
   * Extracts the oldest batch; null if none has arrived. Sends the request for {@code more} batches
   * first, because libarrow destroys its producer with its last task.
   */
  Received take(long more) {
    try {
      return peer.locked(() -> takeNext(more));
    } catch (RuntimeException | Error noMemory) {
      return new Received(null, Metadata.EMPTY, FletchingException.of(noMemory));
    }
  }

  private Received takeNext(long more) {
    if (more > 0 && !queue.isEmpty()) {
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
  }

  /**
   * Ends the stream after a failed extraction. Cancels a producer that does not know of the error,
   * because it would wait for the next request.
   */
  private void lose(Received result) {
    state = State.BROKEN;
    failure = result.error;
    stop(result.batch != null);
    peer.unlocked(this::wake);
  }

  /** The outcome of the stream: {@link #END} or the error; null while batches may follow. */
  RuntimeException outcome() {
    return peer.locked(
        () -> {
          boolean more = keeping || !kept.isEmpty() || (!shut && !queue.isEmpty());
          RuntimeException end = state.isLive() ? null : END;
          return more ? null : failure != null ? failure : end;
        });
  }

  /** Drops queued batches. The reason becomes the outcome, unless the stream has ended. */
  void cancel(RuntimeException reason) {
    List<Received> dropped = new ArrayList<>();
    peer.locked(
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

  /** Returns the schema, which the caller closes. The stream must have received it. */
  Schema schema() {
    return peer.locked(
        () -> {
          if (schema == null) {
            throw Owner.closed("schema");
          }
          return schema.view();
        });
  }

  /** Stops taking tasks from the queue. */
  final void stop(boolean cancel) {
    if (shut) {
      return;
    }
    shut = true;
    if (cancel) {
      peer.cancel();
    }
    dropQueue();
  }

  final void dropQueue() {
    while (!queue.isEmpty()) {
      peer.drop(queue.poll());
    }
  }
}
