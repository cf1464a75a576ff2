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
 * <p>The schema and the batches are moved in. Jobs on the executor make all calls of the handler
 * and of the publisher, one at a time: never inside {@code request} and {@code cancel} of the
 * consumer, so the executor must not run them on the thread that submits them. An executor that
 * refuses a job fails the stream, and so does one that drops an accepted job, when that is
 * collected; the last calls are made on the {@linkplain CompletableFuture#defaultExecutor() default
 * executor}, or on the thread that found out if that refuses too.
 *
 * <p>What the consumer requests is requested of the publisher's subscription. A cancel cancels it,
 * and so does a request that is not positive, which is an error of the stream. What the publisher,
 * or an iterator, fails with is what on_error gets, with the errno values of {@link
 * DeviceArrayStream#of}; so is, with EINVAL, a malformed schema, and a batch that is closed, on
 * another type of device, or different from the schema as described there. An error and a cancel
 * overtake batches that are not sent.
 *
 * <p>The stage that is returned completes when the handler is released, which is after the last
 * task is extracted: normally after the end and when the consumer has cancelled, else with the
 * error that the consumer got or with which it refused something. The handler is released in any
 * case, unless a method here throws.
 *
 * <p>Text: C device data interface, "Async device stream interface".
 */
public final class AsyncDeviceStreams {
  private AsyncDeviceStreams() {}

  /**
   * Sends the batches of a publisher; the jobs run on the {@linkplain
   * CompletableFuture#defaultExecutor() default executor}.
   *
   * @param schema the schema
   * @param deviceType the type of the device
   * @param batches the batches
   * @param handler the address of the handler
   * @return a stage that is completed when the stream is over
   * @throws FletchingException EINVAL for a handler that is 0 or lacks a callback, and for a device
   *     type of 0; the schema and the handler stay the caller's
   * @throws IllegalStateException when the schema is closed
   */
  public static CompletionStage<Void> send(
      Schema schema, DeviceType deviceType, Flow.Publisher<DeviceArray> batches, long handler) {
    return publish(
        schema, deviceType, Metadata.EMPTY, batches, AsyncBatch::of, executor(), handler);
  }

  /**
   * Sends the batches of an iterator, which the jobs call: one ahead of the requests, so that the
   * end needs none. It may block; it is not interrupted. It is closed with the stream when it is
   * AutoCloseable. Throws as the other.
   *
   * @param batches the batches
   * @param executor the executor of the jobs
   * @param handler the address of the handler
   * @param schema the schema
   * @param deviceType the type of the device
   * @return a stage that is completed when the stream is over
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
   * Sends batches with metadata, and ones that are made later, and the metadata of the stream.
   * Throws as the others.
   *
   * @param metadata the metadata
   * @param batches the batches
   * @param executor the executor of the jobs
   * @param handler the address of the handler
   * @param schema the schema
   * @param deviceType the type of the device
   * @return a stage that is completed when the stream is over
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

  /** The common pool, or a thread for each job where the pool may have none. */
  static Executor executor() {
    return new CompletableFuture<>().defaultExecutor();
  }
}
