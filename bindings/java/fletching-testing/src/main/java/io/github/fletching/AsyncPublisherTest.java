// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.github.fletching.testing.CapturedLog;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Flow;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;

/** The stream as a {@code Flow.Publisher}. */
class AsyncPublisherTest extends AsyncConsumerTest {
  @Test
  void lateSubscriberReceivesAllBatches() {
    create(new AsyncDeviceStream(2), 0);
    finish();
    released = false;
    stream = new AsyncDeviceStream(2);
    peer = new AsyncProducerPeer(stream);
    peer.schema();
    peer.task(1, live.batch(1), 0);
    peer.task(2, live.batch(2), 0);
    peer.end();
    release();
    rows = new AsyncRows(5, 0);
    stream.subscribe(rows);
    assertRows(1, 2, 0);
  }

  @Test
  void windowRequestsAsManyAsTaken() {
    stream = new AsyncDeviceStream(4);
    peer = new AsyncProducerPeer(stream);
    peer.schema();
    for (int row = 1; row <= 4; row++) {
      peer.task(row, live.batch(row), 0);
    }
    rows = new AsyncRows(5, 0);
    stream.subscribe(rows);
    assertEquals(
        "request 4, extract 1, request 2, extract 2, extract 3, request 2, extract 4",
        peer.calls());
    peer.end();
    release();
    assertRows(1, 2, 3, 4, 0);
  }

  @Test
  void subscribeRejectsSecondSubscriber() {
    open(1);
    AsyncRows second = new AsyncRows(1, 0);
    stream.subscribe(second);
    assertEquals("subscribe: second subscriber: expected one", second.error.getMessage());
    assertEquals(IllegalStateException.class, second.error.getClass());
    second.subscription.request(5); // rule 1.9: a rejected subscriber gets a subscription
    second.subscription.cancel();
    assertEquals("request 1", peer.calls());
    assertThrows(NullPointerException.class, () -> stream.subscribe(null));
    peer.task(1);
    peer.end();
    assertRows(1, 0);
    // The same holds after the end.
    AsyncRows third = new AsyncRows(1, 0);
    stream.subscribe(third);
    assertEquals(List.of(-1000L), third.rows());
  }

  @Test
  void throwingSubscriberCancels() {
    Flow.Subscriber<DeviceArray> odd =
        new AsyncRows(3, 0) {
          @Override
          public void onNext(DeviceArray batch) {
            super.onNext(batch);
            throw new IllegalStateException("odd");
          }
        };
    finish();
    released = false;
    stream = new AsyncDeviceStream();
    peer = new AsyncProducerPeer(stream);
    stream.subscribe(odd);
    peer.schema();
    CapturedLog log = new CapturedLog();
    try {
      assertEquals(0, peer.task(1, live.batch(1), 0));
      assertEquals(List.of("subscriber: the callback threw: odd"), log.take());
    } finally {
      log.close();
    }
    assertEquals(0, peer.task(2, live.batch(2), 0));
    assertEquals("request 3, extract 1, cancel, drop 2", peer.calls());
  }

  @Test
  void schemaArrivesBeforeFirstBatch() {
    create(1);
    List<String> seen = new ArrayList<>();
    stream
        .schema()
        .thenAccept(
            schema -> {
              seen.add(schema.format());
              schema.close();
            });
    assertEquals(List.of(), seen);
    peer.schema();
    assertEquals(List.of("i"), seen);
  }

  @Test
  void unreachableStreamWithoutSubscriberIsCancelledAndCounted() throws Exception {
    long before = Owner.leaks();
    CapturedLog log = new CapturedLog();
    try {
      stream = new AsyncDeviceStream();
      peer = new AsyncProducerPeer(null, stream.handlerAddress());
      released = false;
      peer.schema();
      stream = null;
      while (Owner.leaks() == before) {
        System.gc();
        Thread.onSpinWait();
      }
    } finally {
      log.close();
    }
    while (!peer.calls().equals("cancel")) { // called after the leak is counted
      Thread.onSpinWait();
    }
    assertEquals(before + 1, Owner.leaks());
  }

  @Test
  void unreachableStreamWithSubscriberIsReadToEnd() throws Exception {
    long before = Owner.leaks();
    create(1);
    WeakReference<AsyncDeviceStream> weak = new WeakReference<>(stream);
    AsyncProducerPeer old = peer;
    peer = new AsyncProducerPeer(null, old.handler);
    AsyncForeign.freeProducer(old.object);
    old = null;
    stream = null;
    while (weak.get() != null) {
      System.gc();
      Thread.onSpinWait();
    }
    peer.schema();
    peer.task(1);
    peer.end();
    release();
    assertRows(1, 0);
    assertEquals(before, Owner.leaks());
    long handle = C.getAddress(peer.handler + Fields.HANDLER_PRIVATE_DATA);
    while (handle != 0) { // the cleaner sets it to 0
      handle = C.getAddress(peer.handler + Fields.HANDLER_PRIVATE_DATA);
      System.gc();
    }
  }

  /** Subscribes to three batches that have arrived. */
  private void subscribe(Consumer<Flow.Subscription> onNext) {
    finish();
    released = false;
    stream = new AsyncDeviceStream(3);
    peer = new AsyncProducerPeer(stream);
    peer.schema();
    for (int row = 1; row <= 3; row++) {
      peer.task(row, live.batch(row), 0);
    }
    rows =
        new AsyncRows(3, 0) {
          @Override
          public void onNext(DeviceArray batch) {
            super.onNext(batch);
            onNext.accept(subscription);
          }
        };
    stream.subscribe(rows);
    assertEquals("request 3, extract 1, cancel, drop 2, drop 3", peer.calls());
    assertEquals(0, live.get());
  }

  @Test
  void invalidRequestIsFollowedOnlyByError() {
    subscribe(subscription -> subscription.request(-1));
    assertRows(1, -1000);
  }

  @Test
  void cancelIsFollowedByNoSignal() {
    subscribe(Flow.Subscription::cancel);
    assertRows(1);
    rows.subscription.request(-1);
    peer.end();
    assertRows(1);
  }

  @Test
  void nonpositiveWindowIsIgnored() {
    for (int window : new int[] {0, -1}) {
      create(new AsyncDeviceStream(window), 2);
      peer.schema();
      peer.task(1);
      assertEquals("request 2, extract 1", peer.calls());
      assertRows(1);
    }
  }

  @Test
  void onlyUnclosedStreamCountsAsLeak() {
    for (boolean isClosed : new boolean[] {true, false}) {
      AsyncHandler core = new AsyncHandler();
      AsyncSubscription subscription = new AsyncSubscription(core, 0);
      long before = Owner.leaks();
      if (isClosed) {
        subscription.close(new IllegalStateException("cancelled"));
      }
      CapturedLog log = new CapturedLog();
      try {
        subscription.collected();
      } finally {
        log.close();
      }
      assertEquals(isClosed ? before : before + 1, Owner.leaks());
      assertEquals(
          isClosed ? "cancelled" : "AsyncDeviceStream: closed or moved: expected a live struct",
          core.outcome().getMessage());
    }
  }
}
