// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static io.github.fletching.testing.suite.Raw.assertClosed;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.jna.Pointer;
import io.github.fletching.Array;
import io.github.fletching.ArrayBuilder;
import io.github.fletching.DeviceArray;
import io.github.fletching.Schema;
import io.github.fletching.SchemaBuilder;
import io.github.fletching.Shared;
import io.github.fletching.abi.DeviceType;
import io.github.fletching.abi.engine.Handles;
import io.github.fletching.testing.CountingEngine;
import io.github.fletching.testing.suite.Raw.Counted;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.function.Executable;

/** The native memory that owners write, and the memory that they leave unchanged. */
@ExtendWith(LeakCheck.class)
class OwnersMemoryTest {
  private final ForeignStructs foreign = new ForeignStructs();
  private final List<String> closed = new ArrayList<>();

  private static Raw exported(DeviceArray array) {
    return Raw.exported(array);
  }

  private DeviceArray parent(boolean event) {
    Raw raw = foreign.deviceArray("a", 2, true);
    if (!event) {
      raw.device().set("sync_event", 0);
    }
    return raw.give(DeviceArray::wrap);
  }

  /** Without an event the parent is independent, so it does not wait for its children. */
  @Test
  void childrenWithoutEventAreIndependent() {
    DeviceArray parent = parent(false);
    DeviceArray first = parent.takeChild(0);
    DeviceArray values = parent.takeDictionary();
    assertEquals(0, first.syncEvent());
    assertEquals(3, first.deviceId());
    assertEquals(DeviceType.CUDA, values.deviceType());
    parent.close();
    assertClosed(foreign.log, "a1", "a", "event");
    first.close();
    values.close();
    assertClosed(foreign.log, "a0", "ad");
  }

  /** C releases a parent whose child was taken. */
  @Test
  void parentReleasedFromCIsMarked() {
    DeviceArray parent = parent(true);
    DeviceArray second = parent.takeChild(1);
    Raw there = exported(parent);
    assertFalse(there.isReleased());
    there.release();
    assertTrue(there.isReleased());
    assertTrue(there.child(0).isReleased());
    assertTrue(there.dictionary().isReleased());
    assertClosed(foreign.log, "a0", "ad");
    Raw child = exported(second);
    child.release();
    assertTrue(child.isReleased());
    assertClosed(foreign.log, "a1", "a", "event");
  }

  /** Nonzero reserved bytes are the producer's error, which is not propagated. */
  @Test
  void takeChildDoesNotCopyReservedBytes() {
    Raw raw = foreign.deviceArray("a", 2, true);
    raw.device().set("reserved", -1);
    DeviceArray parent = raw.give(DeviceArray::wrap);
    List<DeviceArray> parts =
        new ArrayList<>(List.of(parent.takeChild(0), parent.takeDictionary()));
    for (DeviceArray part : parts) {
      Raw there = exported(part);
      assertArrayEquals(new long[3], there.reserved());
      assertEquals(3, there.device().get("device_id"));
      assertEquals(2, there.device().getInt("device_type"));
      assertNotEquals(0, there.device().get("sync_event"));
      there.release();
    }
    parent.close();
    assertClosed(foreign.log, "a0", "ad", "a1", "a", "event");

    Raw other = foreign.deviceArray("b", 1, false);
    other.device().set("reserved", -1);
    try (Shared<DeviceArray> shared = other.give(DeviceArray::wrap).share()) {
      for (DeviceArray part : List.of(shared.column(0), shared.view())) {
        Raw there = exported(part);
        assertArrayEquals(new long[3], there.reserved());
        assertEquals(3, there.device().get("device_id"));
        there.release();
      }
    }
    assertClosed(foreign.log, "b0", "b", "event");
  }

  /** The producer's callback does not set release to NULL, which the specification requires. */
  @Test
  void releaseMarksStructIfProducerDoesNot() {
    int[] calls = {0};
    ForeignStructs.Release careless = foreign.keep(self -> calls[0]++);
    for (boolean isAttached : new boolean[] {false, true}) {
      Raw raw = Raw.array().set("release", ForeignStructs.function(careless));
      Array array = raw.give(Array::wrap);
      if (isAttached) {
        array.attach(new Counted(closed, "attached"));
        Raw there = Raw.exported(array);
        there.release();
        assertTrue(there.isReleased());
        assertClosed(closed, "attached");
      } else {
        array.close();
        array.close();
      }
    }
    assertEquals(2, calls[0]);

    Raw parent = Raw.exported(Raw.batch(2).build(new Counted(closed, "parent")));
    Raw child = parent.child(0).move(Raw.array());
    parent.child(0).set("release", ForeignStructs.function(careless));
    Raw replaced = parent.child(0);
    parent.release();
    assertTrue(replaced.isReleased());
    assertEquals(3, calls[0]);
    child.release();
    assertClosed(closed, "parent");
  }

