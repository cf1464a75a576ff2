// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.AsyncRows.rowsOf;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.fletching.abi.DeviceType;
import io.github.fletching.abi.engine.Handles;
import io.github.fletching.testing.CountingEngine;
import io.github.fletching.testing.suite.LibraryCopy;
import io.github.fletching.testing.suite.OnLibraryCopy;
import java.lang.reflect.Field;
import java.util.ArrayDeque;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Failing publishers and executors, and failing allocations. */
class AsyncExecutorsTest extends AsyncProducerTest {
  @Test
  void interruptInMakerIsRestored() {
    startEndless(
        AsyncBatch.made(
            () -> {
              throw new InterruptedException("slow");
            }));
    peer.request(1);
    assertEquals(-5, peer.run().extract());
    assertTrue(Thread.interrupted());
    String text = "error 5 java.lang.InterruptedException: slow, release";
    assertEquals("task, failed, " + text, peer.run().calls());
  }

  // --- Publishers and executors

  @Test
  void failedSubscribeFailsStream() {
    AsyncDeviceStreams.send(
        AsyncRows.schema(),
        DeviceType.CPU,
        Metadata.EMPTY,
        subscriber -> {
          throw new IllegalStateException("no");
        },
        peer,
        peer.handler);
    assertEquals("error 5 java.lang.IllegalStateException: no, release", peer.run().calls());
  }

  @Test
  void rejectingExecutorFailsStream() throws Exception {
    Throwable thrown =
        assertThrows(
            CompletionException.class,
            () ->
                AsyncDeviceStreams.send(
                        AsyncRows.schema(),
                        DeviceType.CPU,
                        List.<DeviceArray>of().iterator(),
                        job -> {
                          throw new RejectedExecutionException("full");
                        },
                        peer.handler)
                    .toCompletableFuture()
                    .join());
    assertTrue(thrown.getMessage().endsWith("full"), thrown.getMessage());
    assertEquals(
        "error 5 java.util.concurrent.RejectedExecutionException: full, release", peer.calls());
  }

  @Test
  void streamEndsWhenAllExecutorsReject() {
    Executor full =
        job -> {
          throw new RejectedExecutionException("full");
        };
    sending = new AsyncSending<>(peer.handler, DeviceType.CPU, metadata, full, Function.identity());
    sending.spare = full;
    sending.open(AsyncRows.schema());
    String text = "java.util.concurrent.RejectedExecutionException: full";
    assertEquals("error 5 " + text + ", release", peer.calls());
    assertResult(5, text);
  }

  /** ThreadPoolExecutor.DiscardPolicy and shutdownNow drop jobs like this. */
  @Test
  @Timeout(60)
  void executorDroppingJobFailsStream() {
    sending =
        new AsyncSending<>(peer.handler, DeviceType.CPU, metadata, job -> {}, Function.identity());
    sending.spare = Runnable::run;
    sending.open(AsyncRows.schema());
    while (!sending.done.isDone() && !Thread.interrupted()) {
      System.gc();
    }
    String text = "send: job dropped by the executor: expected a run or a refusal";
    assertEquals("error 5 " + text + ", release", peer.calls());
    assertResult(5, text);
  }

  @Test
  void executorWithoutThreadFailsStreamAndMayKeepJob() {
    boolean[] hasThreads = {true};
    Executor executor =
        job -> {
          peer.execute(job);
          if (!hasThreads[0]) {
            throw new OutOfMemoryError("no thread");
          }
        };
    CompletionStage<Void> done =
        AsyncDeviceStreams.send(
            AsyncRows.schema(),
            DeviceType.CPU,
            Stream.generate(() -> rowsOf(1)).iterator(),
            executor,
            peer.handler);
    peer.run().calls();
    hasThreads[0] = false;
    peer.request(1);
    assertThrows(
        ExecutionException.class, () -> done.toCompletableFuture().get(60, TimeUnit.SECONDS));
    assertEquals("error 12 java.lang.OutOfMemoryError: no thread, release", peer.calls());
    assertEquals("", peer.run().calls());
  }

