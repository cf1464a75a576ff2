// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import io.github.fletching.abi.DeviceType;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;

/** An array that is released when its event query returns true. */
final class Deferred {
  final AtomicInteger asked = new AtomicInteger();
  final List<Thread> releases = new CopyOnWriteArrayList<>(); // the releasing threads
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
    defer(vendor, array);
  }

  /** Passes the array to the reaper thread; its event is already recorded. */
  static void defer(Vendor vendor, DeviceArray array) {
    Slot slot = array.takeSlot("releaseAfter");
    Reaper.add(new Reaper.Deferred(vendor, new Recorded(vendor), null, slot));
  }

  void await() {
    await(() -> !releases.isEmpty());
    assertEquals(1, releases.size());
  }

  static void await(BooleanSupplier condition) {
    while (!condition.getAsBoolean()) {
      assertFalse(Thread.currentThread().isInterrupted(), "timeout");
      Thread.yield();
    }
  }

  static void await(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException e) {
      throw new AssertionError("timeout", e);
    }
  }

  /** Adds several arrays at once: the reaper thread sees all of them together. */
  static void together(Runnable additions) {
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
}
