// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static io.github.fletching.testing.suite.Releases.errorOf;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.fletching.AsyncDeviceStream;
import io.github.fletching.AsyncRows;
import io.github.fletching.DeviceArrayStream;
import io.github.fletching.FletchingException;
import io.github.fletching.testing.suite.Peer.Case;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Cases of the hostile peer that call APIs ConformanceTest does not use. */
@Timeout(300)
class HostileTest {
  @Test
  void strictStreamNamesBrokenRule() {
    for (int party : List.of(Peer.STREAM, Peer.DEVICE_STREAM)) {
      for (Case c : Peer.cases(party)) {
        Raw raw = Raw.deviceStream();
        Peer.call(c.name, m -> Peer.C.FletchingHostileExportDeviceStream(c.name, raw.address(), m));
        FletchingException error =
            errorOf(
                () -> {
                  try (DeviceArrayStream stream = raw.give(DeviceArrayStream::wrap)) {
                    stream.strict().forEach(batch -> batch.close());
                  }
                });
        if (c.outcome == Peer.TOLERATED) {
          assertTrue(error != null && error.getMessage().contains("(rule "), c.name);
        }
        Peer.finish(c.name);
      }
    }
  }

  private static AsyncDeviceStream open(Case c, int window) {
    AsyncDeviceStream stream = new AsyncDeviceStream(window);
    long handler = stream.handlerAddress();
    Peer.call(c.name, m -> Peer.C.FletchingHostileStartProducer(c.name, handler, m));
    return stream;
  }

  /** The close may come at any point, also while the peer sends. */
  @Test
  void earlyCloseIsSafe() {
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
