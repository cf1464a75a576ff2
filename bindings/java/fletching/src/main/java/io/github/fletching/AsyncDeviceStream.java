// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import io.github.fletching.abi.DeviceType;
import java.lang.ref.Reference;
import java.util.Objects;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow;
import java.util.function.Consumer;

/**
 * A handler for a producer of another library, and the batches that it sends: a publisher for one
 * subscriber, which may subscribe at any time.
 *
 * <p>{@code request} and {@code cancel} of the subscriber are those of the producer, and its calls
 * are {@code onNext}, {@code onComplete} and {@code onError}, on its thread: the subscriber must
 * not block it, and closes each batch. Every task of the producer is extracted once: into a batch,
 * or dropped. After the end the release of the handler extracts what is queued, so that no batch is
 * lost. The release waits while a batch is extracted, and while batches are requested, on another
 * thread; a producer must not hold a lock then that these calls need.
 *
 * <p>Errors are {@link FletchingException}s: what the producer reported, or its extract_data
 * returned; EIO for a code that is not positive, and when the handler was released before the end;
 * EINVAL when the producer broke a rule, which the message names. After an error that overtakes
 * batches there are none.
 *
 * <p>Closing the stream cancels it, unless it is over. A stream with a subscriber may be forgotten;
 * one that never had any is cancelled by a cleaner, and counted as a leak. All methods may be
 * called from any thread, several at once. Batches outlive the stream.
 *
 * <p>Text: C device data interface, "Async device stream interface".
 */
public final class AsyncDeviceStream implements Flow.Publisher<DeviceArray>, AutoCloseable {
  private final AsyncHandler core = new AsyncHandler();
  private final AsyncSubscription subscription;

  /** A stream that requests what its subscriber requests. */
  public AsyncDeviceStream() {
    this(0);
  }

  /**
   * A stream that requests {@code window} batches when the schema arrives, and again as the
   * subscriber takes them, before they are extracted: for a producer such as libarrow's, which is
   * destroyed with its last task, and to keep a slow producer busy. With 0 only the subscriber
   * requests.
   *
   * @param window the number of batches
   */
  public AsyncDeviceStream(int window) {
    subscription = new AsyncSubscription(core, window);
    Slot.onCollected(this, subscription::collected);
  }

  /**
   * Calls the consumer with the schema, which is lent, on the producer's thread. One that throws
   * refuses it, which ends the stream. Set it before the handler is passed on.
   *
   * @param consumer the consumer to call
   * @return this stream
   */
  public AsyncDeviceStream onSchema(Consumer<Schema> consumer) {
    core.schemaCheck = Objects.requireNonNull(consumer, "consumer");
    return this;
  }

  /**
   * The same for every batch, with its metadata, before it is extracted.
   *
   * @param consumer the consumer to call
   * @return this stream
   */
  public AsyncDeviceStream onTask(Consumer<Metadata> consumer) {
    core.taskCheck = Objects.requireNonNull(consumer, "consumer");
    return this;
  }

  /**
   * Calls the consumer for each warning; see {@link DeviceArrayStream#onWarning}.
   *
   * @param consumer the consumer to call
   * @return this stream
   */
  public AsyncDeviceStream onWarning(Consumer<Warning> consumer) {
    core.onWarning = Objects.requireNonNull(consumer, "consumer");
    return this;
  }

  /**
   * The address of an ArrowAsyncDeviceStreamHandler in memory of C, for one producer, which has to
   * call its release in any case. It does not change, and is valid until the release and the close.
   *
   * @return the address of the handler
   * @throws IllegalStateException after close
   */
  public long handlerAddress() {
    long address = core.expose();
    Reference.reachabilityFence(this);
    return address;
  }

  /**
   * Releases the handler in place of a producer that never will: one that refused the handler, or
   * failed before it took it. Without a release the memory of the handler is never freed. Nothing
   * may use the handler afterwards. The stream fails with EIO, unless it is closed.
   *
   * @throws IllegalStateException when a producer has sent the schema
   */
  public void releaseHandler() {
    core.releaseUnused();
    Reference.reachabilityFence(this);
  }

  /**
   * The schema of every batch, once it has arrived: one for each call, which the caller closes. It
   * fails with the error of a stream that has none.
   *
   * @return the schema of every batch, once it has arrived
   */
  public CompletionStage<Schema> schema() {
    return core.schemaKnown.thenApply(known -> core.schema());
  }

  /**
   * The type of the device that every batch is on; null until there is a schema.
   *
   * @return the type of the device that every batch is on
   */
  public DeviceType deviceType() {
    AsyncAbi.Promise promise = core.promise;
    return promise == null ? null : promise.deviceType;
  }

  /**
   * The metadata of the stream; none until there is a schema.
   *
   * @return the metadata of the stream
   */
  public Metadata metadata() {
    AsyncAbi.Promise promise = core.promise;
    return promise == null ? Metadata.EMPTY : promise.metadata;
  }

  /**
   * The metadata of the batch with which onNext was called last.
   *
   * @return the metadata of the batch with which onNext was called last
   */
  public Metadata batchMetadata() {
    return subscription.batchMetadata;
  }

  /** Subscribes once; any other subscriber gets an IllegalStateException. */
  @Override
  public void subscribe(Flow.Subscriber<? super DeviceArray> subscriber) {
    subscription.subscribe(subscriber);
    Reference.reachabilityFence(this);
  }

  /**
   * The same batches, each with its metadata. Subscribe to this or to the stream, not to both: one
   * of them has the one subscriber.
   *
   * @return a publisher for one subscriber, which closes the array of each batch
   */
  public Flow.Publisher<AsyncBatch> batches() {
    return subscriber -> subscribe(new WithMetadata(subscription, subscriber));
  }

  private static final class WithMetadata implements Flow.Subscriber<DeviceArray> {
    private final AsyncSubscription source;
    private final Flow.Subscriber<? super AsyncBatch> next;

    WithMetadata(AsyncSubscription source, Flow.Subscriber<? super AsyncBatch> next) {
      this.source = source;
      this.next = Objects.requireNonNull(next, "subscriber");
    }

    @Override
    public void onSubscribe(Flow.Subscription subscription) {
      next.onSubscribe(subscription);
    }

    @Override
    public void onNext(DeviceArray array) {
      next.onNext(AsyncBatch.of(array).with(source.batchMetadata));
    }

    @Override
    public void onError(Throwable error) {
      next.onError(error);
    }

    @Override
    public void onComplete() {
      next.onComplete();
    }
  }

  /**
   * Cancels a stream that is not over: batches that are queued are dropped, without waiting for the
   * producer. The subscriber gets an IllegalStateException. A second close does nothing.
   */
  @Override
  public void close() {
    subscription.close(Owner.closed("async stream"));
  }
}
