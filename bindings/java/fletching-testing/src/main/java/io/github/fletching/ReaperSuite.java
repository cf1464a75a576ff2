// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.fletching.abi.DeviceType;
import io.github.fletching.testing.CapturedLog;
import io.github.fletching.testing.suite.Copy;
import java.lang.reflect.Field;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * When the thread asks for events whose work reads arrays. No test needs it to be quick: a pause is
 * never too short, and what has to happen at some time is waited for.
 */
@Timeout(20)
public abstract class ReaperSuite {
  private static final long SHORTEST_PAUSE = 20_000;
  private static final long LONGEST_PAUSE = 20_000_000;

  /** An array that is released when the answer is true. */
  private static final class Deferred {
    final AtomicInteger asked = new AtomicInteger();
    final List<Thread> releases = new CopyOnWriteArrayList<>(); // the threads
    volatile Thread asking;

    Deferred(BooleanSupplier answer) {
      AutoCloseable object = () -> releases.add(Thread.currentThread());
      DeviceArray array = new ArrayBuilder(1).buildOn(DeviceType.CUDA, 0, 0, object);
      ScriptedVendor vendor =
          new ScriptedVendor(
              () -> {
                asking = Thread.currentThread();
                asked.incrementAndGet();
                return answer.getAsBoolean();
              });
      Reaper.add("release_after", new Recorded(vendor), array);
    }

    void await() {
      ReaperSuite.await(() -> !releases.isEmpty());
      assertEquals(1, releases.size());
    }
  }

  private static void await(BooleanSupplier condition) {
    while (!condition.getAsBoolean()) {
      assertFalse(Thread.currentThread().isInterrupted(), "timeout");
      Thread.yield();
    }
  }

  private static void await(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException e) {
      throw new AssertionError("timeout", e);
    }
  }

  /** Adds arrays in one go: the thread sees all of them at once. */
  private static void together(Runnable additions) {
    CountDownLatch begun = new CountDownLatch(1);
    CountDownLatch go = new CountDownLatch(1);
    Deferred first =
        new Deferred(
            () -> {
              begun.countDown();
              await(go);
              return true;
            });
    await(begun);
    additions.run();
    go.countDown();
    first.await();
  }

  @Test
  void oneThreadAsksForAll() {
    Copy.run(this, "oneThread");
  }

  void oneThread() {
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

  /** It stays for a while, so that one array after the other needs one thread. */
  @Test
  void theThreadLingers() {
    Copy.run(this, "linger");
  }

  void linger() throws InterruptedException {
    Deferred last = new Deferred(() -> true);
    last.await();
    Deferred next;
    do {
      Thread.sleep(20); // a thread that does not stay has ended by then
      Thread before = last.asking;
      next = new Deferred(() -> true);
      next.await();
      last = next.asking == before ? null : next;
    } while (last != null);
  }

  @Test
  void aPendingEventIsAskedForEverMoreRarely() {
    Copy.run(this, "pauses");
  }

  void pauses() {
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

  /** For a fiftieth of the time at most, unless a query takes very long. */
  @Test
  void aSlowQueryIsRare() {
    Copy.run(this, "slowQueries");
  }

  void slowQueries() {
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

  /** A new array is asked for at once, and the others only when they are due. */
  @Test
  void aNewArrayOvertakes() {
    Copy.run(this, "overtake");
  }

  void overtake() {
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

  // --- Refusals

  @Test
  void aRefusalIsAskedForEverMoreRarely() {
    Copy.run(this, "refusals");
  }

  void refusals() {
    StringBuffer asked = new StringBuffer();
    List<Long> refused = new CopyOnWriteArrayList<>();
    AtomicInteger refusals = new AtomicInteger();
    together(
        () -> {
          new Deferred(
              () -> {
                asked.append('1');
                if (refusals.incrementAndGet() < 8) {
                  throw new IllegalStateException("refusal " + refusals);
                }
                return refusals.get() == 10;
              });
          new Deferred(
              () -> {
                asked.append('2');
                refused.add(Reaper.counts().refused());
                return refusals.get() == 10;
              });
        });
    await(() -> Reaper.counts().pending() == 0);
    StringBuilder expected = new StringBuilder();
    for (int skips : new int[] {1, 3, 7, 15, 15, 15, 15, 0, 0, 0}) {
      expected.append("12").append("2".repeat(skips));
    }
    assertEquals(expected.toString(), asked.toString());
    for (int i = 0; i < refused.size(); i++) {
      assertEquals(i < refused.size() - 3 ? 1 : 0, refused.get(i));
    }
    assertEquals("pending 0, refused 0: refusal 7", Reaper.counts().toString());
  }

  // --- Without memory

  /** Its text cannot be read for once. */
  private static final class Unreadable extends RuntimeException {
    private static final long serialVersionUID = 1;

    @Override
    public String getMessage() {
      throw new OutOfMemoryError("on purpose");
    }
  }

  @Test
  void anArrayThatWasHandedOverIsNotAskedForAgain() {
    Copy.run(this, "handedOver");
  }

  void handedOver() {
    AtomicInteger asked = new AtomicInteger();
    Deferred[] both = {null, null};
    together(
        () -> {
          both[0] = new Deferred(() -> true);
          both[1] =
              new Deferred(
                  () -> {
                    if (asked.incrementAndGet() == 1) {
                      throw new Unreadable();
                    }
                    return true;
                  });
        });
    both[1].await();
    both[0].await();
    assertEquals(1, both[0].asked.get());
    assertEquals(0, Reaper.counts().pending());
  }

  @Test
  void withoutAThreadTheAskingOneReleases() {
    Copy.run(this, "releaseHere");
  }

  void releaseHere() throws ReflectiveOperationException {
    Field instance = Reaper.class.getDeclaredField("INSTANCE");
    Field releases = Reaper.class.getDeclaredField("releases");
    instance.setAccessible(true);
    releases.setAccessible(true);
    releases.set(
        instance.get(null),
        new ThreadPoolExecutor(1, 1, 0, TimeUnit.SECONDS, new LinkedBlockingQueue<>()) {
          @Override
          public void execute(Runnable body) {
            throw new OutOfMemoryError("on purpose");
          }
        });
    Deferred array = new Deferred(() -> true);
    array.await();
    assertSame(array.asking, array.releases.get(0));
    Deferred next = new Deferred(() -> true); // the thread goes on
    next.await();
  }

  @Test
  void aThreadThatFindsNoMemoryGoesOn() {
    Copy.run(this, "noMemory");
  }

  void noMemory() throws ReflectiveOperationException {
    assertEquals("DeviceArray[live]: no room, released", NoMemory.report());
  }

  // --- Failures

  @Test
  void aReleaseThatFailsIsLogged() {
    Copy.run(this, "failingRelease");
  }

  void failingRelease() {
    CapturedLog log = new CapturedLog();
    try {
      DeviceArray array = new ArrayBuilder(1).buildOn(DeviceType.CUDA, 0, 0, null);
      CountDownLatch failed = new CountDownLatch(1);
      Vendor failing =
          new ScriptedVendor(() -> true) {
            @Override
            void runRelaxed(Runnable body) {
              body.run();
              failed.countDown();
              throw new IllegalStateException("on purpose");
            }
          };
      Reaper.add("release_after", new Recorded(failing), array);
      await(failed);
      List<String> logged = new CopyOnWriteArrayList<>();
      await(
          () -> {
            logged.addAll(log.take());
            return !logged.isEmpty();
          });
      assertEquals(List.of("release_after: the callback threw: on purpose"), logged);
      new Deferred(() -> true).await();
    } finally {
      log.close();
    }
  }
}
