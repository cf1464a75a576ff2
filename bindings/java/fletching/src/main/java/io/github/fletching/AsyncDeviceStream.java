// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import io.github.fletching.abi.DeviceType;
import java.lang.ref.Reference;
import java.util.Objects;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow;
import java.util.function.Consumer;

/**
 * The consumer of an async stream from another library: a handler for the producer, and a publisher
 * of the received batches for one subscriber, which may subscribe at any time.
 *
 * <p>The subscriber's {@code request} and {@code cancel} are forwarded to the producer. {@code
 * onNext}, {@code onComplete} and {@code onError} run on the producer's thread: the subscriber must
 * not block it, and must close each batch. Every task of the producer is extracted once, into a
 * batch or to drop it. After the end of the stream, the handler's release callback extracts queued
 * tasks, so that no batch is lost. The release callback waits while another thread extracts or
 * requests batches; the producer must not hold a lock that these calls need.
 *
 * <p>Errors are {@link FletchingException}s: the error reported by the producer or returned by
 * extract_data; EIO for a code that is not positive, and if the handler is released before the end;
 * EINVAL if the producer breaks a rule, which the message names. No batches follow an error that
 * overtakes them.
 *
 * <p>Closing the stream cancels it, unless it is over. A stream with a subscriber need not be
 * closed. A stream that never had a subscriber is canceled by a cleaner and counted as a leak.
 * Thread-safe. Batches outlive the stream.
 *
 * <p>See "Async device stream interface" in the Arrow C device data interface.
 */
public final class AsyncDeviceStream implements Flow.Publisher<DeviceArray>, AutoCloseable {
  private final AsyncHandler core = new AsyncHandler();
  private final AsyncSubscription subscription;

  /** Creates a stream that requests batches only when its subscriber does. */
  public AsyncDeviceStream() {
    this(0);
  }

  /**
   * Creates a stream that requests {@code window} batches when the schema arrives, and requests
   * more as the subscriber takes batches, before they are extracted. Use it for a producer such as
   * libarrow's, which is destroyed with its last task, and to keep a slow producer busy. With 0,
   * only the subscriber requests batches.
   *
   * @param window the number of batches
   */
  public AsyncDeviceStream(int window) {
    subscription = new AsyncSubscription(core, window);
    Slot.onCollected(this, subscription::collected);
  }

  /**
   * Sets a consumer that is called with the borrowed schema on the producer's thread. If it throws,
   * the schema is rejected and the stream ends. Set it before passing on the handler.
   *
   * @param consumer the consumer to call
   * @return this stream
   */
  public AsyncDeviceStream onSchema(Consumer<Schema> consumer) {
    core.schemaCheck = Objects.requireNonNull(consumer, "consumer");
    return this;
  }

  /**
   * Sets a consumer that is called with each batch's metadata, before the batch is extracted. It
   * follows the rules of {@link #onSchema}.
   *
   * @param consumer the consumer to call
   * @return this stream
   */
  public AsyncDeviceStream onTask(Consumer<Metadata> consumer) {
    core.taskCheck = Objects.requireNonNull(consumer, "consumer");
    return this;
  }

  /**
   * Sets a consumer that is called for each warning; see {@link DeviceArrayStream#onWarning}.
   *
   * @param consumer the consumer to call
   * @return this stream
   */
  public AsyncDeviceStream onWarning(Consumer<Warning> consumer) {
    core.onWarning = Objects.requireNonNull(consumer, "consumer");
    return this;
  }

  /**
   * The address of an ArrowAsyncDeviceStreamHandler in C memory, for one producer, which must
   * always call its release. The address never changes. It is valid until both the release and the
   * close.
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
   * Releases the handler on behalf of a producer that rejected it, or failed before accepting it.
   * Without a release, the memory of the handler is never freed. The handler must not be used
   * afterwards. The stream fails with EIO, unless it is closed.
   *
   * @throws IllegalStateException if a producer has sent the schema
   */
  public void releaseHandler() {
    core.releaseUnused();
    Reference.reachabilityFence(this);
  }

  /**
   * The schema of all batches, once it has arrived. Each call returns a new schema, which the
   * caller closes. Fails with the stream's error if the stream ends without a schema.
   *
   * @return a stage that completes with the schema
   */
  public CompletionStage<Schema> schema() {
    return core.schemaKnown.thenApply(known -> core.schema());
  }

  /**
   * The device type of all batches; null until the schema arrives.
   *
   * @return the device type, or null
   */
  public DeviceType deviceType() {
    AsyncAbi.Promise promise = core.promise;
    return promise == null ? null : promise.deviceType;
  }

  /**
   * The metadata of the stream; empty until the schema arrives.
   *
   * @return the metadata of the stream
   */
  public Metadata metadata() {
    AsyncAbi.Promise promise = core.promise;
    return promise == null ? Metadata.EMPTY : promise.metadata;
  }

  /**
   * The metadata of the last batch passed to onNext.
   *
   * @return the metadata of the last batch
   */
  public Metadata batchMetadata() {
    return subscription.batchMetadata;
  }

  /** Subscribes once; any further subscriber receives an IllegalStateException. */
  @Override
  public void subscribe(Flow.Subscriber<? super DeviceArray> subscriber) {
    subscription.subscribe(subscriber);
    Reference.reachabilityFence(this);
  }

  /**
   * The same batches, each with its metadata. Subscribe either to this publisher or to the stream:
   * they share the one subscriber.
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
   * Cancels the stream, unless it is over: drops queued batches, without waiting for the producer.
   * The subscriber receives an IllegalStateException. A second close has no effect.
   */
  @Override
  public void close() {
    subscription.close(Owner.closed("AsyncDeviceStream"));
  }
}
