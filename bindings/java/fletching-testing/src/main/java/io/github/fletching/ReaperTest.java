// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Deferred.await;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.fletching.testing.suite.OnLibraryCopy;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * When the reaper thread queries events whose work reads arrays. No test depends on speed: a pause
 * is never too short, and tests wait for expected changes.
 */
@OnLibraryCopy
@Timeout(120)
class ReaperTest {
  private static final long SHORTEST_PAUSE = 20_000;
  private static final long LONGEST_PAUSE = 20_000_000;

  @Test
  void oneThreadQueriesAllArrays() {
    Set<Thread> before = Thread.getAllStackTraces().keySet();
    CountDownLatch go = new CountDownLatch(1);
    BooleanSupplier whenOpen = () -> go.getCount() == 0;
    List<Deferred> all =
        List.of(new Deferred(whenOpen), new Deferred(whenOpen), new Deferred(whenOpen));
    await(() -> all.stream().allMatch(each -> each.asked.get() > 2));
    assertEquals(3, Reaper.counts().pending());
    Thread asking = all.get(0).asking;
    long threads =
        Thread.getAllStackTraces().keySet().stream()
            .filter(each -> !before.contains(each))
            .filter(each -> each.getName().equals("fletching-release"))
            .peek(each -> assertSame(asking, each))
            .count();
    assertEquals(1, threads);
    assertTrue(asking.isDaemon());
    assertEquals(null, asking.getContextClassLoader());
    go.countDown();
    all.forEach(Deferred::await);
    all.forEach(each -> assertFalse(each.releases.contains(asking)));
    assertEquals(0, Reaper.counts().pending());
  }

  /** The thread lingers, so that consecutive arrays share one thread. */
  @Test
  void threadLingers() throws InterruptedException {
    Deferred last = new Deferred(() -> true);
    last.await();
    Deferred next;
    do {
      Thread.sleep(20); // a thread that does not linger has ended by now
      Thread before = last.asking;
      next = new Deferred(() -> true);
      next.await();
      last = next.asking == before ? null : next;
    } while (last != null);
  }

  @Test
  void pendingEventQueryBacksOff() {
    List<Long> times = new CopyOnWriteArrayList<>();
    Deferred pending =
        new Deferred(
            () -> {
              times.add(System.nanoTime());
              return times.size() > 18;
            });
    pending.await();
    long pause = SHORTEST_PAUSE;
    for (int i = 1; i < times.size(); i++) {
      long gap = times.get(i) - times.get(i - 1);
      assertTrue(gap >= pause, "query " + i + ": " + gap + " ns, expected at least " + pause);
      pause = Math.min(pause * 2, LONGEST_PAUSE);
    }
  }

  /** Queries take at most a fiftieth of the time, unless a single query is very slow. */
  @Test
  void slowQueryRunsRarely() {
    List<Long> ends = new CopyOnWriteArrayList<>();
    Deferred pending =
        new Deferred(
            () -> {
              long begin = System.nanoTime();
              if (!ends.isEmpty()) {
                long gap = begin - ends.get(ends.size() - 1);
                if (gap < 40_000_000) {
                  throw new AssertionError("asked again after " + gap + " ns");
                }
              }
              await(() -> System.nanoTime() - begin >= 800_000);
              ends.add(System.nanoTime());
              return ends.size() == 5;
            });
    pending.await();
    assertEquals("pending 0, refused 0: ", Reaper.counts().toString());
  }

  /** A new array is queried at once; older ones only when they are due. */
  @Test
  void newArrayIsQueriedFirst() {
    CountDownLatch go = new CountDownLatch(1);
    Deferred slow =
        new Deferred(
            () -> {
              long begin = System.nanoTime();
              await(() -> System.nanoTime() - begin >= 2_000_000);
              return go.getCount() == 0;
            });
    boolean overtaken = false;
    while (!overtaken) {
      int before = slow.asked.get();
      await(() -> slow.asked.get() > before); // a pause follows
      int now = slow.asked.get();
      await(() -> slow.asking.getState() == Thread.State.TIMED_WAITING || slow.asked.get() > now);
      AtomicInteger then = new AtomicInteger();
      Deferred quick =
          new Deferred(
              () -> {
                then.set(slow.asked.get());
                return true;
              });
      quick.await();
      overtaken = then.get() == now;
    }
    go.countDown();
    slow.await();
  }

  /** The test retries after a longer gap, which means that a pause has grown. */
  private static final long SOON = 15_000_000;

  @Test
  void newArrayShortensPauses() {
    CountDownLatch end = new CountDownLatch(1);
    AtomicLong lastEnd = new AtomicLong();
    Deferred slow = // a pause of 50 ms follows each query
        new Deferred(
            () -> {
              long begin = System.nanoTime();
              await(() -> System.nanoTime() - begin >= 1_000_000);
              lastEnd.set(System.nanoTime());
              return end.getCount() == 0;
            });
    AtomicLong gap = new AtomicLong(SOON);
    while (gap.get() >= SOON) {
      awaitQueries(slow, 12);
      AtomicLong since = new AtomicLong();
      Deferred next =
          new Deferred(
              () -> {
                gap.set(System.nanoTime() - since.get());
                return !since.compareAndSet(0, lastEnd.get());
              });
      next.await();
    }
    end.countDown();
    slow.await();
  }

  /**
   * At least one of the first pauses is short. The first itself may be long: starting the release
   * thread takes time, and a rest follows.
   */
  @Test
  void releaseShortensPauses() {
    CountDownLatch end = new CountDownLatch(1);
    List<Long> times = new CopyOnWriteArrayList<>();
    Deferred pending =
        new Deferred(
            () -> {
              times.add(System.nanoTime());
              return end.getCount() == 0;
            });
    boolean soon = false;
    while (!soon) {
      int known = pending.asked.get();
      AtomicInteger passed = new AtomicInteger();
      Deferred next =
          new Deferred(
              () -> {
                passed.set(pending.asked.get());
                return passed.get() > known + 14; // the pause has reached its maximum
              });
      next.await();
      int last = passed.get() + 4;
      await(() -> times.size() > last);
      for (int i = passed.get() + 1; i <= last; i++) {
        soon |= times.get(i) - times.get(i - 1) < SOON;
      }
    }
    end.countDown();
    pending.await();
  }

  private static void awaitQueries(Deferred array, int count) {
    int known = array.asked.get();
    await(() -> array.asked.get() >= known + count);
  }
}