  /** A foreign producer may use the same private_data values as this library. */
  @Test
  void foreignPrivateDataIsOpaque() {
    Array ours = new ArrayBuilder(1).build(new Counted(closed, "ours"));
    ours.attach(new Counted(closed, "attached"));
    Raw there = Raw.exported(ours);
    long[] found = {0};
    ForeignStructs.Release record =
        foreign.keep(
            self -> {
              Raw raw = Raw.arrayAt(Pointer.nativeValue(self));
              found[0] = raw.get("private_data");
              raw.set("release", 0);
            });
    long number = there.get("private_data");
    Supplier<Raw> other =
        () ->
            Raw.array().set("release", ForeignStructs.function(record)).set("private_data", number);
    Array array = other.get().give(Array::wrap);
    array.attach(new Counted(closed, "other"));
    array.close();
    assertEquals(number, found[0]);
    assertClosed(closed, "other");

    found[0] = 0;
    Raw device = foreign.deviceArray("a", 1, false);
    long own = device.get("private_data");
    device.set("private_data", number).set("release", ForeignStructs.function(record));
    DeviceArray parent = device.give(DeviceArray::wrap);
    DeviceArray child = parent.takeChild(0);
    parent.close();
    child.close();
    assertEquals(number, found[0]);
    assertClosed(foreign.log, "a0");
    ForeignStructs.forget(own);

    found[0] = 0;
    Raw list = Raw.exported(Raw.batch(2).build(new Counted(closed, "list")));
    Raw moved = list.child(0).move(Raw.array());
    list.child(0)
        .set("release", ForeignStructs.function(record)); // private_data is still the block
    long block = list.get("private_data");
    list.release();
    assertEquals(block, found[0]);
    assertClosed(closed);
    moved.release();
    assertClosed(closed, "list");

    there.release();
    assertClosed(closed, "ours", "attached");
  }

  @Test
  @OnLibraryCopy
  void shareWithoutMemoryForStubKeepsArray() {
    DeviceArray array = parent(true);
    List<Executable> uses =
        List.of(array::share, () -> array.attach(this), () -> array.takeChild(0));
    CountingEngine.refuseStubs(true);
    for (Executable use : uses) {
      assertThrows(OutOfMemoryError.class, use);
    }
    CountingEngine.refuseStubs(false);
    assertEquals(0, Handles.count());
    array.close();
    assertClosed(foreign.log, "a0", "a1", "ad", "a", "event");
  }

  @Test
  @OnLibraryCopy
  void takeChildWithoutMemoryForEventKeepsParent() {
    DeviceArray parent = parent(true);
    LibraryCopy.without(
        "io.github.fletching.Share$Hook",
        () -> assertThrows(OutOfMemoryError.class, () -> parent.takeChild(1)));
    DeviceArray child = parent.takeChild(1);
    parent.close();
    child.close();
    assertClosed(foreign.log, "a0", "ad", "a1", "a", "event");
  }

  /** Adjacent structs in memory. */
  @Test
  void deviceArrayDoesNotChangeOthers() {
    List<DeviceArray> all = new ArrayList<>();
    for (int i = 0; i < 200; i++) {
      all.add(
          new ArrayBuilder(i)
              .child(new ArrayBuilder(1000 + i))
              .buildOn(DeviceType.CUDA, i, 0x1000 + i, null));
    }
    List<DeviceArray> parts = new ArrayList<>();
    for (int i = 0; i < 200; i += 2) {
      parts.add(all.get(i).takeChild(0));
    }
    for (int i = 0; i < 200; i++) {
      try (DeviceArray each = all.get(i)) {
        assertEquals(i, each.length());
        assertEquals(i, each.deviceId());
        assertEquals(0x1000 + i, each.syncEvent());
      }
    }
    for (int i = 0; i < parts.size(); i++) {
      try (DeviceArray each = parts.get(i)) {
        assertEquals(1000 + 2 * i, each.length());
        assertEquals(2L * i, each.deviceId());
        assertEquals(0x1000 + 2 * i, each.syncEvent());
      }
    }
  }

  @Test
  void schemaDoesNotChangeOthers() {
    List<Schema> all = new ArrayList<>();
    for (int i = 0; i < 200; i++) {
      all.add(new SchemaBuilder("f" + i).child(new SchemaBuilder("c" + i)).flags(i).build());
    }
    List<Schema> views = new ArrayList<>();
    for (int i = 0; i < 200; i += 2) {
      try (Shared<Schema> shared = all.get(i).share()) {
        views.add(shared.view());
      }
    }
    for (int i = 0; i < 200; i++) {
      try (Schema each = i % 2 == 0 ? views.get(i / 2) : all.get(i)) {
        assertEquals("f" + i, each.format());
        assertEquals("c" + i, each.child(0).format());
        assertEquals(i, each.flags());
      }
    }
  }
}
