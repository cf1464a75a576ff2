// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.AsyncRows.rowsOf;
import static io.github.fletching.Native.C;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.fletching.abi.DeviceType;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** The rules about tasks and requests that a consumer could break. */
public abstract class AsyncTaskRules extends AsyncConsumerTest {
  @Test
  void ruleAsyncTaskExtractedOnce() {
    // Taken, skipped, and dropped by a cancel before and after they arrive.
    AsyncHandler core = queued(3);
    core.request(1);
    take(core, 1);
    assertTrue(skip(core));
    core.cancel(new IllegalStateException());
    assertEquals(0, peer.task(4, live.batch(4), 0));
    assertEquals("request 1, extract 1, drop 2, cancel, drop 3, drop 4", peer.calls());
    core.close();
  }

  @Test
  void ruleAsyncTaskNullDrops() {
    open(2);
    rows.subscription.cancel();
    peer.task(1, live.batch(1), 0);
    assertEquals("request 2, cancel, drop 1", peer.calls());
    assertEquals(0, live.get());
  }

  @Test
  void ruleAsyncTaskArrayReleasedSeparately() {
    AsyncHandler core = queued(3);
    DeviceArray first = core.take(0).batch;
    assertNull(core.outcome());
    peer.end();
    // What is queued is extracted in the release of a stream that has ended.
    release();
    assertEquals("extract 1, extract 2, extract 3", peer.calls());
    DeviceArray second = core.take(0).batch;
    assertTrue(skip(core));
    assertFalse(skip(core));
    assertEquals(2, live.get());
    assertSame(AsyncConsumer.END, core.outcome());
    core.close();
    assertEquals(3, first.length() + second.length());
    first.close();
    second.close();
  }

  @Test
  void ruleAsyncTaskExtractSet() {
    open(1);
    long task = AsyncAbi.takeBlock();
    assertEquals(22, AsyncForeign.onNextTask(peer.handler, task, 0));
    AsyncAbi.putBlock(task);
    assertFailed(22, "task.extract_data: NULL: expected a callback");
  }

  @Test
  void ruleAsyncRequestNeeded() {
    create(3);
    rows.subscription.request(4);
    assertEquals("", peer.calls());
    peer.schema();
    rows.subscription.request(1);
    assertEquals("request 7, request 1", peer.calls());
  }

  @Test
  void ruleAsyncRequestPositive() {
    for (long n : new long[] {0, -1, Long.MIN_VALUE}) {
      open(0);
      rows.subscription.request(n);
      assertEquals("cancel", peer.calls());
      assertEquals(
          "request: n is not positive: expected 1 or more, got " + n, rows.error.getMessage());
      assertEquals(IllegalArgumentException.class, rows.error.getClass());
    }
  }

  @Test
  void theDemandSaturatesAtTheLargestValue() {
    create(Long.MAX_VALUE);
    rows.subscription.request(1);
    peer.schema();
    rows.subscription.request(Long.MAX_VALUE);
    assertEquals("request 9223372036854775807, request 9223372036854775807", peer.calls());
    peer.task(1);
    peer.task(2);
    assertRows(1, 2);
  }

  @Test
  void aWindowIsRequestedAgainBeforeTheExtraction() {
    List<String> expected =
        List.of(
            "request 1, request 1, extract 1, request 1, extract 2, request 1, extract 3",
            "request 4, extract 1, request 2, extract 2, extract 3",
            "request 5, extract 1, extract 2, request 3, extract 3");
    for (int i = 0; i < 3; i++) {
      create(new AsyncDeviceStream(List.of(1, 4, 5).get(i)), 3);
      peer.schema();
      for (int row = 1; row <= 3; row++) {
        assertEquals(0, peer.task(row));
      }
      assertEquals(expected.get(i), peer.calls());
      assertRows(1, 2, 3);
    }
    // What the subscriber has not requested waits, and arrives after the end.
    create(new AsyncDeviceStream(2), 1);
    peer.schema();
    peer.task(1);
    peer.task(2, live.batch(2), 0);
    peer.end();
    release();
    assertRows(1);
    rows.subscription.request(1);
    assertRows(1, 2, 0);
  }

  @Test
  void ruleAsyncCancelLateCallsAccepted() {
    for (boolean ends : new boolean[] {false, true}) {
      open(2);
      stream.close();
      assertEquals(0, peer.task(2));
      if (ends) {
        assertEquals(0, peer.end());
      } else {
        peer.fail(71, "too late");
      }
      release();
      assertEquals("request 2, cancel, drop 2", peer.calls());
      assertEquals(
          "async stream: closed or moved: expected a live struct", rows.error.getMessage());
    }
  }

  @Test
  void anExtractionThatFailsEndsTheStream() {
    open(3);
    peer.task(1, rowsOf(1), 71);
    assertFailed(71, "extract_data: failed without a message");
    peer.task(2, live.batch(2), 0);
    peer.fail(71, null); // which the subscriber does not get
    assertEquals("request 3, extract 1, drop 2", peer.calls());
    assertRows(-71);
  }

  @Test
  void aWrongBatchCancelsTheStream() {
    open(3);
    live.incrementAndGet();
    peer.task(1, rowsOf(1, DeviceType.CUDA, live), 0);
    assertFailed(
        22,
        "batch: device_type differs from the stream's: expected cpu, got cuda (rule"
            + " async-producer.one-device-type)");
    peer.task(2, live.batch(2), 0);
    assertEquals("request 3, extract 1, cancel, drop 2", peer.calls());
    open(3);
    DeviceArray closed = rowsOf(1);
    closed.close();
    peer.task(1, closed, 0);
    assertFailed(22, "batch: released: expected a live array");
    create(1);
    peer.schema(new SchemaBuilder("+s").child(new SchemaBuilder("i")).build());
    peer.task(1);
    assertTrue(rows.error.getMessage().endsWith("(rule async-next.same-schema)"));
  }

  @Test
  void aWrongBatchAfterTheEndFailsNoOther() {
    AsyncHandler core = queued(1);
    take(core, 1);
    core.request(2);
    peer.task(1, rowsOf(1, DeviceType.CUDA, null), 0);
    peer.task(2);
    peer.end();
    release();
    assertEquals(22, core.take(0).error.errno());
    take(core, 2);
    assertSame(AsyncConsumer.END, core.outcome());
    core.close();
  }

  @Test
  void aWarningNamesItsRuleAndMayFailTheStream() {
    List<String> warnings = new ArrayList<>();
    for (boolean strict : new boolean[] {false, true}) {
      create(
          new AsyncDeviceStream()
              .onWarning(
                  warning -> {
                    warnings.add(warning.rule());
                    if (strict) {
                      throw new FletchingException(22, warning.message());
                    }
                  }),
          1);
      peer.schema();
      DeviceArray odd = live.batch(1);
      C.putLong(odd.address() + Fields.DEVICE_ARRAY_RESERVED + 8, 1);
      peer.task(1, odd, 0);
      assertRows(strict ? -22 : 1);
    }
    assertEquals(List.of("device-array.reserved-zero", "device-array.reserved-zero"), warnings);
  }

  @Test
  void ruleAsyncTaskPrivateDataUntouched() {
    open(1); // the extraction finds its task by it
    peer.task(1);
    assertRows(1);
  }

  @Test
  void ruleAsyncProducerPrivateDataUntouched() {
    open(1);
    long before = C.getAddress(peer.object + Fields.PRODUCER_PRIVATE_DATA);
    stream.close();
    assertEquals("request 1, cancel", peer.calls());
    assertEquals(before, C.getAddress(peer.object + Fields.PRODUCER_PRIVATE_DATA));
  }
}
