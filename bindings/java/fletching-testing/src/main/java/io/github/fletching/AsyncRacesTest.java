// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.fletching.abi.DeviceType;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Races of subscriptions, requests, extractions, cancels, ends and releases. On a busy machine, 300
 * runs take minutes without a deadlock.
 */
@Timeout(600)
class AsyncRacesTest extends AsyncConsumerTest {
  private static final int RUNS = 300;

  /** Runs the body on a thread; the caller joins the result. */
  private static CompletableFuture<Void> start(Runnable body) {
    return CompletableFuture.runAsync(body, job -> new Thread(job).start());
  }

  private static void await(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  /** Opens a stream that has a schema and queued tasks but no subscriber. */
  private void openQueued(int tasks) {
    finish();
    released = false;
    stream = new AsyncDeviceStream(tasks);
    rows = new AsyncRows(Long.MAX_VALUE, 0);
    peer = new AsyncProducerPeer(stream);
    peer.schema();
    for (int row = 1; row <= tasks; row++) {
      peer.task(row, live.batch(row), 0);
    }
  }

  @Test
  void errorIsNotReportedAsEnd() {
    for (int run = 0; run < RUNS; run++) {
      openQueued(1);
      CompletableFuture<Void> subscribed = start(() -> stream.subscribe(rows));
      peer.fail(71, null);
      release();
      List<Long> found = rows.await();
      assertTrue(found.equals(List.of(1L, -71L)) || found.equals(List.of(-71L)), found.toString());
      subscribed.join();
    }
  }

  @Test
  void releaseAfterEndLosesNoBatch() {
    for (int run = 0; run < RUNS; run++) {
      openQueued(9);
      CompletableFuture<Void> subscribed = start(() -> stream.subscribe(rows));
      peer.end();
      release();
      assertEquals(List.of(1L, 2L, 3L, 4L, 5L, 6L, 7L, 8L, 9L, 0L), rows.await());
      subscribed.join();
      assertEquals(0, live.get());
    }
  }

  @Test
  void releaseFailsSubscriberAndSchema() {
    for (int run = 0; run < RUNS; run++) {
      finish();
      released = false;
      stream = new AsyncDeviceStream();
      peer = new AsyncProducerPeer(stream);
      rows = new AsyncRows(1, 0);
      CompletableFuture<Void> subscribed = start(() -> stream.subscribe(rows));
      release();
      assertEquals(List.of(-5L), rows.await());
      subscribed.join();
      assertTrue(stream.schema().toCompletableFuture().isCompletedExceptionally());
    }
  }

  @Test
  void concurrentCancelLosesNoTask() {
    for (int run = 0; run < RUNS; run++) {
      openQueued(3);
      CompletableFuture<Void> closed =
          start(run % 3 == 0 ? stream::close : () -> stream.subscribe(rows));
      CompletableFuture<Void> closedToo = start(stream::close);
      if (run % 2 == 0) {
        peer.end();
        release();
      }
      closed.join();
      closedToo.join();
      assertEquals(0, live.get());
    }
  }

  @Test
  void cancelDuringReleaseDropsPendingTasks() {
    AsyncHandler core = queued(3);
    peer.end();
    peer.inside.set(() -> core.cancel(new IllegalStateException("cancelled")));
    release();
    assertEquals("extract 1, drop 2, drop 3", peer.calls());
    assertEquals(0, live.get());
    assertEquals("cancelled", core.outcome().getMessage());
    core.close();
  }

  @Test
  void outcomeIsUnsetWhileReleaseExtracts() {
    AsyncHandler core = queued(1);
    peer.end();
    List<Object> seen = new ArrayList<>();
    peer.inside.set(() -> seen.add(String.valueOf(core.outcome())));
    release();
    assertEquals(List.of("null"), seen);
    take(core, 1);
    core.close();
  }

  /** Calls release while a call to the consumer runs on another thread. */
  private void releaseDuring(String call, Consumer<AsyncHandler> action) {
    AsyncHandler core = queued(1);
    LinkedBlockingQueue<String> inside = new LinkedBlockingQueue<>();
    CountDownLatch mayGoOn = new CountDownLatch(1);
    peer.inside.set(
        () -> {
          inside.add(call);
          AsyncRacesTest.await(mayGoOn);
        });
    CompletableFuture<Void> acted = start(() -> action.accept(core));
    while (inside.isEmpty()) {
      Thread.onSpinWait();
    }
    CompletableFuture<Void> releasing = start(this::release);
    while (core.state != AsyncConsumer.State.RELEASING) {
      Thread.onSpinWait();
    }
    peer.release(); // a second release does not wait
    // The wait itself is not observable, only that release has not returned.
    boolean returned = releasing.isDone();
    mayGoOn.countDown();
    releasing.join();
    acted.join();
    assertTrue(!returned, "release does not wait for " + call);
    assertTrue(peer.calls().startsWith(call));
    core.close();
  }

  @Test
  void releaseWaitsForOtherThreads() {
    releaseDuring("request 1", core -> core.request(1));
    releaseDuring("cancel", core -> core.cancel(new IllegalStateException()));
    releaseDuring("extract 1", core -> take(core, 1));
    releaseDuring("drop 1", AsyncConsumerTest::skip);
  }

  @Test
  void releaseDoesNotExtractDuringRequest() {
    AsyncHandler core = queued(1);
    CountDownLatch inside = new CountDownLatch(1);
    CountDownLatch mayGoOn = new CountDownLatch(1);
    peer.inside.set(
        () -> {
          inside.countDown();
          AsyncRacesTest.await(mayGoOn);
        });
    CompletableFuture<Void> requested = start(() -> core.request(1));
    await(inside);
    peer.end();
    CompletableFuture<Void> releasing = start(this::release);
    while (core.state != AsyncConsumer.State.RELEASING) {
      Thread.onSpinWait();
    }
    assertEquals("", peer.calls());
    mayGoOn.countDown();
    releasing.join();
    requested.join();
    assertEquals("request 1, extract 1", peer.calls()); // recorded when the call returns
    take(core, 1);
    core.close();
  }

  /** A producer that breaks the protocol calls release from inside a call to it. */
  @Test
  void releaseInsideCallIsAllowed() {
    List<Consumer<AsyncHandler>> actions =
        List.of(
            core -> core.request(1),
            core -> core.cancel(new IllegalStateException()),
            core -> closed(core.take(1)),
            core -> closed(core.take(0)),
            AsyncConsumerTest::skip);
    for (boolean ends : new boolean[] {false, true}) {
      for (Consumer<AsyncHandler> action : actions) {
        AsyncHandler core = queued(1);
        peer.inside.set(
            () -> {
              if (ends) {
                peer.end();
              }
              release();
            });
        action.accept(core);
        assertEquals(AsyncConsumer.State.RELEASED, core.state);
        closed(core.take(0));
        core.cancel(new IllegalStateException());
        core.close();
        assertEquals(0, live.get());
      }
    }
  }

  /** Calls release from a request that is made during an extraction. */
  @Test
  void releaseInsideNestedCallIsAllowed() {
    AsyncHandler core = queued(1);
    peer.inside.set(
        () -> {
          peer.inside.set(this::release);
          core.request(1);
        });
    closed(core.take(0));
    assertEquals(AsyncConsumer.State.RELEASED, core.state);
    core.close();
  }

  private static void closed(AsyncConsumer.Received received) {
    if (received != null) {
      received.close();
    }
  }

  @Test
  void streamMayEndDuringRequest() {
    openQueued(1);
    peer.inside.set(() -> peer.fail(71, null));
    stream.subscribe(rows);
    assertEquals(List.of(-71L), rows.rows());
    assertEquals("request 1, drop 1, request 1", peer.calls());
    openQueued(2);
    peer.inside.set(
        () -> {
          peer.end();
          release();
        });
    stream.subscribe(rows);
    assertEquals(List.of(1L, 2L, 0L), rows.rows());
  }

  @Test
  void handlerIsReleasedOnceAfterAllExtractions() {
    for (int run = 0; run < RUNS; run++) {
      AsyncConsumerPeer consumer = new AsyncConsumerPeer();
      LinkedBlockingQueue<Long> arrived = new LinkedBlockingQueue<>();
      consumer.inside =
          call -> {
            if (call.equals("schema")) {
              consumer.request(3);
            } else if (call.equals("task")) {
              arrived.add(consumer.oldest());
            }
          };
      CompletableFuture<Void> done =
          AsyncDeviceStreams.send(
                  AsyncRows.schema(),
                  DeviceType.CPU,
                  IntStream.range(1, 4).mapToObj(live::batch).iterator(),
                  AsyncDeviceStreams.executor(),
                  consumer.handler)
              .toCompletableFuture();
      for (long row = 1; row <= 3; row++) {
        assertEquals(row, consumer.extract(next(arrived)));
      }
      done.join();
      assertEquals("schema, task, task, task, end, release", consumer.calls());
      consumer.close();
    }
  }

  private static long next(LinkedBlockingQueue<Long> queue) {
    try {
      return queue.take();
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  /** A subscriber that cancels while a batch is extracted must not get that batch. */
  @Test
  void cancelDuringExtractionClosesBatch() {
    openQueued(1);
    AsyncRows late = rows;
    Runnable inExtraction = () -> late.subscription.cancel();
    peer.inside.set(() -> peer.inside.set(inExtraction)); // the first call is the request
    stream.subscribe(
        new AsyncRows(1, 0) {
          @Override
          public void onSubscribe(java.util.concurrent.Flow.Subscription given) {
            late.subscription = given;
            super.onSubscribe(given);
          }

          @Override
          public void onNext(DeviceArray batch) {
            throw new AssertionError("a batch after the cancel");
          }
        });
    assertEquals(0, live.get());
    assertNull(late.error);
  }
}