  // --- Without memory

  @Test
  @OnLibraryCopy
  void sendWithoutMemoryForJobFailsStream() {
    makePeer();
    LibraryCopy.without(AsyncSending.class.getName() + "$Turn", () -> send(AsyncRows.schema()));
    assertEquals("error 12 java.lang.OutOfMemoryError: no room, release", peer.calls());
    assertResult(12, "java.lang.OutOfMemoryError: no room");
    everyBatchIsReleased();
  }

  @Test
  void onNextWithoutMemoryForQueueReleasesBatch() throws ReflectiveOperationException {
    startEndless();
    Field queue = AsyncSending.class.getDeclaredField("queue");
    queue.setAccessible(true);
    queue.set(
        sending,
        new ArrayDeque<AsyncTask>() {
          private static final long serialVersionUID = 1;

          @Override
          public boolean add(AsyncTask task) {
            throw new OutOfMemoryError("no room");
          }
        });
    sending.onNext(AsyncBatch.of(live.batch(1)));
    assertEquals(0, live.get());
    assertEquals("error 12 java.lang.OutOfMemoryError: no room, release", peer.run().calls());
  }

  @Test
  void onNextWithoutMemoryForBatchReleasesArray() {
    AsyncSending<DeviceArray> arrays =
        new AsyncSending<>(
            peer.handler,
            DeviceType.CPU,
            metadata,
            peer,
            array -> {
              throw new InternalError("no room"); // JUnit aborts its run on OutOfMemoryError
            });
    arrays.open(AsyncRows.schema());
    arrays.onNext(live.batch(1));
    assertEquals(0, live.get());
    assertEquals("error 5 java.lang.InternalError: no room, release", peer.run().calls());
    assertTrue(arrays.done.isCompletedExceptionally());
  }

  @Test
  @OnLibraryCopy
  void sendWithoutMemoryForStubDoesNotLeak() {
    makePeer();
    metadata = Metadata.EMPTY.with("key", "value");
    int[] live = new int[2];
    for (int i = 0; i < 2; i++) { // the block is kept from the first send
      CountingEngine.refuseStubs(true);
      assertThrows(
          OutOfMemoryError.class,
          () ->
              new AsyncSending<>(
                  peer.handler, DeviceType.CPU, metadata, peer, Function.<AsyncBatch>identity()));
      CountingEngine.refuseStubs(false);
      live[i] = CountingEngine.live();
    }
    assertEquals(live[0], live[1]);
    assertEquals(0, peer.producer());
    peer.close();
  }

  @Test
  void sendRejectsNullArguments() {
    int before = Handles.count();
    Schema schema = AsyncRows.schema();
    Iterator<DeviceArray> none = List.<DeviceArray>of().iterator();
    long handler = peer.handler;
    assertThrows(
        NullPointerException.class,
        () -> AsyncDeviceStreams.send(schema, DeviceType.CPU, none, null, handler));
    assertThrows(
        NullPointerException.class,
        () -> AsyncDeviceStreams.send(schema, DeviceType.CPU, null, peer, handler));
    assertFalse(schema.isReleased());
    schema.close();
    assertEquals(before, Handles.count());
    send(); // the handler is still unused
    peer.run();
  }

  @Test
  void secondSubscriptionIsCancelled() {
    startEndless();
    AsyncItems other = new AsyncItems(List.of(live.batch(1)));
    other.subscribe(sending);
    assertTrue(other.isClosed);
    assertFalse(items.isClosed);
    peer.cancel();
    peer.run();
    assertTrue(items.isClosed);
    sending.onNext(AsyncBatch.of(live.batch(2))); // after the end
    assertEquals(0, live.get());
  }

  @Test
  void errorIsNotReportedAsEnd() {
    startEndless();
    sending.onError(disk());
    assertEquals("error 71 disk, release", peer.run().calls());
  }
}
