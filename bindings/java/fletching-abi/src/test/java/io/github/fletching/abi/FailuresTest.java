// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.abi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.github.fletching.abi.engine.Checks;
import io.github.fletching.abi.engine.Failures;
import io.github.fletching.abi.engine.Guarded;
import io.github.fletching.abi.engine.Handles;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongPredicate;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

/** Exceptions in callbacks, errors of accessors, and handles. */
class FailuresTest {
  @Test
  void throwingCallbackReturnsFailureValue() {
    Guarded guarded =
        new Guarded(
            "name",
            -7,
            (a, b, c, d) -> {
              if (a == 0) {
                throw new IllegalStateException("no");
              }
              return a + b + c + d;
            });
    assertEquals(10, guarded.run(1, 2, 3, 4));
    assertEquals(-7, guarded.run(0, 0, 0, 0));
  }

  @Test
  void kindReturnsPythonExceptionName() {
    assertEquals("MemoryError", Failures.kind(new OutOfMemoryError()));
    assertEquals("RuntimeError", Failures.kind(new StackOverflowError()));
  }

  @Test
  void unsignedRejectsValueOutOfRange() {
    assertEquals(0, Checks.unsigned(0, 8, "x"));
    assertEquals(255, Checks.unsigned(255, 8, "x"));
    assertEquals(
        "x: value out of range: expected 0 to 255, got 256", refused(() -> number(256, 8)));
    assertEquals(
        "x: value out of range: expected 0 to 4294967295, got -1", refused(() -> number(-1, 32)));
  }

  private static void number(long value, int bits) {
    Checks.unsigned(value, bits, "x");
  }

  private static String refused(Runnable action) {
    return assertThrows(RuntimeException.class, action::run).getMessage();
  }

  @Test
  void entryRejectsIndexOutOfRange() {
    Checks.entry("list", 0, 1, false);
    Checks.entry("list", 1, 2, false);
    for (long index : new long[] {-1, 2}) {
      assertEquals(
          "list: index out of range: expected less than 2, got " + index,
          assertThrows(IndexOutOfBoundsException.class, () -> Checks.entry("list", index, 2, false))
              .getMessage());
    }
    assertEquals("list: NULL: expected 2 entries", refused(() -> Checks.entry("list", 0, 2, true)));
  }

  @Test
  void findRejectsOtherType() {
    int before = Handles.count();
    long handle = Handles.add("object");
    assertNotEquals(0, handle);
    assertNotEquals(handle, Handles.add("other"));
    assertEquals(before + 2, Handles.count());
    assertSame("object", Handles.find(String.class, handle));
    String invalid =
        "private_data: invalid handle " + handle + ": expected a struct that is not released";
    assertEquals(invalid, refused(() -> Handles.find(Integer.class, handle)));
    assertEquals(invalid, refused(() -> Handles.take(Integer.class, handle)));
    assertNull(Handles.poll(Integer.class, handle));
    assertSame("object", Handles.take(String.class, handle));
    assertEquals(invalid, refused(() -> Handles.take(String.class, handle)));
    assertNull(Handles.poll(String.class, handle));
    assertSame("other", Handles.poll(String.class, handle + 1));
    assertEquals(before, Handles.count());
    Handles.remove(Handles.add("third"));
    assertEquals(before, Handles.count());
  }

  private static boolean takes(long handle) {
    try {
      return Handles.take(String.class, handle) != null;
    } catch (IllegalStateException e) {
      return false;
    }
  }

  private static boolean polls(long handle) {
    return Handles.poll(String.class, handle) != null;
  }

  /** If two threads take the same object, exactly one gets it. */
  @Test
  void concurrentTakeReturnsObjectOnce() throws InterruptedException {
    for (LongPredicate getter : List.<LongPredicate>of(FailuresTest::takes, FailuresTest::polls)) {
      long[] handles = LongStream.generate(() -> Handles.add("object")).limit(5_000).toArray();
      AtomicInteger arrived = new AtomicInteger();
      AtomicInteger gotten = new AtomicInteger();
      Runnable body =
          () -> {
            for (int i = 0; i < handles.length; i++) {
              arrived.incrementAndGet();
              while (arrived.get() < 2 * (i + 1)) {
                Thread.yield();
              }
              gotten.addAndGet(getter.test(handles[i]) ? 1 : 0);
            }
          };
      Thread other = new Thread(body);
      other.start();
      body.run();
      other.join();
      assertEquals(handles.length, gotten.get());
    }
  }
}
