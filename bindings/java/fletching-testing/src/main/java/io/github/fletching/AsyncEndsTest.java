// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.AsyncRows.rowsOf;
import static io.github.fletching.Native.C;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.fletching.abi.DeviceType;
import io.github.fletching.abi.engine.Handles;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** How a consumer's stream ends, and the calls a producer must not make before and after that. */
class AsyncEndsTest extends AsyncConsumerTest {
  private static final String OUT_OF_ORDER =
      "on_next_task: out of order: expected a call after on_schema and before the end";

  private static IllegalStateException cancelled() {
    return new IllegalStateException("cancelled");
  }

  @Test
  void cancelAfterEndDropsPendingTasks() {
    for (boolean isReleased : new boolean[] {false, true}) {
      AsyncHandler core = queued(3);
      take(core, 1);
      peer.end();
      if (isReleased) {
        release();
      }
      assertNull(core.outcome());
      core.cancel(cancelled());
      String calls = isReleased ? "extract 1, extract 2, extract 3" : "extract 1, drop 2, drop 3";
      assertEquals(calls, peer.calls());
      assertEquals(0, live.get());
      assertEquals("cancelled", core.outcome().getMessage());
      assertNull(core.take(0));
      core.close();
    }
  }

  @Test
  void cancelAfterReachedEndKeepsOutcome() {
    AsyncHandler core = queued(1);
    core.request(1);
    take(core, 1);
    assertNull(core.outcome());
    peer.end();
    assertSame(AsyncConsumer.END, core.outcome());
    core.cancel(cancelled());
    assertSame(AsyncConsumer.END, core.outcome());
    assertEquals(22, peer.task(2));
    release();
    core.cancel(cancelled());
    assertSame(AsyncConsumer.END, core.outcome());
    assertEquals("request 1, extract 1", peer.calls());
    core.close();
  }

  @Test
  void cancelSetsOutcomeBeforeDrops() {
    List<String> seen = new ArrayList<>();
    AsyncHandler core = queued(2);
    peer.inside.set(() -> seen.add(core.outcome().getMessage()));
    core.cancel(cancelled());
    assertEquals(List.of("cancelled"), seen);
    assertEquals("cancel, drop 1, drop 2", peer.calls());
    core.close();
  }

  @Test
  void releaseExtractsInOrder() {
    List<Object> seen = new ArrayList<>();
    AsyncHandler core = queued(2);
    peer.end();
    peer.inside.set(() -> seen.add(core.take(0) == null));
    release();
    assertEquals(List.of(true), seen);
    assertEquals("extract 1, extract 2", peer.calls());
    take(core, 1);
    take(core, 2);
    core.close();
  }

  @Test
  void ruleAsyncTaskNullDrops() {
    AsyncHandler core = queued(2);
    release();
    assertEquals("drop 1, drop 2", peer.calls());
    assertEquals(LOST, core.outcome().getMessage());
    assertNull(core.take(0));
    core.close();
  }

  @Test
  void cancelDuringLastExtractionIsOutcome() {
    AsyncHandler core = queued(1);
    peer.end();
    peer.inside.set(() -> core.cancel(cancelled()));
    release();
    assertEquals("cancelled", core.outcome().getMessage());
    assertEquals(0, live.get());
    core.close();
  }

  @Test
  void handlerRejectsCallsBeforeSchema() {
    create(1);
    assertEquals(22, peer.task(1));
    assertFailed(22, OUT_OF_ORDER);
    create(1);
    assertEquals(22, peer.end());
    assertFailed(22, "on_next_task(NULL): out of order: expected one call after on_schema");
    create(1);
    Slot released = Slot.take(Kind.SCHEMA);
    assertEquals(22, AsyncForeign.callOnSchema(peer.handler, released.address));
    released.free();
    assertFailed(22, "on_schema: schema is NULL or released: expected a schema");
  }

  @Test
  void releaseHandlerEndsHandlerWithoutProducer() {
    int before = Handles.count();
    for (boolean closesFirst : new boolean[] {true, false}) {
      AsyncDeviceStream stream = new AsyncDeviceStream();
      stream.releaseHandler(); // no handler exists yet
      stream.handlerAddress();
      if (closesFirst) {
        stream.close();
      }
      stream.releaseHandler();
      stream.releaseHandler();
      boolean failed = stream.schema().toCompletableFuture().isCompletedExceptionally();
      stream.close();
      assertTrue(failed);
      assertEquals(before, Handles.count());
    }
    AsyncDeviceStream used = new AsyncDeviceStream();
    create(used, 1);
    peer.schema();
    assertEquals(
        "releaseHandler: a producer has the handler: expected none",
        assertThrows(IllegalStateException.class, used::releaseHandler).getMessage());
    peer.release();
  }

  @Test
  void handlerRejectsOverlappingCalls() {
    int[] code = new int[1];
    create(new AsyncDeviceStream().onTask(metadata -> code[0] = peer.end()), 1);
    peer.schema();
    assertEquals(22, peer.task(1));
    assertEquals(22, code[0]);
    assertFailed(22, "handler call: overlaps another one: expected one call at a time");
  }

  @Test
  void cancelStopsApplicationCallbacks() {
    List<String> seen = new ArrayList<>();
    for (boolean early : new boolean[] {true, false}) {
      create(
          new AsyncDeviceStream()
              .onSchema(schema -> seen.add("schema"))
              .onTask(metadata -> seen.add("task")),
          1);
      if (early) {
        rows.subscription.cancel();
      }
      assertEquals(0, peer.schema());
      rows.subscription.cancel();
      assertEquals(early ? 22 : 0, peer.task(1));
      assertEquals(early ? List.of() : List.of("schema"), seen);
      rows.subscription.request(0);
      assertRows();
    }
  }

