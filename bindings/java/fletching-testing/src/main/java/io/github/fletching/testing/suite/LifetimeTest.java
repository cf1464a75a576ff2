// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static io.github.fletching.testing.suite.Raw.assertClosed;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.github.fletching.Array;
import io.github.fletching.ArrayBuilder;
import io.github.fletching.ArrayStream;
import io.github.fletching.ArrayView;
import io.github.fletching.FletchingException;
import io.github.fletching.Owner;
import io.github.fletching.Schema;
import io.github.fletching.SchemaBuilder;
import io.github.fletching.Shared;
import io.github.fletching.testing.CapturedLog;
import io.github.fletching.testing.suite.Raw.Counted;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;

/** Owners under concurrency and garbage collection. */
@ExtendWith(LeakCheck.class)
class LifetimeTest {
  private final List<String> closed = new CopyOnWriteArrayList<>();
  private static final int DEEP = 30_000; // deeper than the stack allows for recursion

  private Array table() {
    return Raw.batch(2).build(new Counted(closed, "table"));
  }

  private static void startAndJoin(List<Thread> threads) throws InterruptedException {
    threads.forEach(Thread::start);
    for (Thread thread : threads) {
      thread.join();
    }
  }

  @Test
  void attachAcceptsManyObjects() {
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
  void concurrentReadersLoseNoBatch() throws Exception {
    int count = 50_000;
    AtomicInteger made = new AtomicInteger();
    AtomicInteger read = new AtomicInteger();
    Iterator<Array> batches =
        Stream.generate(() -> new ArrayBuilder(made.incrementAndGet()).build(null))
            .limit(count)
            .iterator();
    try (ArrayStream stream = ArrayStream.of(new SchemaBuilder("n").build(), batches)) {
      List<Thread> threads = new ArrayList<>();
      for (int i = 0; i < 4; i++) {
        threads.add(new Thread(() -> readAll(stream, read)));
      }
      startAndJoin(threads);
    }
    assertEquals(count, made.get());
    assertEquals(count, read.get());
  }

  private static void readAll(ArrayStream stream, AtomicInteger read) {
    boolean more = true;
    while (more) {
      try {
        more = stream.hasNext();
        if (more) {
          Thread.yield(); // lets the other thread read
          stream.next().close();
          read.incrementAndGet();
        }
      } catch (NoSuchElementException e) {
        assertTrue(more); // the other thread took the batch
      } catch (FletchingException e) {
        assertEquals("stream: in use: expected one call at a time", e.getMessage());
      }
    }
  }

  /** Releases the array in a C callback, where a stack overflow would crash the process. */
  private static void releaseInC(Array array) {
    Raw there = Raw.array();
    array.moveTo(there.address());
    there.release();
  }

  @Test
  void nestedViewsReleaseWithoutRecursion() {
    Array view = table();
    for (int i = 0; i < DEEP; i++) {
      try (Shared<Array> shared = view.share()) {
        view = shared.view();
      }
    }
    releaseInC(view);
    assertClosed(closed, "table");
  }

  @Test
  void ownedArraysReleaseWithoutRecursion() {
    Array array = table();
    ByteBuffer buffer = ByteBuffer.allocateDirect(8).order(ByteOrder.nativeOrder());
    for (int i = 0; i < DEEP; i++) {
      array = new ArrayBuilder(0).buffers(buffer).build(array);
      Array next = new ArrayBuilder(0).build(null);
      next.attach(array);
      array = next;
    }
    releaseInC(array);
    assertClosed(closed, "table");
  }

  @Test
  void ownedSharesAndStreamsReleaseWithoutRecursion() {
    Array array = table();
    for (int i = 0; i < DEEP; i++) {
      Schema schema = new SchemaBuilder("n").build();
      schema.attach(array);
      Array batch = new ArrayBuilder(0).build(ArrayStream.of(schema, Collections.emptyIterator()));
      ArrayStream stream =
          ArrayStream.of(new SchemaBuilder("n").build(), List.of(batch).iterator());
      assertTrue(stream.hasNext());
      Shared<Array> shared = new ArrayBuilder(0).build(stream).share();
      array = new ArrayBuilder(0).build(shared);
    }
    releaseInC(array);
    assertClosed(closed, "table");
  }

  @Test
  void childObjectsCloseBeforeParentObjects() {
    Raw there = Raw.array();
    table().moveTo(there.address());
    for (int i = 0; i < 2; i++) {
      Array child = new ArrayBuilder(1).build(new Counted(closed, "child " + i));
      child.attach(new Counted(closed, "attached " + i));
      there.child(i).give(Array::wrap).close();
      child.moveTo(there.child(i).address());
    }
    there.release();
    assertClosed(closed, "child 0", "attached 0", "child 1", "attached 1", "table");
  }

  @Test
  void attachedObjectsCloseInOrder() {
    Array inner = new ArrayBuilder(0).build(new Counted(closed, "1"));
    inner.attach(new Counted(closed, "2"));
    Array array = new ArrayBuilder(0).build(inner);
    array.attach(null);
    array.attach(new Counted(closed, "3"));
    array.attach(table());
    array.attach(new Counted(closed, "4"));
    releaseInC(array);
    assertClosed(closed, "1", "2", "3", "table", "4");
    assertTrue(inner.isReleased());
  }

  @Test
  void interruptInCloseIsRestored() {
    AutoCloseable interrupted =
        () -> {
          throw new InterruptedException("slow");
        };
    CapturedLog log = new CapturedLog();
    try {
      releaseInC(new ArrayBuilder(0).build(interrupted));
      assertEquals(List.of("close: the callback threw: slow"), log.take());
    } finally {
      log.close();
    }
    assertTrue(Thread.interrupted());
  }

  @Test
  @Timeout(60)
  void unreachableOwnerIsReleasedAndCounted() {
    long leaks = Owner.leaks();
    assumeTrue(leaks < 99, "the leaks of other tests have been logged, and no more will be");
    Consumer<Array> forget = Array::length;
    CapturedLog log = new CapturedLog();
    try {
      forget.accept(table());
      List<String> logged = List.of();
      while (logged.isEmpty() && !Thread.interrupted()) { // logged after the release
        System.gc();
        logged = log.take();
      }
      assertEquals(List.of("array: collected and not closed"), logged);
    } finally {
      log.close();
    }
    assertClosed(closed, "table");
    assertEquals(leaks + 1, Owner.leaks());
    try (Array next = table()) { // reuses the slot
      assertEquals(3, next.length());
    }
    assertClosed(closed, "table");
  }

  @Test
  @Timeout(60)
  void unreachableOwnerIsReleasedWhenLoggerThrows() {
    long leaks = Owner.leaks();
    Handler thrower =
        new Handler() {
          @Override
          public void publish(LogRecord entry) {
            throw new IllegalStateException("on purpose");
          }

          @Override
          public void flush() {}

          @Override
          public void close() {}
        };
    Logger logger = Logger.getLogger("io.github.fletching");
    logger.addHandler(thrower);
    try {
      for (int round = 1; round <= 2; round++) { // the cleaner must still run in round 2
        Consumer<Array> forget = Array::length;
        forget.accept(table());
        while ((Owner.leaks() < leaks + round || closed.isEmpty()) && !Thread.interrupted()) {
          System.gc();
        }
        assertClosed(closed, "table");
      }
    } finally {
      logger.removeHandler(thrower);
    }
  }

  @Test
  void viewOfClosedOwnerIgnoresReusedMemory() {
    Array first = table();
    ArrayView view = first.view();
    first.close();
    try (Array next = table()) { // in the same memory
      assertEquals(3, next.length());
      assertTrue(view.isReleased());
    }
    assertClosed(closed, "table", "table");
  }

  /**
   * The cleaner handles one owner after another, so the last owner's release shows that it has
   * handled the others.
   */
  @Test
  @Timeout(60)
  void unreachableOwnerOfMovedStructIsNotLeak() {
    long leaks = Owner.leaks();
    for (int round = 1; round <= 3; round++) {
      Raw there = Raw.array();
      Consumer<Array> moveOut = array -> Raw.arrayAt(array.address()).move(there);
      moveOut.accept(table());
      there.release();
      assertClosed(closed, "table");
      Consumer<Array> forget = Array::length;
      forget.accept(table());
      while ((Owner.leaks() < leaks + round || closed.isEmpty()) && !Thread.interrupted()) {
        System.gc();
      }
      assertClosed(closed, "table");
    }
    assertEquals(leaks + 3, Owner.leaks());
  }
}
