// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.ffm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.fletching.Array;
import io.github.fletching.ArrayBuilder;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;

/** Runs the arena example in bindings/java/README.md. */
class ArenaReadmeTest {
  // The example begins
  static Array ofInts(int... values) {
    Arena arena = Arena.ofShared(); // closed by the release, on any thread
    MemorySegment data = arena.allocateFrom(ValueLayout.JAVA_INT, values);
    return new ArrayBuilder(values.length).buffers(0, data.address()).build(arena);
  }

  static int first(Array array) {
    MemorySegment values = MemorySegment.ofBuffer(array.hostBuffer(1, 0, 4));
    return values.get(ValueLayout.JAVA_INT, 0);
  }

  // The example ends

  @Test
  void exampleReadsFirstValue() {
    try (Array array = ofInts(7, 8)) {
      assertEquals(7, first(array));
    }
  }

  @Test
  void releaseOnAnotherThreadClosesSharedArena() throws InterruptedException {
    Arena arena = Arena.ofShared();
    MemorySegment data = arena.allocate(16, 8);
    Array array = new ArrayBuilder(2).buffers(0, data.address()).build(arena);
    assertTrue(data.scope().isAlive());
    Thread other = new Thread(array::close);
    other.start();
    other.join();
    assertFalse(data.scope().isAlive());
  }

  /** An automatic arena cannot be closed, so its segment is the attached object. */
  @Test
  void automaticArenaSegmentStaysReachable() {
    MemorySegment data = Arena.ofAuto().allocateFrom(ValueLayout.JAVA_INT, 5);
    Object segment = data;
    try (Array array = new ArrayBuilder(1).buffers(0, data.address()).build(segment)) {
      data = null;
      segment = null;
      System.gc();
      assertEquals(5, first(array));
    }
  }
}
