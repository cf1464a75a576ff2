// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.AsyncRows.rowsOf;
import static io.github.fletching.Native.C;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.fletching.abi.DeviceType;
import io.github.fletching.abi.engine.Handles;
import io.github.fletching.testing.suite.UnreadableException;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Flow;
import java.util.function.Function;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** The calls a sender makes to its publisher or iterator, and their order. */
class AsyncSendsTest extends AsyncProducerTest {
  /** The publisher's side of a subscription. Its methods can throw. */
  private static final class RecordingSubscription implements Flow.Subscription {
    final List<String> calls = new ArrayList<>();
    private final String throwing;

    RecordingSubscription(String throwing) {
      this.throwing = throwing;
    }

    private void called(String call) {
      calls.add(call);
      if (call.startsWith(throwing)) {
        throw new IllegalStateException("no " + throwing);
      }
    }

    @Override
    public void request(long n) {
      called("request " + n);
    }

    @Override
    public void cancel() {
      called("cancel");
    }
  }

  private void create() {
    finish();
    peer.calls();
    sending = new AsyncSending<>(peer.handler, DeviceType.CPU, metadata, peer, Function.identity());
  }

  private Schema liveSchema() {
    Schema schema = AsyncRows.schema();
    live.incrementAndGet();
    schema.attach(live);
    return schema;
  }

  private void open() {
    create();
    sending.open(AsyncRows.schema());
    assertEquals("schema", peer.run().calls());
  }

  @Test
  void unsentSchemaIsReleased() {
    create();
    peer.cancel();
    sending.open(liveSchema());
    assertEquals(0, live.get());
    assertEquals("release", peer.run().calls());
    create();
    sending.open(liveSchema());
    peer.cancel();
    assertEquals("release", peer.run().calls());
    assertEquals(0, live.get());
  }

  /** The caller may close its schema after the call, for example with try-with-resources. */
  @Test
  void openMovesSchemaBeforeSending() {
    create();
    Schema schema = liveSchema();
    sending.open(schema);
    assertTrue(schema.isReleased());
    schema.close();
    assertEquals(1, live.get());
    assertEquals("schema", peer.run().calls());
    assertEquals(0, live.get());
  }

  @Test
  void publisherReceivesRequestedDemand() {
    RecordingSubscription upstream = new RecordingSubscription("none");
    open();
    peer.request(3);
    peer.run();
    sending.onSubscribe(upstream);
    peer.run();
    peer.request(2);
    peer.request(4);
    peer.run();
    sending.onNext(AsyncBatch.of(live.batch(1)));
    assertEquals("task", peer.run().calls());
    peer.drop();
    peer.run().request(1);
    peer.run();
    assertEquals(List.of("request 3", "request 6", "request 1"), upstream.calls);
    peer.cancel();
    peer.cancel();
    assertEquals("release", peer.run().calls());
    assertEquals("cancel", upstream.calls.remove(3));
    assertEquals(3, upstream.calls.size());
  }

  @Test
  void throwingPublisherFailsStream() {
    RecordingSubscription upstream = new RecordingSubscription("request");
    open();
    sending.onSubscribe(upstream);
    peer.request(1);
    String text = "java.lang.IllegalStateException: no request";
    assertEquals("error 5 " + text + ", release", peer.run().calls());
    assertResult(5, text);
    assertEquals(List.of("request 1"), upstream.calls); // a failed publisher is not canceled
    upstream = new RecordingSubscription("cancel");
    open();
    sending.onSubscribe(upstream);
    peer.cancel();
    assertEquals("release", peer.run().calls());
    assertFalse(sending.done.isCompletedExceptionally());
    assertEquals(List.of("cancel"), upstream.calls);
  }

  @Test
  void publisherAfterCancelIsCancelled() {
    RecordingSubscription upstream = new RecordingSubscription("none");
    open();
    peer.cancel();
    sending.onSubscribe(upstream);
    assertEquals(List.of("cancel"), upstream.calls);
    assertEquals("release", peer.run().calls());
    assertEquals(1, upstream.calls.size());
  }

  /** The interrupt flag is restored only for an InterruptedException that this thread threw. */
  @Test
  void reportedInterruptDoesNotInterruptThread() {
    open();
    sending.onError(new InterruptedException("slow"));
    assertFalse(Thread.interrupted());
    assertEquals("error 5 java.lang.InterruptedException: slow, release", peer.run().calls());
    create();
    sending.iterator = new AsyncItems(List.of(new InterruptedException("slow")));
    sending.open(AsyncRows.schema());
    assertEquals(
        "schema, error 5 java.lang.InterruptedException: slow, release", peer.run().calls());
    assertTrue(Thread.interrupted());
  }

