// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.github.fletching.Array;
import io.github.fletching.ArrayBuilder;
import java.lang.ref.Reference;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

/** The memory of owners, which several threads reuse. */
class SlotsTest {
  private static final int THREADS = 4;
  private static final int ROUNDS = 5_000;
  private static final int OPEN = 3; // at once, so that several slots are in use

  @Test
  void ownersHaveSeparateSlots() throws InterruptedException {
    AtomicLong released = new AtomicLong();
    AtomicLong wrong = new AtomicLong();
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < THREADS; i++) {
      long first = (long) i * ROUNDS;
      threads.add(new Thread(() -> wrong.addAndGet(work(first, released))));
    }
    threads.forEach(Thread::start);
    for (Thread thread : threads) {
      thread.join();
    }
    assertEquals(0, wrong.get());
    assertEquals(OPEN * THREADS * ROUNDS, released.get());
  }

  /** Returns how many arrays had the wrong length. */
  private static long work(long first, AtomicLong released) {
    long wrong = 0;
    for (long length = first; length < first + ROUNDS; length++) {
      List<Array> open = new ArrayList<>();
      for (int i = 0; i < OPEN; i++) {
        Array built = new ArrayBuilder(length + i).build((AutoCloseable) released::incrementAndGet);
        open.add(Array.wrap(built.address()));
        Reference.reachabilityFence(built); // otherwise the cleaner could release the moved array
      }
      for (int i = 0; i < OPEN; i++) {
        wrong += open.get(i).length() == length + i ? 0 : 1;
        open.get(i).close();
      }
    }
    return wrong;
  }
}
