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
 * Owner of a stream, which it reads batch by batch. Close it. The caller closes the schemas and
 * batches, which outlive the stream. A second loop over the stream continues where the first one
 * stopped.
 *
 * <p>After an error the stream is dead: every reading method throws the error again and calls no
 * callback. The error is a {@link FletchingException} with the stream's errno value and the message
 * from get_last_error. The value is EIO if the stream's value is not positive, and EINVAL with the
 * rule id if a callback is NULL.
 *
 * <p>Only one thread at a time may read: a concurrent call throws EBUSY. If two threads see the
 * same batch with hasNext, one of them gets a NoSuchElementException. No batch is lost. {@code
 * close} may be called at any time, even during a call; the stream is then released after the call.
 * It also closes a batch that hasNext has read.
 *
 * @param <B> the owner type of a batch
 */
public abstract class BatchStream<B extends ArrayOwner> extends Owner
    implements Iterator<B>, Iterable<B> {
  private final StreamKind streams;
  private final Function<Slot, B> make;
  private final AtomicReference<B> ahead = new AtomicReference<>(); // batch read by hasNext
  private volatile boolean open = true;
  private FletchingException failure; // null until the stream is dead
  private boolean ended;

  BatchStream(StreamKind streams, Slot slot, Function<Slot, B> make) {
    super(streams.kind, slot);
    this.streams = streams;
    this.make = make;
  }

  /**
   * The schema of all batches, which the caller closes. May be called repeatedly.
   *
   * @return the schema
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

  /** Whether there is another batch. Reads it, and blocks as long as the producer does. */
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
   * The remaining batches. The caller closes each; closing the result closes this stream.
   *
   * @return the batches
   */
  public final Stream<B> stream() {
    int properties = Spliterator.ORDERED | Spliterator.NONNULL;
    return StreamSupport.stream(Spliterators.spliteratorUnknownSize(this, properties), false)
        .onClose(this::close);
  }

  /** Runs within a stream call, so that a second thread finds the batch read by the first. */
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

  /** Throws if a batch does not match the stream. */
  void check(B batch) {}

  /**
   * Runs a callback, unless the stream is dead. The slot is taken out during the call, so that a
   * concurrent close leaves the struct to the call.
   */
  private <T> T call(LongFunction<T> body) {
    Slot slot = swap(null);
    if (slot == null) {
      throw missing("stream");
    }
    try {
      if (kind.isReleased(slot.address)) { // its callbacks may be freed
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
      throw new IllegalStateException("moveTo: batch read ahead: expected a call of next before");
    }
    super.moveTo(address);
    open = false;
  }

  /** Releases the stream, or leaves that to a running call, and closes a batch read by hasNext. */
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
