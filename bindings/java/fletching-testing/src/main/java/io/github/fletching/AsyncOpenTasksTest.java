// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

/** Open tasks: sent by our producer, with data that is not extracted yet. */
class AsyncOpenTasksTest extends AsyncProducerTest {
  @Test
  void extractedAndRejectedTaskCountsOnce() {
    startEndless(live.batch(1), live.batch(2));
    peer.request(1);
    assertEquals("task", peer.run().calls());
    long first = peer.oldest();
    peer.refuses = "task";
    peer.code = 5;
    peer.inside =
        call -> {
          if (call.equals("task")) {
            assertEquals(2, peer.extract(peer.tasks.get(0)));
          }
        };
    peer.request(1);
    assertEquals("task", peer.run().calls()); // the first task is open: no release
    AsyncForeign.callExtract(first, 0);
    assertEquals("release", peer.run().calls());
    assertEquals(0, live.get());
  }
}