  @Test
  void requestAfterCancelIsIgnored() {
    AsyncHandler core = queued(1);
    core.cancel(cancelled());
    core.request(5);
    assertEquals(22, peer.task(2));
    assertEquals("cancel, drop 1", peer.calls());
    core.close();
  }

  @Test
  void takeRequestsOnlyWithBatch() {
    AsyncHandler core = queued(2);
    core.take(5).close();
    assertEquals("request 5, extract 1", peer.calls());
    core.take(0).close();
    assertNull(core.take(5));
    peer.task(3);
    peer.end();
    release();
    core.take(5).close();
    assertNull(core.take(5));
    assertEquals("extract 2, extract 3", peer.calls());
    core.close();
  }

  @Test
  void secondCloseIsIgnored() {
    new AsyncDeviceStream().close(); // a stream without a handler
    open(1);
    long handle = C.getAddress(peer.handler + Fields.HANDLER_PRIVATE_DATA);
    stream.close();
    stream.close();
    Handles.find(AsyncHandler.class, handle); // found until it is released
    assertEquals("request 1, cancel", peer.calls());
  }

  @Test
  void schemaAfterCloseIsReleased() {
    AsyncHandler core = new AsyncHandler();
    released = false;
    peer = new AsyncProducerPeer(null, core.expose());
    core.close();
    Schema schema = AsyncRows.schema();
    live.incrementAndGet();
    schema.attach(live);
    assertEquals(0, peer.schema(schema));
    assertEquals(0, live.get());
  }

  /** Shapes of a schema and an array, one bit each: a child, a second child, a dictionary. */
  private static Schema schema(int shape) {
    SchemaBuilder schema = new SchemaBuilder("+s");
    for (int bit = 1; bit <= 2; bit++) {
      if ((shape & bit) != 0) {
        schema.child(new SchemaBuilder("i"));
      }
    }
    return ((shape & 4) == 0 ? schema : schema.dictionary(new SchemaBuilder("i"))).build();
  }

  private static DeviceArray array(int shape) {
    ArrayBuilder array = new ArrayBuilder(1);
    for (int bit = 1; bit <= 2; bit++) {
      if ((shape & bit) != 0) {
        array.child(new ArrayBuilder(1));
      }
    }
    ArrayBuilder whole = (shape & 4) == 0 ? array : array.dictionary(new ArrayBuilder(1));
    return whole.buildOn(DeviceType.CPU, 0, 0, null);
  }

  @Test
  void rejectsBatchOfOtherShape() {
    int[] shapes = {0, 1, 3, 4, 5, 7};
    for (int expected : shapes) {
      for (int shape : shapes) {
        create(1);
        peer.schema(schema(expected));
        peer.task(1, array(shape), 0);
        assertRows(shape == expected ? 1 : -22);
      }
    }
  }

  @Test
  void takeBlockZeroesReusedBlock() {
    byte[] bytes = new byte[64];
    List<Long> taken = new ArrayList<>();
    long used = AsyncAbi.takeBlock();
    for (int i = 0; i < bytes.length; i++) {
      bytes[i] = -1;
    }
    C.write(used, bytes);
    AsyncAbi.putBlock(used);
    while (!taken.contains(used)) {
      assertTrue(taken.size() < 10_000, "the block is not used again");
      taken.add(AsyncAbi.takeBlock());
    }
    C.read(used, bytes);
    for (byte each : bytes) {
      assertEquals(0, each);
    }
    taken.forEach(AsyncAbi::putBlock);
  }

  // --- The lock

  /** Uses the stream on another thread, which waits for the lock. */
  private void useElsewhere() {
    AsyncDeviceStream used = stream;
    run(used::handlerAddress);
  }

  @Test
  void callbacksRunWithoutLock() {
    for (String end : List.of("end", "fail", "wrong", "release", "cancel")) {
      AsyncRows locking =
          new AsyncRows(3, 0) {
            @Override
            public void onNext(DeviceArray batch) {
              useElsewhere();
              super.onNext(batch);
            }

            @Override
            public void onError(Throwable thrown) {
              useElsewhere();
              super.onError(thrown);
            }

            @Override
            public void onComplete() {
              useElsewhere();
              super.onComplete();
            }
          };
      finish();
      released = false;
      rows = locking;
      stream =
          new AsyncDeviceStream()
              .onSchema(schema -> useElsewhere())
              .onTask(metadata -> useElsewhere())
              .onWarning(warning -> useElsewhere());
      peer = new AsyncProducerPeer(stream);
      stream.subscribe(rows);
      stream
          .schema()
          .thenAccept(
              schema -> {
                schema.close();
                useElsewhere();
              });
      Schema schema = AsyncRows.schema();
      schema.attach((AutoCloseable) this::useElsewhere);
      peer.inside.set(this::useElsewhere);
      if (end.equals("cancel")) {
        rows.subscription.cancel();
      }
      peer.schema(schema);
      if (!end.equals("cancel")) {
        DeviceArray odd = rowsOf(1);
        C.putLong(odd.address() + Fields.DEVICE_ARRAY_RESERVED + 8, 1);
        peer.task(1, odd, 0);
        finishWith(end);
      }
      assertFalse(rows.rows().isEmpty() && !end.equals("cancel"), end);
    }
  }

  private void finishWith(String end) {
    if (end.equals("end")) {
      peer.end();
    } else if (end.equals("fail")) {
      peer.fail(71, null);
    } else if (end.equals("release")) {
      release();
    } else {
      peer.task(2, rowsOf(1, DeviceType.CUDA, this::useElsewhere), 0);
    }
  }
}
