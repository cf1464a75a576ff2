// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

import java.util.Deque;
import java.util.Iterator;
import java.util.function.Consumer;

/** An exported stream. C makes one call at a time, on any thread. */
final class StreamProducer<B extends ArrayOwner> extends Exported {
  private final Kind batchKind;
  private final Shape shape;
  private final Shared<Schema> schema;
  private final Iterator<? extends B> batches;
  private final Consumer<B> check;
  private FletchingException failure; // null until the stream is dead
  private boolean ended;
  private long moved; // number of moved batches
  private long lastError; // NULL unless the last call failed

  private StreamProducer(
      Kind batchKind,
      Shape shape,
      Shared<Schema> schema,
      Iterator<? extends B> batches,
      Consumer<B> check) {
    this.batchKind = batchKind;
    this.shape = shape;
    this.schema = schema;
    this.batches = batches;
    this.check = check;
  }

  /** Moves the schema in. Throws EINVAL for a malformed schema, which is not moved. */
  static <B extends ArrayOwner> StreamProducer<B> of(
      Kind batchKind, Schema schema, Iterator<? extends B> batches, Consumer<B> check) {
    String operation = batchKind == Kind.ARRAY ? "ArrayStream.of" : "DeviceArrayStream.of";
    Shape shape = Shape.of(operation, schema);
    return new StreamProducer<>(batchKind, shape, schema.share(), batches, check);
  }

  synchronized int getSchema(long out) {
    Kind.SCHEMA.clear(out);
    try {
      schema.view().moveWithin(out);
      return answer(null);
    } catch (Throwable thrown) {
      return answer(FletchingException.of(thrown));
    }
  }

  synchronized int getNext(long out) {
    batchKind.clear(out);
    if (failure == null && !ended) {
      try {
        ended = !move(out);
      } catch (Throwable thrown) {
        failure = FletchingException.caught(thrown);
      }
    }
    return answer(failure);
  }

  private boolean move(long out) {
    if (!batches.hasNext()) {
      return false;
    }
    B batch = batches.next();
    if (batch == null) {
      throw FletchingException.invalid("get_next: batch is null: expected a live batch");
    }
    try (batch) { // closing has no effect after the move
      if (batch.isReleased()) {
        throw FletchingException.invalid(
            "get_next: batch is released: expected a live batch, because a released one is the"
                + " end");
      }
      check.accept(batch);
      String difference = shape.difference(batch);
      if (difference != null) {
        throw FletchingException.invalid("get_next: batch " + moved + ": " + difference);
      }
      batch.moveWithin(out);
      moved++;
    }
    return true;
  }

  synchronized long getLastError() {
    return lastError;
  }

  @Override
  synchronized void release(Kind kind, long stream, Deque<Object> ended) {
    kind.markReleased(stream);
    forget();
    answer(null);
    ended.add(batches);
    ended.add(schema);
  }

  /** Returns the errno value, and keeps the error message for get_last_error. */
  private int answer(FletchingException error) {
    if (lastError != 0) {
      C.free(lastError);
      lastError = 0;
    }
    if (error == null) {
      return 0;
    }
    lastError = Native.newText(error.getMessage());
    return error.errno();
  }
}
