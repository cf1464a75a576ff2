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

import io.github.fletching.abi.DeviceType;
import io.github.fletching.testing.suite.Silent;
import java.util.List;
import org.junit.jupiter.api.Test;

/** The rules about calls of the handler that a producer could break. */
public abstract class AsyncProducerRules extends AsyncProducerTest {
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

  /** Sends a stream to a peer that refuses a call. */
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
    // There is none after a cancel.
    send(counting(1));
    peer.cancel();
    assertEquals("release", peer.run().calls());
  }

  /** A handler without the callback is refused, and stays the caller's. */
  private void assertRefusedWithout(String name, long field) {
    long before = C.getAddress(peer.handler + field);
    C.putAddress(peer.handler + field, 0);
    try (Schema schema = AsyncRows.schema()) {
      FletchingException error =
          assertThrows(FletchingException.class, () -> send(schema, rowsOf(1)));
      assertEquals("handler." + name + ": NULL: expected a callback", error.getMessage());
      assertEquals(22, error.errno());
      assertFalse(schema.isReleased());
    }
    items.close();
    C.putAddress(peer.handler + field, before);
    assertEquals("", peer.run().calls());
    assertEquals(0, peer.producer());
  }

  @Test
  void ruleAsyncSchemaSet() {
    assertRefusedWithout("on_schema", Fields.HANDLER_ON_SCHEMA);
  }

  @Test
  void ruleAsyncNextSet() {
    assertRefusedWithout("on_next_task", Fields.HANDLER_ON_NEXT_TASK);
  }

  @Test
  void ruleAsyncErrorSet() {
    assertRefusedWithout("on_error", Fields.HANDLER_ON_ERROR);
  }

  @Test
  void ruleAsyncReleaseSet() {
    assertRefusedWithout("release", Fields.HANDLER_RELEASE);
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
    assertSent("schema, error 71 disk, release", disk()); // the peer reports metadata
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
    assertSent("schema, error 5 no message, release", new Silent());
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
    assertEquals(DeviceType.CPU.value(), C.getInt(object + Fields.PRODUCER_DEVICE_TYPE));
    assertEquals(metadata, Metadata.at(C.getAddress(object + Fields.PRODUCER_ADDITIONAL_METADATA)));
    assertEquals("", peer.calls());
  }

  @Test
  void ruleAsyncRequestSet() {
    startEndless();
    assertNotEquals(0, C.getAddress(peer.producer() + Fields.PRODUCER_REQUEST));
  }

  @Test
  void ruleAsyncCancelSet() {
    startEndless();
    assertNotEquals(0, C.getAddress(peer.producer() + Fields.PRODUCER_CANCEL));
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
    Schema movedOut = AsyncRows.schema();
    Schema there = Schema.wrap(movedOut.address());
    assertRefused(movedOut);
    there.close();
    assertEquals("", peer.run().calls());
  }
}
