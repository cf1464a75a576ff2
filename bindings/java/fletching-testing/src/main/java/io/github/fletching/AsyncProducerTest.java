// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.AsyncRows.rowsOf;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.fletching.AsyncRows.LiveBatches;
import io.github.fletching.abi.DeviceType;
import io.github.fletching.testing.suite.LeakCheck;
import java.util.Arrays;
import java.util.concurrent.CompletionException;
import java.util.function.Function;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;

/** A stream that is sent to a peer, which records the calls. Each test must release every batch. */
@Timeout(120)
@ExtendWith(LeakCheck.class)
abstract class AsyncProducerTest {
  final LiveBatches live = new LiveBatches();
  AsyncConsumerPeer peer;
  AsyncSending<AsyncBatch> sending;
  AsyncItems items;
  Metadata metadata = Metadata.EMPTY;

  @BeforeEach
  void makePeer() {
    peer = new AsyncConsumerPeer();
  }

  @AfterEach
  void everyBatchIsReleased() {
    finish();
    peer.close();
    assertEquals(0, live.get());
  }

  /** Ends a stream that is still open. */
  void finish() {
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

  void send(Schema schema, Object... all) {
    finish();
    items = new AsyncItems(Arrays.asList(all));
    sending = new AsyncSending<>(peer.handler, DeviceType.CPU, metadata, peer, Function.identity());
    sending.iterator = items;
    sending.open(schema);
  }

  /** Sends the items and then the end. */
  void send(Object... all) {
    send(AsyncRows.schema(), all);
  }

  /** Sends the items and then the end, and makes the calls that need no request. */
  void start(Object... all) {
    peer.calls();
    send(all);
    peer.run();
    peer.calls();
  }

  /** Does the same without the end. */
  void startEndless(Object... all) {
    finish();
    items = new AsyncItems(Arrays.asList(all));
    sending = new AsyncSending<>(peer.handler, DeviceType.CPU, metadata, peer, Function.identity());
    sending.open(AsyncRows.schema());
    items.subscribe(sending);
    peer.run();
    peer.calls();
  }

  static FletchingException disk() {
    return new FletchingException(71, "disk");
  }

  static AsyncBatch lost(RuntimeException thrown) {
    return AsyncBatch.made(
        () -> {
          throw thrown;
        });
  }

  /** Runs a whole stream without extracting any task. */
  void assertSent(String expected, Object... all) {
    peer.calls();
    send(all);
    assertEquals(expected, peer.run().calls());
  }

  void assertResult(int errno, String text) {
    Throwable thrown = assertThrows(CompletionException.class, sending.done::join).getCause();
    assertEquals(text, thrown.getMessage());
    assertEquals(errno, ((FletchingException) thrown).errno());
  }

  DeviceArray onCuda(int rows) {
    live.incrementAndGet();
    return rowsOf(rows, DeviceType.CUDA, live);
  }
}
