// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.github.fletching.AsyncDeviceStream;
import io.github.fletching.AsyncRows;
import io.github.fletching.FletchingException;
import io.github.fletching.testing.suite.Peer.Case;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Every case of the hostile peer that is an async producer. */
@Timeout(300)
public abstract class HostileAsyncSuite {
  private static AsyncDeviceStream open(Case c, int window) {
    AsyncDeviceStream stream = new AsyncDeviceStream(window);
    long handler = stream.handlerAddress();
    Peer.call(c.name, m -> Peer.C.FletchingHostileStartProducer(c.name, handler, m));
    return stream;
  }

  @Test
  void everyProducerIsReadOrRefused() {
    Map<String, Integer> counts = Map.of("producer.empty", 0, "producer.release-with-tasks", 2);
    for (int window : new int[] {0, 1, 3, 16}) {
      for (Case c : Peer.cases(Peer.PRODUCER)) {
        AsyncDeviceStream stream = open(c, window);
        AsyncRows rows = new AsyncRows(window == 0 ? 3 : 1, 1);
        if (c.outcome == Peer.STALLED) {
          stream.schema().handle((schema, none) -> close(schema)).toCompletableFuture().join();
        } else {
          stream.subscribe(rows);
          int batches = rows.await().size() - 1; // without the end
          HostileSuite.check(c, (FletchingException) rows.error());
          if (c.outcome == Peer.ACCEPTED) {
            assertEquals(counts.getOrDefault(c.name, 3), batches, c.name);
          }
        }
        stream.close();
        Peer.finish(c.name);
      }
    }
  }

  private static Object close(AutoCloseable object) {
    try {
      if (object != null) {
        object.close();
      }
      return null;
    } catch (Exception e) {
      throw new IllegalStateException(e);
    }
  }

  /** At any point, and while the peer sends. */
  @Test
  void everyProducerMayBeClosedEarly() {
    for (Case c : Peer.cases(Peer.PRODUCER)) {
      open(c, 1).close();
      Peer.finish(c.name);
      AsyncDeviceStream stream = open(c, 2);
      CompletableFuture<Void> reads =
          CompletableFuture.runAsync(() -> stream.subscribe(new AsyncRows(1, 1)));
      stream.close();
      stream.close();
      reads.join();
      Peer.finish(c.name);
    }
  }
}
