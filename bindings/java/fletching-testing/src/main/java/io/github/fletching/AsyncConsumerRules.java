// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.AsyncRows.rowsOf;
import static io.github.fletching.Native.C;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.github.fletching.abi.DeviceType;
import io.github.fletching.abi.engine.Handles;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Flow;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;

/** The rules that a consumer could break, with a producer that makes its calls one by one. */
public abstract class AsyncConsumerRules extends AsyncConsumerTest {
  @Test
  void ruleAsyncAnyThread() {
    open(4);
    for (int row = 1; row <= 3; row++) {
      int number = row;
      run(() -> assertEquals(0, peer.task(number)));
    }
    assertEquals(0, peer.end());
    assertRows(1, 2, 3, 0);
  }

  @Test
  void ruleAsyncSchemaReturnsErrno() {
    create(1);
    assertEquals(22, AsyncForeign.callOnSchema(peer.handler, 0));
    assertFailed(22, "on_schema: schema is NULL or released: expected a schema");
    // The second of two schemas is refused, and ends the stream.
    open(1);
    assertEquals(22, peer.schema());
    assertFailed(22, "on_schema: called twice: expected one call");
    // A schema that the application refuses does so too.
    for (Throwable refusal : List.of(new FletchingException(7, "no"), new AssertionError("no"))) {
      create(
          new AsyncDeviceStream()
              .onSchema(
                  schema -> {
                    assertEquals("i", schema.format());
                    throw AsyncItems.<RuntimeException>sneaky(refusal);
                  }),
          1);
      int code = refusal instanceof FletchingException ? 7 : 5;
      assertEquals(code, peer.schema());
      assertFailed(code, code == 7 ? "no" : "java.lang.AssertionError: no");
    }
  }

  @Test
  void ruleAsyncSchemaMovedOrReleased() {
    for (String how : List.of("kept", "cancelled", "closed", "refused")) {
      Consumer<Schema> check =
          schema -> {
            if (how.equals("closed")) {
              schema.close();
            } else if (how.equals("refused")) {
              throw new FletchingException(12, "no");
            }
          };
      create(new AsyncDeviceStream().onSchema(check), 1);
      Schema schema = AsyncRows.schema();
      live.incrementAndGet();
      schema.attach(live);
      if (how.equals("cancelled")) {
        rows.subscription.cancel();
      }
      Slot raw = Slot.take(Kind.SCHEMA);
      schema.moveTo(raw.address);
      int code = AsyncForeign.callOnSchema(peer.handler, raw.address);
      assertEquals(how.equals("kept") || how.equals("cancelled"), code == 0, how);
      assertEquals(!how.equals("refused"), Kind.SCHEMA.isReleased(raw.address), how);
      if (how.equals("closed")) {
        String reason = "share: closed or moved: expected a live struct";
        assertFailed(5, "java.lang.IllegalStateException: " + reason);
      }
      Kind.SCHEMA.releaseOnce(raw.address);
      raw.free();
      assertEquals(how.equals("kept") ? 1 : 0, live.get(), how);
      stream.close();
      assertEquals(0, live.get(), how);
    }
  }

