// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import java.util.Deque;
import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.Spliterator;
import java.util.Spliterators;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Function;
import java.util.function.LongFunction;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;

/**
 * Owns a stream and reads it batch by batch. Close it. Schemas and batches are the caller's to
 * close and outlive the stream. As an Iterable it continues where the last loop stopped.
 *
 * <p>After an error the stream is dead: every method that calls it throws that error again, and no
 * callback is called. The error is a {@link FletchingException} with the errno value that the
 * stream returned and the text of get_last_error; EIO for a value that is not positive; EINVAL,
 * with the id of the rule, for a callback that is NULL.
 *
 * <p>One thread at a time may read: a call during another one is EBUSY, and of two threads that saw
 * the same batch with hasNext one gets a NoSuchElementException. No batch is lost. {@code close}
 * may be called at any time, also during a call, after which the stream is released. It closes a
 * batch that hasNext has read.
 *
 * @param <B> the owner of a batch
 */
public abstract class BatchStream<B extends ArrayOwner> extends Owner
    implements Iterator<B>, Iterable<B> {
  private final StreamKind streams;
  private final Function<Slot, B> make;
  private final AtomicReference<B> ahead = new AtomicReference<>(); // what hasNext has read
  private volatile boolean open = true;
  private FletchingException failure; // null until the stream is dead
  private boolean ended;

  BatchStream(StreamKind streams, Slot slot, Function<Slot, B> make) {
    super(streams.kind, slot);
    this.streams = streams;
    this.make = make;
  }

  /**
   * The schema of every batch, which the caller closes. It may be asked for repeatedly.
   *
   * @return the schema of every batch, which the caller closes
   */
  public final Schema schema() {
    return call(
        stream -> {
          Slot out = streams.pull(stream, streams.getSchema, Kind.SCHEMA);
          if (Kind.SCHEMA.isReleased(out.address)) {
            out.free();
            throw FletchingException.invalid(
                "get_schema: released schema with return value 0: expected a live schema");
          }
          return new Schema(out);
        });
  }

  /** Whether there is another batch, which is read. It may block as long as the producer does. */
  @Override
  public final boolean hasNext() {
    boolean more = ahead.get() != null || call(this::readAhead);
    if (more && !open) {
      closeAhead(null);
      throw closed("stream");
    }
    return more;
  }

  /** The next batch, which the caller closes. */
  @Override
  public final B next() {
    B batch = hasNext() ? ahead.getAndSet(null) : null;
    if (batch == null) {
      throw new NoSuchElementException("stream: no batch: expected a call of hasNext before");
    }
    return batch;
  }

  @Override
  public final Iterator<B> iterator() {
    return this;
  }

  /**
   * The batches that are left. The caller closes each; closing the result closes this.
   *
   * @return the batches
   */
  public final Stream<B> stream() {
    int properties = Spliterator.ORDERED | Spliterator.NONNULL;
    return StreamSupport.stream(Spliterators.spliteratorUnknownSize(this, properties), false)
        .onClose(this::close);
  }

  /** Within the call, so that of two threads the second finds what the first has read. */
  private boolean readAhead(long stream) {
    if (ahead.get() == null) {
      ahead.set(pull(stream));
    }
    return ahead.get() != null;
  }

  private B pull(long stream) {
    if (ended) {
      return null;
    }
    Slot out = streams.pull(stream, streams.getNext, streams.batch);
    if (streams.batch.isReleased(out.address)) {
      ended = true;
      out.free();
      return null;
    }
    B batch = make.apply(out);
    try {
      check(batch);
      return batch;
    } catch (Throwable refusal) {
      batch.close();
      throw refusal;
    }
  }

  /** Refuses a batch that may not be in the stream. */
  void check(B batch) {}

  /**
   * Runs a callback of the stream, unless it is dead. The slot is taken out during a call, so that
   * a close at that time leaves the struct to the call.
   */
  private <T> T call(LongFunction<T> body) {
    Slot slot = swap(null);
    if (slot == null) {
      throw missing("stream");
    }
    try {
      if (kind.isReleased(slot.address)) { // its callbacks may be what is freed
        throw closed("stream");
      }
      if (failure != null) {
        throw new FletchingException(failure.errno(), failure.getMessage(), failure);
      }
      return body.apply(slot.address);
    } catch (Throwable thrown) {
      failure = failure != null ? failure : FletchingException.of(thrown);
      throw thrown;
    } finally {
      swap(slot);
      if (!open) {
        super.close(null);
      }
    }
  }

  @Override
  final RuntimeException missing(String operation) {
    String text = operation + ": in use: expected one call at a time";
    return open ? new FletchingException(FletchingException.EBUSY, text) : closed(operation);
  }

  @Override
  public final boolean isReleased() {
    return !open || isMovedOut();
  }

  @Override
  public final void moveTo(long address) {
    if (ahead.get() != null) {
      throw new IllegalStateException("export: batch read ahead: expected a call of next before");
    }
    super.moveTo(address);
    open = false;
  }

  /** Releases the stream, or lets the call do so that is running, and what hasNext has read. */
  @Override
  final void close(Deque<Object> ended) {
    open = false;
    super.close(ended);
    closeAhead(ended);
  }

  private void closeAhead(Deque<Object> ended) {
    B batch = ahead.getAndSet(null);
    if (batch != null) {
      batch.close(ended);
    }
  }
}