  @Test
  void firstFailureIsSent() {
    open();
    sending.onError(disk());
    peer.request(0);
    assertEquals("error 71 disk, release", peer.run().calls());
    assertResult(71, "disk");
    open();
    sending.onError(disk());
    peer.cancel();
    assertEquals("error 71 disk, release", peer.run().calls());
  }

  @Test
  void iteratorIsReadOneAhead() {
    int[] read = {0};
    create();
    sending.iterator =
        IntStream.iterate(1, i -> i + 1)
            .peek(i -> read[0]++)
            .mapToObj(i -> AsyncBatch.of(live.batch(i)))
            .iterator();
    sending.open(AsyncRows.schema());
    assertEquals(0, read[0]);
    peer.run();
    assertEquals(1, read[0]);
    peer.request(2);
    peer.run();
    assertEquals(3, read[0]);
    peer.run();
    assertEquals("schema, task, task", peer.calls());
    assertEquals(3, read[0]);
    finish();
    assertEquals(3, read[0]);
  }

  @Test
  void iteratorIsClosedBeforeEndIsSent() {
    for (String end : List.of("end", "error 71 disk", "release")) {
      boolean[] isClosed = {false};
      peer.inside =
          call -> {
            if (call.equals(end)) {
              isClosed[0] = items.isClosed;
            }
          };
      if (end.equals("end")) {
        send();
      } else {
        send(disk());
      }
      peer.run();
      assertTrue(isClosed[0], end);
    }
  }

  @Test
  void ruleAsyncNextMetadataEncoding() {
    Metadata pairs = Metadata.EMPTY.with("a", "").with("", "b\0c").with("a", "again");
    startEndless(AsyncBatch.of(rowsOf(1)).with(pairs), rowsOf(2));
    peer.inside = call -> assertEquals(1, peer.extract()); // the metadata is read after this
    peer.request(1);
    peer.run();
    peer.inside = call -> {};
    peer.request(1);
    peer.run();
    assertEquals(0, peer.ofLastTask);
    assertEquals(List.of(pairs, Metadata.EMPTY), peer.metadata);
  }

  private long ofProducer() {
    return C.getAddress(peer.producer() + Fields.PRODUCER_ADDITIONAL_METADATA);
  }

  @Test
  void ruleAsyncProducerMetadataLives() {
    metadata = Metadata.EMPTY.with("a", "").with("", "b");
    peer.inside = call -> assertEquals(metadata, Metadata.at(ofProducer()));
    assertSent("schema, end, release");
  }

  @Test
  void ruleAsyncProducerMetadataEncoding() {
    metadata = Metadata.EMPTY.with("key", "value");
    startEndless();
    assertEquals(metadata, Metadata.at(ofProducer()));
    metadata = Metadata.EMPTY;
    startEndless();
    assertEquals(0, ofProducer());
  }

  @Test
  void thrownErrorHasCodeAndText() {
    Map<Throwable, String> texts =
        Map.of(
            new FletchingException(-5, "odd"), "5 odd",
            new FletchingException(9, ""), "9 errno 9",
            new FletchingException(9, "a\0b\u00e9"), "9 a\\x00b\u00e9",
            new UnreadableException(), "5 no message",
            new IllegalStateException("lost"), "5 java.lang.IllegalStateException: lost",
            new OutOfMemoryError("much"), "12 java.lang.OutOfMemoryError: much");
    texts.forEach((thrown, text) -> assertSent("schema, error " + text + ", release", thrown));
  }

  @Test
  void failedBatchMakerFailsStream() {
    Map<AsyncBatch, String> texts =
        Map.of(
            lost(new FletchingException(-7, "odd")), "5 odd",
            lost(new IllegalStateException("odd")), "5 java.lang.IllegalStateException: odd",
            AsyncBatch.made(() -> null), "22 batch: null: expected an array",
            AsyncBatch.made(() -> onCuda(1)),
                "22 batch 0: device_type differs from the stream's: expected cpu, got cuda (rule"
                    + " async-producer.one-device-type)");
    texts.forEach(
        (batch, text) -> {
          startEndless(batch);
          peer.request(1);
          assertEquals(-Long.parseLong(text.split(" ")[0]), peer.run().extract());
          assertEquals("task, failed, error " + text + ", release", peer.run().calls());
        });
    start(lost(disk()));
    peer.request(1);
    assertEquals(0, peer.run().drop()); // a dropped batch is never created
    assertEquals("task, end, release", peer.run().calls());
  }

