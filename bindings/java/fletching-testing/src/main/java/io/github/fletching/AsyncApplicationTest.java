// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.AsyncRows.rowsOf;
import static io.github.fletching.Native.C;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.fletching.abi.DeviceType;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Flow;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;

/** The callbacks, windows, errors and metadata of an application that consumes a stream. */
class AsyncApplicationTest extends AsyncConsumerTest {
  @Test
  void onSchemaMayCloseOrRejectSchema() {
    Map<Consumer<Schema>, String> checks =
        Map.of(
            Schema::close,
            "5 java.lang.IllegalStateException: share: closed or moved: expected a live struct",
            schema -> {
              throw new FletchingException(7, "no");
            },
            "7 no",
            schema -> {
              throw new AssertionError("no");
            },
            "5 java.lang.AssertionError: no");
    checks.forEach(
        (check, expected) -> {
          create(new AsyncDeviceStream().onSchema(check), 1);
          Schema schema = AsyncRows.schema();
          live.incrementAndGet();
          schema.attach(live);
          Slot raw = Slot.take(Kind.SCHEMA);
          schema.moveTo(raw.address);
          int code = AsyncForeign.callOnSchema(peer.handler, raw.address);
          boolean isClosed = expected.contains("share");
          assertEquals(isClosed, Kind.SCHEMA.isReleased(raw.address), expected);
          Kind.SCHEMA.releaseOnce(raw.address);
          raw.free();
          assertEquals(expected, code + " " + rows.error.getMessage());
          assertEquals(0, live.get(), expected);
        });
  }

  @Test
  void onTaskMayRejectTask() {
    create(
        new AsyncDeviceStream()
            .onTask(
                metadata -> {
                  throw new FletchingException(7, "no");
                }),
        1);
    peer.schema();
    assertEquals(7, peer.task(1));
    assertFailed(7, "no");
    assertEquals("request 1", peer.calls());
  }

  @Test
  void errorsHaveCodeAndText() {
    Map<Integer, String> texts = Map.of(71, "errno 71", 0, "(code 0)", -9, "(code -9)");
    texts.forEach(
        (code, text) -> {
          open(1);
          peer.fail(code, null);
          assertFailed(Math.max(code, 0) == 0 ? 5 : code, text);
        });
    open(1);
    peer.fail(71, "lost\u0007");
    assertFailed(71, "lost\\x07");
    create(1);
    release();
    assertFailed(5, LOST);
    Throwable none = assertThrows(CompletionException.class, this::schema).getCause();
    assertEquals(LOST, none.getMessage());
    assertNull(stream.deviceType());
  }

  @Test
  void schemaOutlivesStream() {
    open(1);
    peer.fail(5, null);
    release();
    try (Schema schema = schema()) {
      stream.close();
      assertEquals("i", schema.format());
    }
    Throwable closed = assertThrows(CompletionException.class, this::schema).getCause();
    assertEquals("schema: closed or moved: expected a live struct", closed.getMessage());
  }

  @Test
  void ruleAsyncNextMetadataCopied() {
    List<String> seen = new ArrayList<>();
    create(
        new AsyncDeviceStream().onTask(m -> seen.add("task " + m.text("key").orElse("none"))), 2);
    peer.schema();
    peer.task(1, rowsOf(1), 0, Metadata.EMPTY.with("key", "value").encode());
    assertEquals("value", stream.batchMetadata().text("key").orElse("none"));
    assertEquals(List.of("task value"), seen);
    // Malformed metadata is rejected.
    assertEquals(22, peer.task(2, rowsOf(2), 0, new byte[] {-1, -1, -1, -1}));
    assertFailed(22, "metadata: number of pairs at byte 0: negative: expected 0 or more, got -1");
  }

  @Test
  void streamMetadataIsReadWithSchema() {
    for (byte[] bytes :
        List.of(Metadata.EMPTY.with("key", "value").encode(), new byte[] {-1, -1, -1, -1})) {
      create(1);
      long block = AsyncAbi.newBlock(bytes);
      C.putAddress(peer.object + Fields.PRODUCER_ADDITIONAL_METADATA, block);
      assertEquals(Metadata.EMPTY, stream.metadata());
      if (bytes[0] == -1) {
        assertEquals(22, peer.schema());
        assertRows(-22);
      } else {
        assertEquals(0, peer.schema());
        assertEquals("value", stream.metadata().text("key").orElse("none"));
        assertEquals(DeviceType.CPU, stream.deviceType());
      }
      C.free(block);
    }
  }

  /** Forwards the arrays of the batches and records their metadata. */
  private static final class Batches implements Flow.Subscriber<AsyncBatch> {
    private final AsyncRows rows;
    private final List<String> seen;

    Batches(AsyncRows rows, List<String> seen) {
      this.rows = rows;
      this.seen = seen;
    }

    @Override
    public void onSubscribe(Flow.Subscription subscription) {
      rows.onSubscribe(subscription);
    }

    @Override
    public void onNext(AsyncBatch batch) {
      seen.add(batch.metadata().text("key").orElse("none"));
      rows.onNext(batch.array());
    }

    @Override
    public void onError(Throwable error) {
      rows.onError(error);
    }

    @Override
    public void onComplete() {
      rows.onComplete();
    }
  }

  private List<String> createBatches(long requests) {
    List<String> seen = new ArrayList<>();
    AsyncDeviceStream next = new AsyncDeviceStream();
    create(next, requests, given -> next.batches().subscribe(new Batches(given, seen)));
    return seen;
  }

  @Test
  void batchesArriveWithMetadata() {
    List<String> seen = createBatches(3);
    assertEquals(0, peer.schema());
    byte[] metadata = Metadata.EMPTY.with("key", "value").encode();
    assertEquals(0, peer.task(1, rowsOf(1), 0, metadata));
    assertEquals(0, peer.task(2));
    assertEquals(List.of("value", "none"), seen);
    assertEquals(0, peer.end());
    assertRows(1, 2, 0);
    createBatches(1);
    peer.schema();
    peer.fail(7, "no");
    assertFailed(7, "no");
  }

  @Test
  void batchesAndStreamShareOneSubscriber() {
    createBatches(0);
    AsyncRows second = new AsyncRows(0, 0);
    stream.subscribe(second);
    assertEquals("subscribe: second subscriber: expected one", second.error.getMessage());
    assertThrows(NullPointerException.class, () -> stream.batches().subscribe(null));
  }

  @Test
  void demandSaturatesAtLongMaxValue() {
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
  void windowIsRequestedBeforeExtraction() {
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
    // A batch that exceeds the request waits, and arrives after the end.
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
  void failedExtractionEndsStream() {
    open(3);
    peer.task(1, rowsOf(1), 71);
    assertFailed(71, "extract_data: failed without a message");
    peer.task(2, live.batch(2), 0);
    peer.fail(71, null); // the subscriber does not get this error
    assertEquals("request 3, extract 1, drop 2", peer.calls());
    assertRows(-71);
  }

  @Test
  void batchOnOtherDeviceCancelsStream() {
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
  void warningNamesRuleAndMayFailStream() {
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
}
