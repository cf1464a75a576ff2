// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.AsyncItems.counting;
import static io.github.fletching.AsyncRows.rowsOf;
import static io.github.fletching.Native.C;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.fletching.AsyncRows.Live;
import io.github.fletching.abi.DeviceType;
import io.github.fletching.abi.engine.Handles;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletionException;
import java.util.function.Function;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The rules that a producer could break, with a consumer that writes down what is called. */
@Timeout(120)
public abstract class AsyncProducerRules {
  private final Live live = new Live();
  private int exported;
  private AsyncConsumerPeer peer;
  private AsyncSending<AsyncBatch> sending;
  private AsyncItems items;
  private Metadata metadata = Metadata.EMPTY;

  @BeforeEach
  void countExported() {
    exported = Handles.count();
    peer = new AsyncConsumerPeer();
  }

  @AfterEach
  void nothingIsLeft() {
    finish();
    peer.close();
    assertEquals(exported, Handles.count());
    assertEquals(0, live.get());
  }

  /** Ends a stream that is not over. */
  private void finish() {
    if (sending != null && !sending.done.isDone()) {
      peer.inside = call -> {};
      peer.cancel();
      while (!peer.tasks.isEmpty()) {
        peer.drop();
      }
      peer.run();
      assertTrue(sending.done.isDone());
    }
    sending = null;
  }

  private void send(Schema schema, Object... all) {
    finish();
    items = new AsyncItems(Arrays.asList(all));
    sending = new AsyncSending<>(peer.handler, DeviceType.CPU, metadata, peer, Function.identity());
    sending.iterator = items;
    sending.open(schema);
  }

  /** Sends items and then the end. */
  private void send(Object... all) {
    send(AsyncRows.schema(), all);
  }

  /** Has sent the schema and what needs no request. */
  private void start(Object... all) {
    peer.calls();
    send(all);
    peer.run();
    peer.calls();
  }

  /** The same without an end. */
  private void startEndless(Object... all) {
    finish();
    items = new AsyncItems(Arrays.asList(all));
    sending = new AsyncSending<>(peer.handler, DeviceType.CPU, metadata, peer, Function.identity());
    sending.open(AsyncRows.schema());
    items.subscribe(sending);
    peer.run();
    peer.calls();
  }

  private static FletchingException disk() {
    return new FletchingException(71, "disk");
  }

  private static AsyncBatch lost(RuntimeException thrown) {
    return AsyncBatch.made(
        () -> {
          throw thrown;
        });
  }

  /** Runs a whole stream, of which the peer extracts nothing. */
  private void assertSent(String expected, Object... all) {
    peer.calls();
    send(all);
    assertEquals(expected, peer.run().calls());
  }

  private void assertResult(int errno, String text) {
    Throwable thrown = assertThrows(CompletionException.class, sending.done::join).getCause();
    assertEquals(text, thrown.getMessage());
    assertEquals(errno, ((FletchingException) thrown).errno());
  }

  @Test
  void ruleAsyncHandlersSerialized() throws Exception {
    start(counting(2));
    peer.inside =
        call -> {
          Thread other = new Thread(() -> peer.request(2));
          other.start();
          join(other);
          peer.jobs.forEach(job -> assertEquals("no job", "a job during a call"));
        };
    peer.request(1);
    assertEquals("task, task, end", peer.run().calls());
  }

