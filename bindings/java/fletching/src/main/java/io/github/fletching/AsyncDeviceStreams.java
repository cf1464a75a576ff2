// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import io.github.fletching.abi.DeviceType;
import java.util.Iterator;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.concurrent.Flow;
import java.util.function.Function;

/**
 * Sends batches to the handler of a consumer in another library.
 *
 * <p>The schema and the batches are moved. Jobs on the executor call the handler and the publisher,
 * one call at a time. They never run inside the consumer's {@code request} and {@code cancel}, so
 * the executor must not run jobs on the submitting thread. The stream fails if the executor rejects
 * a job, or drops an accepted job and the job is garbage-collected. The last calls then run on the
 * {@linkplain CompletableFuture#defaultExecutor() default executor}. If that rejects them too, they
 * run on the thread that detected the failure.
 *
 * <p>The consumer's requests are forwarded to the publisher's subscription. A cancel cancels the
 * subscription. A non-positive request also cancels it, and fails the stream. on_error receives the
 * error from the publisher or iterator, with the errno values of {@link DeviceArrayStream#of}. It
 * receives EINVAL for a malformed schema, and for a batch that is closed, on another device type,
 * or different from the schema as described there. An error or a cancel overtakes unsent batches.
 *
 * <p>The returned stage completes when the handler is released, after the last task is extracted.
 * It completes normally after the end of the stream and after a cancel by the consumer; otherwise
 * with the error that the consumer received or returned. The handler is always released, unless a
 * method of this class throws.
 *
 * <p>See "Async device stream interface" in the Arrow C device data interface.
 */
public final class AsyncDeviceStreams {
  private AsyncDeviceStreams() {}

  /**
   * Sends the batches of a publisher; the jobs run on the {@linkplain
   * CompletableFuture#defaultExecutor() default executor}.
   *
   * @param schema the type of the batches
   * @param deviceType the type of the device
   * @param batches the batches to send
   * @param handler the address of the handler
   * @return a stage that completes when the stream is over
   * @throws FletchingException EINVAL if the handler is 0 or lacks a callback, and for a device
   *     type of 0; the caller then keeps the schema and the handler
   * @throws IllegalStateException if the schema is closed
   */
  public static CompletionStage<Void> send(
      Schema schema, DeviceType deviceType, Flow.Publisher<DeviceArray> batches, long handler) {
    return publish(
        schema, deviceType, Metadata.EMPTY, batches, AsyncBatch::of, executor(), handler);
  }

  /**
   * Sends the batches of an iterator. The jobs read one batch ahead of the requests, so that the
   * end of the stream needs no request. The iterator may block and is not interrupted. If it is
   * AutoCloseable, it is closed with the stream. Throws as the other overloads do.
   *
   * @param batches the batches to send
   * @param executor the executor of the jobs
   * @param handler the address of the handler
   * @param schema the type of the batches
   * @param deviceType the type of the device
   * @return a stage that completes when the stream is over
   */
  public static CompletionStage<Void> send(
      Schema schema,
      DeviceType deviceType,
      Iterator<DeviceArray> batches,
      Executor executor,
      long handler) {
    Objects.requireNonNull(batches, "batches");
    schema.open("send");
    AsyncSending<DeviceArray> sending =
        new AsyncSending<>(handler, deviceType, Metadata.EMPTY, executor, AsyncBatch::of);
    sending.iterator = batches;
    sending.open(schema);
    return sending.done;
  }

  /**
   * Sends the metadata of the stream, and batches that may have metadata or be made at extraction.
   * Throws as the other overloads do.
   *
   * @param metadata the metadata of the stream
   * @param batches the batches to send
   * @param executor the executor of the jobs
   * @param handler the address of the handler
   * @param schema the type of the batches
   * @param deviceType the type of the device
   * @return a stage that completes when the stream is over
   */
  public static CompletionStage<Void> send(
      Schema schema,
      DeviceType deviceType,
      Metadata metadata,
      Flow.Publisher<AsyncBatch> batches,
      Executor executor,
      long handler) {
    return publish(schema, deviceType, metadata, batches, Function.identity(), executor, handler);
  }

  private static <T> CompletionStage<Void> publish(
      Schema schema,
      DeviceType deviceType,
      Metadata metadata,
      Flow.Publisher<T> batches,
      Function<T, AsyncBatch> toBatch,
      Executor executor,
      long handler) {
    Objects.requireNonNull(batches, "batches");
    schema.open("send");
    AsyncSending<T> sending = new AsyncSending<>(handler, deviceType, metadata, executor, toBatch);
    sending.open(schema);
    try {
      batches.subscribe(sending);
    } catch (RuntimeException | Error thrown) {
      sending.fail(thrown);
    }
    return sending.done;
  }

  /** The common pool, or a new thread per job if the pool may have no threads. */
  static Executor executor() {
    return new CompletableFuture<>().defaultExecutor();
  }
}