  @Test
  void ruleAsyncSchemaReleasedIndependently() {
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
  void ruleAsyncSchemaPointerNotKept() {
    open(1); // the peer overwrites the struct
    try (Schema schema = schema()) {
      assertEquals("i", schema.format());
    }
  }

  @Test
  void ruleAsyncNextReturnsErrno() {
    open(1);
    assertEquals(0, peer.task(1));
    assertEquals(22, peer.task(2));
    assertFailed(22, "on_next_task: too many tasks: expected at most the sum of the requests");
    assertEquals(22, peer.end());
    assertEquals(22, peer.task(3));
    assertEquals("request 1, extract 1", peer.calls());
    // A task that the application refuses is not extracted.
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
  void ruleAsyncNextNullTaskAccepted() {
    open(0);
    assertEquals(0, peer.end());
    assertRows(0);
  }

  @Test
  void ruleAsyncNextTaskCopied() {
    AsyncHandler core = queued(2); // the peer overwrites its struct after each call
    take(core, 1);
    take(core, 2);
    core.close();
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
    // Malformed metadata is refused.
    assertEquals(22, peer.task(2, rowsOf(2), 0, new byte[] {-1, -1, -1, -1}));
    assertFailed(22, "metadata: number of pairs at byte 0: negative: expected 0 or more, got -1");
  }

  @Test
  void ruleAsyncErrorTextsCopied() {
    open(1);
    peer.fail(71, "lost\u0007");
    assertFailed(71, "lost\\x07");
  }

  @Test
  void ruleAsyncErrorTextsNullAccepted() {
    for (int code : new int[] {71, 0, -9}) {
      open(1);
      peer.fail(code, null);
      assertFailed(code > 0 ? code : 5, code > 0 ? "errno 71" : "(code " + code + ")");
    }
  }

  @Test
  void ruleAsyncErrorBeforeRequestAccepted() {
    create(0);
    peer.fail(71, "gone");
    assertRows(-71);
    Throwable none = assertThrows(CompletionException.class, this::schema).getCause();
    assertEquals("gone", none.getMessage());
    assertNull(stream.deviceType());
  }

  @Test
  void ruleAsyncErrorCallsNoProducer() {
    AsyncHandler core = queued(2);
    peer.fail(71, null);
    core.request(3);
    assertNull(core.take(0));
    core.cancel(new IllegalStateException());
    assertEquals("drop 1, drop 2", peer.calls());
    core.close();
  }

  @Test
  void ruleAsyncReleaseBeforeRequestAccepted() {
    create(0);
    release();
    assertFailed(5, LOST);
  }

  @Test
  void ruleAsyncReleaseCallsNoProducer() {
    AsyncHandler core = queued(1);
    release();
    core.request(3);
    core.cancel(new IllegalStateException());
    assertEquals("drop 1", peer.calls());
    assertEquals(LOST, core.outcome().getMessage());
    core.close();
  }

  @Test
  void ruleAsyncReleaseLikeArray() {
    // The handler is freed after its release and the close of the stream, in any order.
    for (boolean closeFirst : new boolean[] {false, true}) {
      open(1);
      long handle = C.getAddress(peer.handler + Fields.HANDLER_PRIVATE_DATA);
      if (closeFirst) {
        stream.close();
      } else {
        release();
        release(); // which is harmless while the stream is open
      }
      Handles.find(AsyncHandler.class, handle);
      if (closeFirst) {
        release();
      } else {
        stream.close();
      }
      assertThrows(IllegalStateException.class, () -> Handles.find(AsyncHandler.class, handle));
      assertThrows(IllegalStateException.class, stream::handlerAddress);
    }
  }

  @Test
  void ruleAsyncHandlerReadyWhenPassed() {
    create(1);
    for (long field :
        new long[] {
          Fields.HANDLER_ON_SCHEMA,
          Fields.HANDLER_ON_NEXT_TASK,
          Fields.HANDLER_ON_ERROR,
          Fields.HANDLER_RELEASE
        }) {
      assertNotEquals(0, C.getAddress(peer.handler + field));
    }
    assertEquals(peer.handler, stream.handlerAddress());
  }

  @Test
  void ruleAsyncHandlerProducerNotBeforeSchema() {
    create(5);
    rows.subscription.request(2);
    rows.subscription.cancel();
    assertEquals("", peer.calls());
    assertEquals(0, peer.schema());
    assertEquals(22, peer.task(1)); // it was never requested
    assertEquals("cancel", peer.calls());
    // A producer without one of its callbacks is refused.
    for (long field : new long[] {Fields.PRODUCER_REQUEST, Fields.PRODUCER_CANCEL, -1}) {
      create(1);
      C.putAddress(field < 0 ? peer.handler + Fields.HANDLER_PRODUCER : peer.object + field, 0);
      assertEquals(22, peer.schema());
      assertFailed(22, "handler.producer: NULL, or request or cancel NULL: expected callbacks");
    }
  }

  @Test
  void metadataOfTheStreamIsReadWithTheSchema() {
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

  /** Passes the arrays of batches on, and notes their metadata. */
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
  void batchesArriveWithTheirMetadata() {
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
  void batchesHaveOneSubscriberWithTheStream() {
    createBatches(0);
    AsyncRows second = new AsyncRows(0, 0);
    stream.subscribe(second);
    assertEquals("subscribe: second subscriber: expected one", second.error.getMessage());
    assertThrows(NullPointerException.class, () -> stream.batches().subscribe(null));
  }
}
