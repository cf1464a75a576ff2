// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.fletching.abi.DeviceType;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Reads on one thread during releases, moves and changes on another. */
@Timeout(120)
class ReadersTest {
  private static final int COLUMNS = 4096; // more memory than free() caches for the next owner

  private final AtomicInteger closed = new AtomicInteger();

  /** A change that must wait for a concurrent read. */
  private static final class Change {
    private final String name;
    private final Consumer<Array> body;

    Change(String name, Consumer<Array> body) {
      this.name = name;
      this.body = body;
    }

    @Override
    public String toString() {
      return name;
    }
  }

  static Stream<Change> changes() {
    return Stream.of(
        new Change("close", Array::close),
        new Change("moveTo", array -> Array.filledBy(array::moveTo).close()),
        new Change("toDevice", array -> array.toDevice().close()),
        new Change("share", array -> array.share().close()),
        new Change("takeChild", array -> array.takeChild(0).close()),
        new Change("takeDictionary", array -> array.takeDictionary().close()),
        new Change("attach", array -> array.attach((Object) null)));
  }

  private Array built() {
    return new ArrayBuilder(7)
        .child(new ArrayBuilder(8))
        .dictionary(new ArrayBuilder(9))
        .build(closed::incrementAndGet);
  }

  /** The allocation of the new owner fails. */
  @Test
  void failedShareKeepsArray() {
    try (Array array = built()) {
      assertThrows(
          InternalError.class,
          () ->
              Shared.of(
                  array,
                  slot -> {
                    throw new InternalError("no room");
                  }));
      assertEquals(7, array.length());
      assertEquals(0, closed.get());
    }
    assertEquals(1, closed.get());
  }

  @ParameterizedTest
  @MethodSource("changes")
  void changeWaitsForRead(Change change) throws Exception {
    AtomicBoolean done = new AtomicBoolean();
    try (Array array = built()) {
      Thread other =
          new Thread(
              () -> {
                change.body.accept(array);
                done.set(true);
              });
      long length =
          array
              .view()
              .read(
                  0L,
                  struct -> {
                    other.start();
                    awaitWait(other);
                    assertTrue(!done.get() && closed.get() == 0, "did not wait");
                    return C.getLong(struct + Fields.ARRAY_LENGTH);
                  });
      other.join();
      assertEquals(7, length);
      assertTrue(done.get());
    }
    assertEquals(1, closed.get());
  }

  /** Returns once the thread waits, or once it clearly does not. */
  private static void awaitWait(Thread other) {
    while (other.getState() == Thread.State.NEW || other.getState() == Thread.State.RUNNABLE) {
      Thread.yield();
    }
  }

  @Test
  void readWaitsForChange() throws Exception {
    try (Array array = built()) {
      array.beginChange("test");
      AtomicInteger length = new AtomicInteger();
      Thread other = new Thread(() -> length.set((int) array.length()));
      other.start();
      awaitWait(other);
      assertEquals(0, length.get());
      array.endChange();
      other.join();
      assertEquals(7, length.get());
    }
  }

  @Test
  void changesWaitForEachOther() throws Exception {
    try (Array array = built()) {
      array.beginChange("test");
      Thread other = new Thread(() -> array.attach((Object) null));
      other.start();
      awaitWait(other);
      assertTrue(other.isAlive());
      array.endChange();
      other.join();
      assertEquals(7, array.length());
    }
  }

  @Test
  void failedReadsAndChangesEnd() {
    Array array = built();
    assertThrows(FletchingException.class, () -> array.takeChild(5));
    assertThrows(IndexOutOfBoundsException.class, () -> array.child(5));
    try (Schema schema = new SchemaBuilder("+s").build()) {
      assertThrows(FletchingException.class, () -> array.check(schema));
    }
    array.close();
    for (int i = 0; i < 2; i++) {
      assertThrows(IllegalStateException.class, array::length);
      assertThrows(IllegalStateException.class, () -> array.takeChild(0));
      assertThrows(IllegalStateException.class, () -> array.attach((Object) null));
    }
    array.close();
  }

  /** Each read returns the values from before the close, or throws. */
  @Test
  void readDuringCloseReturnsValueOrThrows() throws Exception {
    ArrayBuilder table = new ArrayBuilder(7).buffers(0L);
    SchemaBuilder type = new SchemaBuilder("+s");
    for (int i = 0; i < COLUMNS; i++) {
      table.child(new ArrayBuilder(7).buffers(0L, 64L));
      type.child(new SchemaBuilder("i").name("column"));
    }
    DeviceArray[] array = new DeviceArray[1];
    Schema[] schema = new Schema[1];
    List<Runnable> reads =
        List.of(
            () -> assertEquals(7, array[0].length()),
            () -> assertEquals(DeviceType.CPU, array[0].deviceType()),
            () -> assertEquals(64, array[0].child(COLUMNS - 1).buffers()[1]),
            () -> assertEquals("column", schema[0].child(COLUMNS - 1).name()),
            () -> array[0].check(schema[0]));
    int[] round = {0};
    StressTest.race(
        500,
        () -> {
          round[0]++;
          array[0] = table.build(closed::incrementAndGet).toDevice();
          schema[0] = type.build();
        },
        number -> {
          if (number == 0) {
            array[0].close();
            schema[0].close();
          } else {
            Runnable read = reads.get(round[0] % reads.size());
            assertThrows(
                IllegalStateException.class,
                () -> {
                  while (true) {
                    read.run();
                  }
                });
          }
        },
        () -> assertEquals(1, closed.getAndSet(0)));
  }

  /** While another thread takes and releases a child, a read sees the child or an empty slot. */
  @Test
  void readDuringTakeChildReturnsChildOrEmpty() throws Exception {
    ArrayBuilder table = new ArrayBuilder(7);
    for (int i = 0; i < 64; i++) {
      table.child(new ArrayBuilder(7).child(new ArrayBuilder(7)));
    }
    Array[] array = new Array[1];
    StressTest.race(
        500,
        () -> array[0] = table.build(closed::incrementAndGet),
        number -> {
          for (int i = 0; i < 64; i++) {
            if (number == 0) {
              array[0].takeChild(i).close();
            } else {
              ArrayView child = array[0].child(i);
              if (child.childCount() == 1) {
                assertTrue(List.of(0L, 7L).contains(array[0].child(i).length()));
              }
            }
          }
        },
        () -> {
          array[0].close();
          assertEquals(1, closed.getAndSet(0));
        });
  }

  /** Views of a share can be created until the share is closed. */
  @Test
  void viewDuringShareCloseSucceedsOrThrows() throws Exception {
    ArrayBuilder table = new ArrayBuilder(7);
    for (int i = 0; i < 64; i++) {
      table.child(new ArrayBuilder(7));
    }
    List<Shared<Array>> shared = new ArrayList<>();
    StressTest.race(
        500,
        () -> {
          shared.clear();
          shared.add(table.build(closed::incrementAndGet).share());
        },
        number -> {
          if (number == 0) {
            shared.get(0).close();
          } else {
            assertThrows(
                IllegalStateException.class,
                () -> {
                  while (true) {
                    try (Array view = shared.get(0).view()) {
                      assertEquals(7, view.child(63).length());
                    }
                  }
                });
          }
        },
        () -> assertEquals(1, closed.getAndSet(0)));
  }
}
