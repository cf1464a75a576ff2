// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.AsyncItems.counting;
import static io.github.fletching.AsyncRows.rowsOf;
import static io.github.fletching.Native.C;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Test;

/** The rules about tasks, requests and cancels that a producer could break. */
public abstract class AsyncRequestRules extends AsyncProducerTest {
  @Test
  void ruleAsyncTaskNullAccepted() {
    start(live.batch(1), lost(disk()));
    peer.request(2);
    peer.run();
    assertEquals(0, peer.drop());
    assertEquals(0, live.get());
    assertEquals(0, peer.drop()); // what is dropped is not made
    assertEquals("task, task, end, release", peer.run().calls());
  }

  @Test
  void ruleAsyncTaskCleansUp() {
    startEndless(live.batch(1));
    peer.request(1);
    peer.run();
    long task = peer.oldest();
    long copy = AsyncForeign.copyTask(task);
    assertEquals(1, peer.extract(task));
    assertEquals(-22, peer.extract(task));
    assertEquals(22, AsyncForeign.callExtract(task, 0));
    assertEquals(-22, peer.extract(copy));
    assertEquals("task, failed, failed", peer.calls());
  }

  @Test
  void ruleAsyncTaskFailureThenOnError() {
    FletchingException error = new FletchingException(12, "no memory for it");
    start(lost(error), live.batch(2), live.batch(3));
    peer.request(2);
    peer.run();
    assertEquals(-12, peer.extract());
    peer.request(1);
    peer.run().drop();
    assertEquals("task, task, failed, error 12 no memory for it, release", peer.run().calls());
    // Not when the stream is over.
    start(lost(error), live.batch(2), live.batch(3));
    peer.request(3);
    peer.run();
    assertEquals(List.of(-12L, 2L, 3L), List.of(peer.extract(), peer.extract(), peer.extract()));
    assertEquals("task, task, task, end, failed, release", peer.run().calls());
  }

  @Test
  void ruleAsyncTaskReturnsErrno() {
    for (RuntimeException odd :
        List.of(new FletchingException(-7, "odd"), new IllegalStateException("odd"))) {
      startEndless(lost(odd));
      peer.request(1);
      assertEquals(-5, peer.run().extract());
    }
    finish();
    startEndless(AsyncBatch.made(() -> null));
    peer.request(1);
    assertEquals(-22, peer.run().extract());
    assertEquals(
        "task, failed, error 22 batch: null: expected an array, release", peer.run().calls());
  }

  @Test
  void ruleAsyncTaskInOrder() {
    start(counting(200));
    peer.request(200);
    peer.run();
    for (long rows = 1; rows <= 200; rows++) {
      assertEquals(rows, peer.extract());
    }
  }

  @Test
  void ruleAsyncHandlerPrivateDataUntouched() {
    long before = C.getAddress(peer.handler + Fields.HANDLER_PRIVATE_DATA);
    assertSent("schema, end, release");
    assertEquals(before, C.getAddress(peer.handler + Fields.HANDLER_PRIVATE_DATA));
  }

  // --- Request and cancel

  @Test
  void ruleAsyncRequestInsideHandlers() {
    peer.inside =
        call -> {
          if (call.equals("schema") || call.equals("task")) {
            peer.request(1);
          }
        };
    assertSent("schema, task, task, task, end", counting(3));
  }

  @Test
  void ruleAsyncRequestNotSynchronous() {
    start(counting(1));
    peer.request(1);
    peer.request(0);
    assertEquals("", peer.calls());
    assertEquals(
        "error 22 request: n is not positive: expected 1 or more, got 0, release",
        peer.run().calls());
  }

  @Test
  void ruleAsyncRequestScheduled() {
    startEndless(rowsOf(1));
    assertEquals(0, peer.jobs.size()); // a stream with nothing to do has no job
    peer.request(1);
    assertEquals(1, peer.jobs.size());
    assertEquals("task", peer.run().calls());
  }

  @Test
  void ruleAsyncRequestAddsUp() {
    start(counting(5));
    peer.request(1);
    assertEquals("task", peer.run().calls());
    peer.request(1);
    peer.request(1);
    assertEquals("task, task", peer.run().calls());
    for (int i = 0; i < 3; i++) {
      peer.request(Long.MAX_VALUE);
    }
    assertEquals("task, task, end", peer.run().calls());
  }

  @Test
  void ruleAsyncRequestNotExceeded() {
    start(counting(5));
    assertEquals("", peer.calls());
    peer.request(3);
    assertEquals("task, task, task", peer.run().calls());
    // Also of a publisher that sends more than was requested.
    startEndless();
    for (Object more : counting(3)) {
      sending.onNext(AsyncBatch.of((DeviceArray) more));
    }
    peer.request(2);
    assertEquals("task, task", peer.run().calls());
  }

  @Test
  void ruleAsyncRequestRefusedWhenNotPositive() {
    for (long n : new long[] {0, -1, Long.MIN_VALUE}) {
      startEndless(live.batch(1));
      peer.request(n);
      String text = "request: n is not positive: expected 1 or more, got " + n;
      assertEquals("error 22 " + text + ", release", peer.run().calls());
      assertResult(22, text);
    }
  }

  @Test
  void ruleAsyncRequestErrorsThroughOnError() {
    peer.inside =
        call -> {
          if (call.equals("end")) {
            peer.request(-1); // not when the stream is over
          }
        };
    assertSent("schema, end, release");
  }

  @Test
  void ruleAsyncRequestNothingAfterCancel() {
    start(counting(5));
    peer.cancel();
    peer.request(3);
    peer.request(-3);
    assertEquals("release", peer.run().calls());
  }

  @Test
  void ruleAsyncCancelStops() {
    start(live.batch(1), live.batch(2), live.batch(3));
    peer.request(1);
    peer.run().cancel();
    assertEquals("task", peer.run().calls());
    assertTrue(items.isClosed);
    peer.drop();
    assertEquals("release", peer.run().calls());
    assertEquals(0, live.get());
    sending.done.join();
  }

  @Test
  void ruleAsyncCancelIdempotent() {
    start(counting(5));
    peer.cancel();
    peer.cancel();
    assertEquals("release", peer.run().calls());
  }

  @Test
  void ruleAsyncCancelThreadSafe() {
    for (int run = 0; run < 50; run++) {
      start(counting(20));
      List<Thread> threads = List.of(canceller(), canceller(), canceller());
      peer.inside =
          call -> {
            if (call.equals("task")) {
              peer.drop();
            } else if (call.equals("release")) {
              threads.forEach(AsyncProducerTest::join); // the producer is valid until this returns
            }
          };
      peer.request(20);
      threads.forEach(Thread::start);
      peer.run();
      threads.forEach(AsyncProducerTest::join);
      assertTrue(peer.run().calls().endsWith("release"));
    }
  }

  private Thread canceller() {
    return new Thread(peer::cancel);
  }

  @Test
  void ruleAsyncCancelCallsNoHandler() {
    startEndless();
    peer.cancel();
    assertEquals("", peer.calls());
  }

  @Test
  void ruleAsyncCancelNoOnError() {
    start(live.batch(1), disk());
    peer.cancel();
    peer.request(9);
    assertEquals("release", peer.run().calls());
  }
}
