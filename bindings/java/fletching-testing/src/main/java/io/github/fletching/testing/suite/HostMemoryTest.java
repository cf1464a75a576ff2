// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static io.github.fletching.testing.suite.Raw.assertInvalid;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.fletching.Array;
import io.github.fletching.ArrayBuilder;
import io.github.fletching.ArrayStream;
import io.github.fletching.DeviceArray;
import io.github.fletching.DeviceArrayStream;
import io.github.fletching.Owner;
import io.github.fletching.Schema;
import io.github.fletching.SchemaBuilder;
import io.github.fletching.abi.DeviceType;
import java.lang.ref.WeakReference;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.ReadOnlyBufferException;
import java.util.Iterator;
import java.util.List;
import java.util.function.Function;
import java.util.function.LongConsumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;

/** Reads host buffers, and lets C functions fill structs. */
@ExtendWith(LeakCheck.class)
class HostMemoryTest {
  private final ByteBuffer values = ByteBuffer.allocateDirect(16).order(ByteOrder.nativeOrder());

  private ArrayBuilder ints() {
    for (int i = 0; i < 4; i++) {
      values.putInt(4 * i, i + 1);
    }
    return new ArrayBuilder(4).buffers(null, values);
  }

  // --- hostBuffer

  @Test
  void hostBufferReadsValues() {
    try (Array array = new ArrayBuilder(4).buffers(0).child(ints()).build(null)) {
      ByteBuffer found = array.child(0).hostBuffer(1, 4, 8);
      assertEquals(ByteOrder.nativeOrder(), found.order());
      assertEquals("2 3 8", found.getInt(0) + " " + found.getInt(4) + " " + found.capacity());
      assertThrows(ReadOnlyBufferException.class, () -> found.putInt(0, 9));
      assertThrows(IndexOutOfBoundsException.class, () -> found.getInt(5));
      values.putInt(4, 7); // the same memory
      assertEquals(7, found.getInt(0));
      assertEquals(0, array.hostBuffer(0, 0, 0).capacity());
      assertEquals(0, array.child(0).hostBuffer(1, 16, 0).capacity());
    }
  }

  @Test
  void hostBufferRejectsBytesOutOfRange() {
    try (Array array = ints().build(null)) {
      for (int index : new int[] {-1, 2}) {
        assertThrows(IndexOutOfBoundsException.class, () -> array.hostBuffer(index, 0, 4));
      }
      assertInvalid(
          "buffer 0: expected bytes of a buffer that is not NULL, got 4 at 0 of NULL",
          () -> array.hostBuffer(0, 0, 4));
      assertInvalid(
          "buffer 0: expected bytes of a buffer that is not NULL, got 0 at 1 of NULL",
          () -> array.hostBuffer(0, 1, 0));
      for (int[] each : new int[][] {{-1, 4}, {0, -4}}) {
        assertInvalid(
            "buffer 1: expected bytes of a buffer that is not NULL, got "
                + each[1]
                + " at "
                + each[0]
                + " of a buffer",
            () -> array.hostBuffer(1, each[0], each[1]));
      }
    }
  }

  @Test
  void hostBufferRejectsClosedOwner() {
    Array array = ints().build(null);
    array.close();
    assertThrows(IllegalStateException.class, () -> array.hostBuffer(1, 0, 4));
  }

  @Test
  void hostBufferRejectsDeviceMemory() {
    try (DeviceArray cuda = ints().buildOn(DeviceType.CUDA, 0, 0, null);
        DeviceArray pinned = ints().buildOn(DeviceType.CUDA_HOST, 0, 0, null)) {
      assertInvalid(
          "buffer: expected memory that the CPU can access, got cuda",
          () -> cuda.hostBuffer(1, 0, 4));
      assertEquals(1, pinned.hostBuffer(1, 0, 4).getInt());
    }
  }

  @Test
  @Timeout(60)
  void hostBufferKeepsOwnerReachable() {
    WeakReference<?>[] owner = new WeakReference<?>[1];
    ByteBuffer found = sliceOfForgotten(owner);
    for (int i = 0; i < 5; i++) {
      System.gc();
    }
    assertTrue(owner[0].get() != null);
    assertEquals(2, found.getInt(0));
    ((Owner) owner[0].get()).close();
    found = null;
    while (owner[0].get() != null) {
      System.gc();
      Thread.yield();
    }
  }

  private ByteBuffer sliceOfForgotten(WeakReference<?>[] owner) {
    Array array = ints().build(null);
    owner[0] = new WeakReference<>(array);
    return array.hostBuffer(1, 0, 16).position(4).slice().order(ByteOrder.nativeOrder());
  }

  // --- filledBy

  private static <T extends Owner> void assertFilled(
      T source, String kind, Function<LongConsumer, T> fill) {
    try (T found = fill.apply(source::moveTo)) {
      assertTrue(source.isReleased() && !found.isReleased(), kind);
    }
    long[] address = new long[1];
    assertInvalid(
        "filledBy: " + kind + " is released: expected the function to fill it",
        () -> fill.apply(out -> address[0] = out));
    RuntimeException failure = new IllegalArgumentException("no");
    assertSame(
        failure,
        assertThrows(
            IllegalArgumentException.class,
            () ->
                fill.apply(
                    out -> {
                      throw failure;
                    })));
  }

  @Test
  void filledByOwnsWrittenStruct() {
    assertFilled(ints().build(null), "array", Array::filledBy);
    assertFilled(ints().build(null).toDevice(), "device array", DeviceArray::filledBy);
    assertFilled(new SchemaBuilder("i").build(), "schema", Schema::filledBy);
    Iterator<Array> none = List.<Array>of().iterator();
    assertFilled(
        ArrayStream.of(new SchemaBuilder("+s").build(), none), "stream", ArrayStream::filledBy);
    Iterator<DeviceArray> noneOnDevice = List.<DeviceArray>of().iterator();
    assertFilled(
        DeviceArrayStream.of(new SchemaBuilder("+s").build(), DeviceType.CPU, noneOnDevice),
        "device stream",
        DeviceArrayStream::filledBy);
  }

  /** The function gets an empty struct even if the slot's memory is reused. */
  @Test
  void filledByPassesEmptyStruct() {
    ints().build(null).close();
    Array.filledBy(
            out -> {
              Raw raw = Raw.arrayAt(out);
              for (String field : new String[] {"length", "buffers", "private_data", "release"}) {
                assertEquals(0, raw.get(field), field);
              }
              ints().build(null).moveTo(out);
            })
        .close();
  }

  /** After an error the contents are unspecified, so the struct is not released. */
  @Test
  void filledByDoesNotReleaseAfterError() {
    int[] releases = new int[1];
    Raw kept = Raw.array();
    assertThrows(
        IllegalStateException.class,
        () ->
            Array.filledBy(
                out -> {
                  ints().build((AutoCloseable) () -> releases[0]++).moveTo(out);
                  Raw.arrayAt(out).copy(kept);
                  throw new IllegalStateException("failed with a live struct");
                }));
    assertEquals(0, releases[0]);
    kept.release();
    assertEquals(1, releases[0]);
  }
}