  @Test
  void ruleAsyncProducerFreedByProducer() {
    startEndless(live.batch(1), live.batch(2));
    long handle = C.getAddress(peer.producer() + Fields.PRODUCER_PRIVATE_DATA);
    peer.cancel();
    Handles.find(AsyncSending.class, handle);
    peer.run();
    assertThrows(IllegalStateException.class, () -> Handles.find(AsyncSending.class, handle));
    assertEquals(0, live.get());
  }

  @Test
  void consumerRejectionIsResult() {
    for (int code : new int[] {12, -3}) {
      start(live.batch(1), live.batch(2));
      peer.refuses = "task";
      peer.code = code;
      peer.request(2);
      assertEquals("task, release", peer.run().calls());
      String text = "on_next_task: refused by the consumer: expected 0, got " + code;
      assertResult(code > 0 ? code : 5, text);
      peer.refuses = "";
    }
  }

  @Test
  void excessBatchesWaitForDemand() {
    startEndless();
    assertEquals(0, peer.jobs.size()); // an idle stream has no job
    for (int row = 1; row <= 3; row++) {
      sending.onNext(AsyncBatch.of(rowsOf(row)));
    }
    peer.request(2);
    assertEquals("task, task", peer.run().calls());
  }

  @Test
  void extractedTaskHasNoPrivateData() {
    startEndless(live.batch(1), live.batch(2));
    peer.request(2);
    peer.run();
    for (int row = 1; row <= 2; row++) {
      long task = peer.oldest();
      assertEquals(row, row == 1 ? peer.extract(task) : 2 + AsyncForeign.callExtract(task, 0));
      assertEquals(0, C.getAddress(task + Fields.TASK_PRIVATE_DATA));
    }
  }

  @Test
  void sendRejectsClosedSchema() {
    Schema closed = AsyncRows.schema();
    closed.close();
    Flow.Publisher<DeviceArray> arrays = subscriber -> subscriber.onComplete();
    Flow.Publisher<AsyncBatch> batches = subscriber -> subscriber.onComplete();
    List<Runnable> sends =
        List.of(
            () -> AsyncDeviceStreams.send(closed, DeviceType.CPU, arrays, peer.handler),
            () ->
                AsyncDeviceStreams.send(
                    closed, DeviceType.CPU, Metadata.EMPTY, batches, peer, peer.handler),
            () ->
                AsyncDeviceStreams.send(
                    closed, DeviceType.CPU, List.<DeviceArray>of().iterator(), peer, peer.handler));
    for (Runnable send : sends) {
      assertEquals(
          "send: closed or moved: expected a live struct",
          assertThrows(IllegalStateException.class, send::run).getMessage());
      assertEquals(0, peer.producer());
    }
    assertEquals("", peer.run().calls());
  }

  private void assertNotSent(String text, DeviceType type, long handler) {
    try (Schema schema = AsyncRows.schema()) {
      Iterator<DeviceArray> none = List.<DeviceArray>of().iterator();
      FletchingException thrown =
          assertThrows(
              FletchingException.class,
              () -> AsyncDeviceStreams.send(schema, type, none, peer, handler));
      assertEquals("22 " + text, thrown.errno() + " " + thrown.getMessage());
      assertFalse(schema.isReleased());
    }
    assertEquals("", peer.run().calls());
  }

  @Test
  void sendRejectsInvalidArguments() {
    assertNotSent(
        "send: device_type: 0: expected the device type of the batches (rule"
            + " async-producer.device-type-set)",
        DeviceType.of(0),
        peer.handler);
    assertNotSent("send: handler is NULL: expected an address", DeviceType.CPU, 0);
    Map<String, Long> callbacks =
        Map.of(
            "on_schema", Fields.HANDLER_ON_SCHEMA,
            "on_next_task", Fields.HANDLER_ON_NEXT_TASK,
            "on_error", Fields.HANDLER_ON_ERROR,
            "release", Fields.HANDLER_RELEASE);
    callbacks.forEach(
        (name, field) -> {
          long before = C.getAddress(peer.handler + field);
          C.putAddress(peer.handler + field, 0);
          String text = "handler." + name + ": NULL: expected a callback";
          assertNotSent(text, DeviceType.CPU, peer.handler);
          C.putAddress(peer.handler + field, before);
          assertEquals(0, peer.producer());
        });
  }

  @Test
  void batchAfterEndIsClosed() {
    startEndless();
    sending.onError(disk());
    sending.onNext(AsyncBatch.of(live.batch(1)));
    assertEquals(0, live.get());
    assertEquals("error 71 disk, release", peer.run().calls());
    sending.onNext(AsyncBatch.of(live.batch(1)));
    assertEquals(0, live.get());
    assertEquals("", peer.run().calls());
  }
}
