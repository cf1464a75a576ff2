// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.sun.jna.Pointer;
import com.sun.jna.ptr.PointerByReference;
import io.github.fletching.ArrayBuilder;
import io.github.fletching.AsyncDeviceStream;
import io.github.fletching.AsyncDeviceStreams;
import io.github.fletching.AsyncRows;
import io.github.fletching.DeviceArray;
import io.github.fletching.FletchingException;
import io.github.fletching.SchemaBuilder;
import io.github.fletching.abi.DeviceType;
import io.github.fletching.testing.suite.Peer.Case;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ForkJoinPool;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Every case of the hostile peer that is an async producer or consumer. */
@Timeout(300)
public abstract class HostileAsyncSuite {
  private static AsyncDeviceStream open(Case c, int window) {
    AsyncDeviceStream stream = new AsyncDeviceStream(window);
    long handler = stream.handlerAddress();
    Peer.call(c.name, m -> Peer.C.FletchingHostileStartProducer(c.name, handler, m));
    return stream;
  }

  private static FletchingException errorOf(CompletableFuture<?> future) {
    try {
      future.join();
      return null;
    } catch (CompletionException e) {
      return (FletchingException) e.getCause();
    }
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

  @Test
  void everyConsumerEndsItsStream() {
    int batches = 5;
    for (Case c : Peer.cases(Peer.HANDLER)) {
      PointerByReference handler = new PointerByReference();
      Peer.call(c.name, m -> Peer.C.FletchingHostileOpenHandler(c.name, batches, handler, m));
      CompletableFuture<Void> sent =
          AsyncDeviceStreams.send(
                  new SchemaBuilder("i").build(),
                  DeviceType.CPU,
                  IntStream.range(0, batches).mapToObj(i -> batch()).iterator(),
                  ForkJoinPool.commonPool(),
                  Pointer.nativeValue(handler.getValue()))
              .toCompletableFuture();
      Peer.finish(c.name); // a consumer that has stalled continues
      FletchingException error = errorOf(sent);
      // on_error is not called by a stream that does not fail, and without a release there is
      // nothing to wait for.
      boolean missing =
          c.name.equals("handler.on-schema-null") || c.name.equals("handler.on-next-task-null");
      assertEquals(
          missing,
          error != null && error.getMessage().contains("NULL: expected a callback"),
          c.name);
      if (c.outcome == Peer.ACCEPTED || c.outcome == Peer.REFUSED) {
        HostileSuite.check(c, error);
      }
    }
  }

  private static DeviceArray batch() {
    return new ArrayBuilder(3).buffers(0, 0).buildOn(DeviceType.CPU, 0, 0, null);
  }
}
