// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Deferred.await;
import static io.github.fletching.Deferred.together;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.github.fletching.abi.DeviceType;
import io.github.fletching.testing.CapturedLog;
import io.github.fletching.testing.suite.OnLibraryCopy;
import java.lang.reflect.Field;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Events whose query fails, and arrays that cannot be deferred or released normally. */
@OnLibraryCopy
@Timeout(120)
class ReaperFailuresTest {
  // --- Failing queries

  @Test
  void failedQueryBacksOff() {
    StringBuilder asked = new StringBuilder(); // queries of the reaper thread
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

  /** Exception whose message throws once when it is read. */
  private static final class UnreadableException extends RuntimeException {
    private static final long serialVersionUID = 1;

    @Override
    public String getMessage() {
      throw new OutOfMemoryError("on purpose");
    }
  }

  @Test
  void handedOverArrayIsNotQueriedAgain() {
    AtomicInteger asked = new AtomicInteger();
    Deferred[] both = {null, null};
    together(
        () -> {
          both[0] = new Deferred(() -> true);
          both[1] =
              new Deferred(
                  () -> {
                    if (asked.incrementAndGet() == 1) {
                      throw new UnreadableException();
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
  void queryThreadReleasesWithoutReleaseThread() throws ReflectiveOperationException {
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
    Deferred next = new Deferred(() -> true); // the thread continues
    next.await();
  }

  @Test
  void queryThreadSurvivesOutOfMemory() throws ReflectiveOperationException {
    assertEquals("no room, released", QueryOutOfMemory.report());
  }

  // --- Shutdown

  /** The thread still calls the runtime after the callback, to leave the context. */
  @Test
  void shutdownDuringReleaseThrows() {
    CountDownLatch released = new CountDownLatch(1);
    CountDownLatch go = new CountDownLatch(1);
    Vendor leaving =
        new ScriptedVendor(() -> true) {
          @Override
          void runAtOrigin(Recorded recorded, Runnable body) {
            body.run();
            released.countDown();
            await(go);
          }
        };
    Deferred.defer(leaving, new ArrayBuilder(1).buildOn(DeviceType.CUDA, 0, 0, null));
    await(released);
    assertThrows(IllegalStateException.class, Owner::shutdown);
    go.countDown();
    await(() -> Reaper.counts().running() == 0);
  }

  // --- Failures

  @Test
  void failedReleaseIsLogged() {
    CapturedLog log = new CapturedLog();
    try {
      DeviceArray array = new ArrayBuilder(1).buildOn(DeviceType.CUDA, 0, 0, null);
      CountDownLatch failed = new CountDownLatch(1);
      Vendor failing =
          new ScriptedVendor(() -> true) {
            @Override
            void runAtOrigin(Recorded recorded, Runnable body) {
              body.run();
              failed.countDown();
              throw new IllegalStateException("on purpose");
            }
          };
      Deferred.defer(failing, array);
      await(failed);
      List<String> logged = new CopyOnWriteArrayList<>();
      await(
          () -> {
            logged.addAll(log.take());
            return !logged.isEmpty();
          });
      assertEquals(List.of("releaseAfter: the callback threw: on purpose"), logged);
      new Deferred(() -> true).await();
    } finally {
      log.close();
    }
  }
}
