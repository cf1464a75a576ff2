// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static io.github.fletching.testing.suite.Raw.assertClosed;
import static org.junit.jupiter.api.Assertions.assertEquals;

import io.github.fletching.Array;
import io.github.fletching.Owner;
import io.github.fletching.testing.suite.Raw.Counted;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;

/** Owners, under several threads and the garbage collector. */
@ExtendWith(NothingLeft.class)
public abstract class LifetimeSuite {
  private final List<String> closed = new CopyOnWriteArrayList<>();

  private Array table() {
    return ArrayRules.batch(2).build(new Counted(closed, "table"));
  }

  @Test
  void twoThreadsThatCloseReleaseOnce() throws Exception {
    for (int round = 0; round < 200; round++) {
      Array table = table();
      CyclicBarrier start = new CyclicBarrier(2);
      Thread other = new Thread(() -> closeAt(start, table));
      other.start();
      closeAt(start, table);
      other.join();
      assertClosed(closed, "table");
    }
  }

  private static void closeAt(CyclicBarrier start, Owner owner) {
    try {
      start.await();
    } catch (Exception e) {
      throw new AssertionError(e);
    }
    owner.close();
  }

  /** Several threads release the structs of one block. */
  @Test
  void threadsMayReleaseTheChildrenOfAnArray() throws Exception {
    for (int round = 0; round < 200; round++) {
      Array table = table();
      List<Array> parts = new ArrayList<>(List.of(table.takeChild(0), table.takeChild(1), table));
      CyclicBarrier start = new CyclicBarrier(3);
      List<Thread> threads = new ArrayList<>();
      parts.forEach(part -> threads.add(new Thread(() -> closeAt(start, part))));
      threads.forEach(Thread::start);
      for (Thread thread : threads) {
        thread.join();
      }
      assertClosed(closed, "table");
    }
  }

  @Test
  void manyObjectsMayBeAttached() {
    Array array = table();
    AtomicInteger closes = new AtomicInteger();
    for (int i = 0; i < 100_000; i++) {
      AutoCloseable object = closes::incrementAndGet;
      array.attach(object);
    }
    array.close();
    assertEquals(100_000, closes.get());
    assertClosed(closed, "table");
  }

  @Test
  @Timeout(60)
  void aForgottenOwnerIsReleasedAndCounted() {
    long leaks = Owner.leaks();
    Consumer<Array> forget = Array::length;
    forget.accept(table());
    while (closed.isEmpty() && !Thread.interrupted()) {
      System.gc();
    }
    assertClosed(closed, "table");
    assertEquals(leaks + 1, Owner.leaks());
    try (Array next = table()) { // its slot is used again
      assertEquals(3, next.length());
    }
    assertClosed(closed, "table");
  }
}