  private static void join(Thread thread) {
    try {
      thread.join();
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  @Test
  void ruleAsyncNextNotConcurrent() {
    start(counting(3));
    peer.inside =
        call -> {
          if (call.equals("task")) {
            peer.request(1);
            peer.drop();
          }
        };
    peer.request(1);
    assertEquals("task, task, task, end, release", peer.run().calls());
  }

  @Test
  void ruleAsyncErrorEndsStream() {
    start(rowsOf(1), disk());
    peer.request(2);
    peer.run().drop();
    assertEquals("task, error 71 disk, release", peer.run().calls());
    assertResult(71, "disk");
  }

  @Test
  void ruleAsyncErrorThenReleaseOnly() {
    start(rowsOf(1), disk());
    peer.request(9);
    peer.run().request(9);
    peer.cancel();
    peer.request(-1);
    peer.drop();
    assertEquals("task, error 71 disk, release", peer.run().calls());
  }

  /** A stream of which the peer refuses a call. */
  private void refuse(String call, int code, Object... all) {
    peer.calls();
    peer.refuses = call;
    peer.code = code;
    send(all);
    peer.request(5);
    peer.run();
    peer.refuses = "";
  }

  @Test
  void ruleAsyncHandlerFailureEndsStream() {
    for (int code : new int[] {12, -3}) {
      refuse("task", code, live.batch(1), live.batch(2));
      assertEquals("schema, task, release", peer.calls());
      assertEquals(0, live.get());
      String text = "on_next_task: refused by the consumer: expected 0, got " + code;
      assertResult(code > 0 ? code : 5, text);
    }
  }

  @Test
  void ruleAsyncSchemaOnlyReleaseAfterFailure() {
    refuse("schema", 22, live.batch(1), disk());
    assertEquals("schema, release", peer.calls());
  }

  @Test
  void ruleAsyncNextOnlyReleaseAfterFailure() {
    refuse("end", 22);
    assertEquals("schema, end, release", peer.calls());
  }

  @Test
  void ruleAsyncSchemaFirstAndOnce() {
    refuse("", 0, rowsOf(1));
    assertEquals("schema, task, end", peer.calls());
    peer.drop();
    peer.run();
    peer.calls();
    // A cancel may come instead.
    send(counting(1));
    peer.cancel();
    assertEquals("release", peer.run().calls());
  }

  private void assertWithout(long field, String name, String calls) {
    long before = C.getAddress(peer.handler + field);
    C.putAddress(peer.handler + field, 0);
    send(counting(1));
    peer.request(1);
    assertEquals(calls, peer.run().calls());
    C.putAddress(peer.handler + field, before);
    assertResult(22, "handler." + name + ": NULL: expected a callback");
  }

  @Test
  void ruleAsyncSchemaSet() {
    assertWithout(AsyncAbi.ON_SCHEMA, "on_schema", "release");
  }

  @Test
  void ruleAsyncNextSet() {
    assertWithout(AsyncAbi.ON_NEXT_TASK, "on_next_task", "schema, release");
  }

  @Test
  void ruleAsyncErrorSet() {
    C.putAddress(peer.handler + AsyncAbi.ON_ERROR, 0);
    assertSent("schema, release", disk());
  }

  @Test
  void ruleAsyncReleaseSet() {
    C.putAddress(peer.handler + AsyncAbi.RELEASE, 0);
    assertSent("schema, end");
    assertTrue(sending.done.isDone());
  }

  @Test
  void ruleAsyncNextNullTaskIsEnd() {
    assertSent("schema, end, release");
    assertTrue(items.isClosed);
    start(counting(1));
    peer.request(1);
    assertEquals("task, end", peer.run().calls());
  }

  @Test
  void ruleAsyncNextTaskLivesDuringCall() {
    Metadata pairs = Metadata.EMPTY.with("key", "value");
    startEndless(AsyncBatch.of(rowsOf(1)).with(pairs)); // which is read after the data
    peer.inside = call -> assertEquals(1, peer.extract());
    peer.request(1);
    peer.run();
    assertEquals(List.of(pairs), peer.metadata);
  }

  @Test
  void ruleAsyncNextMetadataEncoding() {
    Metadata pairs = Metadata.EMPTY.with("a", "").with("", "b\0c").with("a", "again");
    startEndless(AsyncBatch.of(rowsOf(1)).with(pairs), rowsOf(2));
    peer.request(2);
    peer.run();
    assertEquals(List.of(pairs, Metadata.EMPTY), peer.metadata);
  }

  @Test
  void ruleAsyncErrorMetadataEncoding() {
    assertSent("schema, error 71 disk, release", disk()); // the peer notes metadata
  }

  @Test
  void ruleAsyncErrorErrnoCodes() {
    assertSent("schema, error 5 odd, release", new FletchingException(-5, "odd"));
    assertSent(
        "schema, error 5 java.lang.IllegalStateException: lost, release",
        new IllegalStateException("lost"));
    assertSent(
        "schema, error 12 java.lang.OutOfMemoryError: much, release", new OutOfMemoryError("much"));
  }

  @Test
  void ruleAsyncErrorTextsLiveDuringCall() {
    Throwable silent =
        new RuntimeException() {
          private static final long serialVersionUID = 1;

          @Override
          public String toString() {
            throw new IllegalStateException("again");
          }
        };
    assertSent("schema, error 5 no message, release", silent);
    assertSent("schema, error 9 errno 9, release", new FletchingException(9, ""));
    assertSent("schema, error 9 a\\x00b\u00e9, release", new FletchingException(9, "a\0b\u00e9"));
  }

  @Test
  void ruleAsyncReleaseAlwaysCalled() {
    assertSent("schema, end, release");
    assertSent("schema, error 71 disk, release", disk());
    // Not before the last task is extracted, in any order.
    start(counting(2));
    peer.request(2);
    assertEquals("task, task, end", peer.run().calls());
    assertEquals(2, peer.extract(peer.tasks.remove(1)));
    assertEquals("", peer.run().calls());
    assertEquals(1, peer.extract());
    assertEquals("release", peer.run().calls());
  }

  @Test
  void ruleAsyncReleaseLast() {
    assertSent("schema, end, release");
    assertEquals("", peer.run().calls());
    assertTrue(sending.done.isDone());
    assertFalse(sending.done.isCompletedExceptionally());
  }

  @Test
  void ruleAsyncHandlerProducerSetFirst() {
    metadata = Metadata.EMPTY.with("key", "value");
    send();
    long object = peer.producer();
    assertEquals(DeviceType.CPU.value(), C.getInt(object + AsyncAbi.DEVICE_TYPE));
    assertEquals(metadata, Metadata.at(C.getAddress(object + AsyncAbi.METADATA)));
    assertEquals("", peer.calls());
  }

  @Test
  void ruleAsyncRequestSet() {
    startEndless();
    assertNotEquals(0, C.getAddress(peer.producer() + AsyncAbi.REQUEST));
  }

  @Test
  void ruleAsyncCancelSet() {
    startEndless();
    assertNotEquals(0, C.getAddress(peer.producer() + AsyncAbi.CANCEL));
  }

  private void assertNotSent(String text, DeviceType type, long handler) {
    try (Schema schema = AsyncRows.schema()) {
      FletchingException thrown =
          assertThrows(
              FletchingException.class,
              () ->
                  AsyncDeviceStreams.send(
                      schema, type, List.<DeviceArray>of().iterator(), peer, handler));
      assertEquals(text, thrown.getMessage());
      assertFalse(schema.isReleased());
    }
    assertEquals("", peer.run().calls());
  }

  private void assertRefused(Schema schema) {
    assertThrows(
        IllegalStateException.class,
        () ->
            AsyncDeviceStreams.send(
                schema, DeviceType.CPU, List.<DeviceArray>of().iterator(), peer, peer.handler));
  }

  @Test
  void ruleAsyncProducerDeviceTypeSet() {
    assertNotSent(
        "producer: device_type: 0: expected the device type of the batches (rule"
            + " async-producer.device-type-set)",
        DeviceType.of(0),
        peer.handler);
    assertNotSent("send: handler is NULL: expected an address", DeviceType.CPU, 0);
    Schema closed = AsyncRows.schema();
    closed.close();
    assertRefused(closed);
    assertEquals("", peer.run().calls());
  }

  // --- Tasks

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
    long before = C.getAddress(peer.handler + AsyncAbi.HANDLER_PRIVATE);
    assertSent("schema, end, release");
    assertEquals(before, C.getAddress(peer.handler + AsyncAbi.HANDLER_PRIVATE));
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
      peer.inside =
          call -> {
            if (call.equals("task")) {
              peer.drop();
            }
          };
      peer.request(20);
      Thread[] threads = new Thread[3];
      for (int i = 0; i < 3; i++) {
        threads[i] = new Thread(peer::cancel);
        threads[i].start();
      }
      peer.run();
      Arrays.asList(threads).forEach(AsyncProducerRules::join);
      assertTrue(peer.run().calls().endsWith("release"));
    }
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

  // --- Data

  private DeviceArray onCuda(int rows) {
    live.incrementAndGet();
    return rowsOf(rows, DeviceType.CUDA, live);
  }

  @Test
  void ruleAsyncProducerOneDeviceType() {
    String text =
        "error 22 batch: device_type differs from the stream's: expected cpu, got cuda (rule"
            + " async-producer.one-device-type), release";
    assertSent("schema, " + text, onCuda(1));
    assertEquals(0, live.get());
    startEndless(AsyncBatch.made(() -> onCuda(1)));
    peer.request(1);
    assertEquals(-22, peer.run().extract());
    assertEquals(0, live.get());
    assertEquals("task, failed, " + text, peer.run().calls());
  }

  @Test
  void ruleAsyncNextSameSchema() {
    String rule =
        "batch: children or dictionary differ from the stream's schema (rule async-next.same-schema)";
    send(new SchemaBuilder("+s").child(new SchemaBuilder("i")).build(), live.batch(1));
    assertEquals("schema, error 22 " + rule + ", release", peer.run().calls());
    DeviceArray closed = rowsOf(1);
    closed.close();
    assertSent("schema, error 22 batch: released: expected a live array, release", closed);
  }

  @Test
  void ruleAsyncProducerMetadataEncoding() {
    metadata = Metadata.EMPTY.with("a", "").with("", "b");
    startEndless();
    assertEquals(metadata, Metadata.at(C.getAddress(peer.producer() + AsyncAbi.METADATA)));
    finish();
    metadata = Metadata.EMPTY;
    startEndless();
    assertEquals(0, C.getAddress(peer.producer() + AsyncAbi.METADATA));
  }

  @Test
  void ruleAsyncProducerMetadataLives() {
    metadata = Metadata.EMPTY.with("key", "value");
    peer.inside =
        call ->
            assertEquals(metadata, Metadata.at(C.getAddress(peer.producer() + AsyncAbi.METADATA)));
    assertSent("schema, end, release");
  }

  @Test
  void ruleAsyncProducerOutlivesHandler() {
    peer.inside =
        call -> {
          if (call.equals("release")) { // a consumer whose calls on other threads are late
            peer.request(1);
            peer.request(0);
            peer.cancel();
          }
        };
    assertSent("schema, end, release");
  }

  @Test
  void ruleAsyncProducerFreedByProducer() {
    startEndless(live.batch(1), live.batch(2));
    long handle = C.getAddress(peer.producer() + AsyncAbi.PRODUCER_PRIVATE);
    peer.cancel();
    Handles.find(AsyncSending.class, handle);
    peer.run();
    assertThrows(IllegalStateException.class, () -> Handles.find(AsyncSending.class, handle));
    assertEquals(0, live.get());
  }

  // --- Publishers and executors

  @Test
  void aPublisherThatFailsToSubscribeFailsTheStream() {
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
  void anExecutorThatRefusesFailsTheStream() throws Exception {
    Throwable thrown =
        assertThrows(
            CompletionException.class,
            () ->
                AsyncDeviceStreams.send(
                        AsyncRows.schema(),
                        DeviceType.CPU,
                        List.<DeviceArray>of().iterator(),
                        job -> {
                          throw new java.util.concurrent.RejectedExecutionException("full");
                        },
                        peer.handler)
                    .toCompletableFuture()
                    .join());
    assertTrue(thrown.getMessage().endsWith("full"), thrown.getMessage());
    assertEquals(
        "error 5 java.util.concurrent.RejectedExecutionException: full, release", peer.calls());
  }

  @Test
  void aSecondSubscriptionIsCancelled() {
    startEndless();
    AsyncItems other = new AsyncItems(List.of(live.batch(1)));
    other.subscribe(sending);
    assertTrue(other.isClosed);
    assertFalse(items.isClosed);
    peer.cancel();
    peer.run();
    assertTrue(items.isClosed);
    sending.onNext(AsyncBatch.of(live.batch(2))); // too late
    assertEquals(0, live.get());
  }

  @Test
  void anErrorIsNeverSeenAsTheEnd() {
    startEndless();
    sending.onError(disk());
    assertEquals("error 71 disk, release", peer.run().calls());
  }
}
