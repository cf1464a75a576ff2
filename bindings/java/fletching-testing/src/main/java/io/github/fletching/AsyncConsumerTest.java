// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.github.fletching.AsyncRows.LiveBatches;
import io.github.fletching.testing.suite.LeakCheck;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * A stream and a producer peer that makes its calls one by one. Each test must release every batch.
 */
@Timeout(120)
@ExtendWith(LeakCheck.class)
abstract class AsyncConsumerTest {
  static final String LOST =
      "release: called too early: expected on_next_task(NULL) or on_error before";

  final LiveBatches live = new LiveBatches();
  AsyncProducerPeer peer;
  AsyncDeviceStream stream;
  AsyncRows rows;
  boolean released;

  @AfterEach
  void everyBatchIsReleased() {
    finish();
    assertEquals(0, live.get());
  }

  void finish() {
    if (peer != null) {
      if (!released) {
        peer.release();
      }
      peer.close();
    }
    peer = null;
  }

  void release() {
    released = true;
    peer.release();
  }

  /** Opens a stream without a schema, whose subscriber requests {@code requests}. */
  void create(AsyncDeviceStream next, long requests) {
    create(next, requests, next::subscribe);
  }

  void create(AsyncDeviceStream next, long requests, Consumer<AsyncRows> subscribe) {
    finish();
    released = false;
    stream = next;
    peer = new AsyncProducerPeer(stream);
    rows = new AsyncRows(requests, 0);
    subscribe.accept(rows);
  }

  void create(long requests) {
    create(new AsyncDeviceStream(), requests);
  }

  void open(long requests) {
    create(requests);
    assertEquals(0, peer.schema());
  }

  void assertRows(long... expected) {
    List<Long> all = new ArrayList<>();
    for (long row : expected) {
      all.add(row);
    }
    assertEquals(all, rows.rows());
  }

  void assertFailed(int errno, String text) {
    assertEquals(text, rows.error.getMessage());
    assertEquals(errno, ((FletchingException) rows.error).errno());
  }

  Schema schema() {
    return stream.schema().toCompletableFuture().join();
  }

  static void run(Runnable body) {
    Thread thread = new Thread(body);
    thread.start();
    try {
      thread.join();
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  /** Creates a consumer without a subscriber that has received {@code tasks} tasks. */
  AsyncHandler queued(int tasks) {
    finish();
    released = false;
    AsyncHandler core = new AsyncHandler();
    core.request(tasks);
    peer = new AsyncProducerPeer(null, core.expose());
    peer.schema();
    for (int row = 1; row <= tasks; row++) {
      assertEquals(0, peer.task(row, live.batch(row), 0));
    }
    assertEquals("request " + tasks, peer.calls());
    return core;
  }

  static void take(AsyncHandler core, long expected) {
    try (DeviceArray batch = core.take(0).batch) {
      assertEquals(expected, batch.length());
    }
  }

  /** Drops the oldest batch; returns false if none has arrived. */
  static boolean skip(AsyncHandler core) {
    return core.peer.locked(
        () -> {
          ForeignProducer.Task task = core.shut ? null : core.queue.poll();
          AsyncConsumer.Received received = task == null ? core.kept.poll() : null;
          if (task != null) {
            core.peer.drop(task);
          } else if (received != null) {
            core.peer.unlocked(received::close);
          }
          return task != null || received != null;
        });
  }
}
