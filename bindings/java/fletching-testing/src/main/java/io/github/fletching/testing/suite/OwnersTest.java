// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static io.github.fletching.testing.suite.Raw.assertClosed;
import static io.github.fletching.testing.suite.Raw.assertInvalid;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.fletching.Array;
import io.github.fletching.ArrayBuilder;
import io.github.fletching.ArrayView;
import io.github.fletching.DeviceArray;
import io.github.fletching.Owner;
import io.github.fletching.Schema;
import io.github.fletching.SchemaBuilder;
import io.github.fletching.Shared;
import io.github.fletching.abi.DeviceType;
import io.github.fletching.abi.engine.Handles;
import io.github.fletching.testing.CapturedLog;
import io.github.fletching.testing.suite.Raw.Counted;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.function.Executable;

/** Owners: moved, released once, taken apart. */
@ExtendWith(LeakCheck.class)
class OwnersTest {
  private final List<String> closed = new CopyOnWriteArrayList<>();
  private final CapturedLog log = new CapturedLog();

  @AfterEach
  void closeLog() {
    log.close();
  }

  private Counted object(String name) {
    return new Counted(closed, name);
  }

  private static ArrayBuilder tableBuilder() {
    ArrayBuilder table = new ArrayBuilder(3).buffers(0);
    for (int i = 0; i < 2; i++) {
      table.child(new ArrayBuilder(3).buffers(0, 4096 + i).dictionary(new ArrayBuilder(1)));
    }
    return table;
  }

  private Array table() {
    return tableBuilder().build(object("table"));
  }

  private DeviceArray deviceTable(long event) {
    return tableBuilder().buildOn(DeviceType.CUDA, 7, event, object("table"));
  }

  @Test
  void movedStructIsReleasedOnce() {
    Raw there = Raw.array();
    Array array = table();
    array.moveTo(there.address());
    assertTrue(array.isReleased());
    array.close();
    assertClosed(closed);
    Array back = there.give(Array::wrap);
    assertTrue(there.isReleased());
    assertEquals(3, back.length());
    back.close();
    back.close();
    assertClosed(closed, "table");
  }

  /** The owner is closed, or foreign code has moved the struct out. */
  @Test
  void releasedOwnerThrowsOnEveryMethod() {
    for (boolean isMovedOut : new boolean[] {false, true}) {
      Array array = table();
      ArrayView view = array.view();
      DeviceArray device = deviceTable(0);
      Schema schema = new SchemaBuilder("i").build();
      List<Owner> owners = List.of(array, device, schema);
      List<Owner> moved = List.of();
      if (isMovedOut) {
        moved =
            List.of(
                Array.wrap(array.address()),
                DeviceArray.wrap(device.address()),
                Schema.wrap(schema.address()));
      } else {
        owners.forEach(Owner::close);
      }
      List<Executable> uses =
          List.of(
              array::address,
              array::length,
              array::buffers,
              array::childCount,
              view::length,
              view::childCount,
              () -> view.child(0),
              () -> array.moveTo(Raw.array().address()),
              () -> array.takeChild(0),
              array::takeDictionary,
              () -> array.attach(object("attached")),
              array::share,
              array::toDevice,
              schema::format,
              schema::metadata,
              () -> schema.takeChild(0),
              schema::share,
              device::deviceType,
              device::deviceId,
              device::syncEvent,
              device::toHost,
              () -> device.takeChild(0));
      for (Executable use : uses) {
        String text = assertThrows(IllegalStateException.class, use).getMessage();
        assertTrue(text.endsWith(": closed or moved: expected a live struct"), text);
      }
      assertEquals("Array[released]", array.toString());
      assertTrue(view.isReleased());
      owners.forEach(Owner::close);
      moved.forEach(Owner::close);
      assertClosed(closed, "table", "table");
    }
  }

  @Test
  void wrapRejectsNullAndReleasedStruct() {
    assertInvalid("wrap: array is NULL: expected an address", () -> Array.wrap(0));
    assertInvalid(
        "wrap: device array is released: expected a live struct",
        () -> Raw.deviceArray().give(DeviceArray::wrap));
    assertInvalid("wrap: schema is NULL: expected an address", () -> Schema.wrap(0));
    try (Array array = table()) {
      assertInvalid("moveTo: address is NULL: expected room for a struct", () -> array.moveTo(0));
      assertInvalid(
          "moveTo: address is the owner's own: expected room for another struct",
          () -> array.moveTo(array.address()));
      assertFalse(array.isReleased());
    }
  }

  @Test
  void viewBelowTakenStructIsEmpty() {
    try (Array array = table()) {
      ArrayView values = array.child(0).dictionary();
      assertEquals(1, values.length());
      array.takeChild(0).close();
      assertTrue(values.isReleased());
      assertEquals(0, values.length());

      ArrayView other = array.child(1);
      assertEquals(3, other.length());
      Array moved = Array.wrap(array.address());
      assertTrue(other.isReleased());
      assertThrows(IllegalStateException.class, other::buffers);
      moved.close();
    }
    assertClosed(closed, "table");
  }

  @Test
  void secondReleaseOfCopyIsLoggedAndIgnored() {
    Raw there = Raw.array();
    table().moveTo(there.address());
    Raw copy = there.copy(Raw.array());
    there.release();
    assertTrue(there.isReleased());
    assertClosed(closed, "table");
    copy.release();
    assertClosed(closed);
    assertTrue(log.take().toString().contains("invalid handle"));
  }

  @Test
  void consumerInCMovesChildrenOut() {
    Raw there = Raw.array();
    table().moveTo(there.address());
    Raw first = there.child(0).move(Raw.array());
    Raw second = there.child(1).move(Raw.array());
    there.release();
    first.release();
    assertClosed(closed);
    assertEquals(3, second.get("length"));
    second.give(Array::wrap).close();
    assertClosed(closed, "table");
  }

  @Test
  void takeChildWorksInAnyOrder() {
    Array table = table();
    Array second = table.takeChild(1);
    assertTrue(table.child(1).isReleased());
    assertInvalid(
        "takeChild: child 1: released or moved out: expected a live struct",
        () -> table.takeChild(1));
    assertInvalid(
        "takeChild: child 2: no such child: expected an index below 2", () -> table.takeChild(2));
    assertInvalid("takeDictionary: NULL: expected a struct", table::takeDictionary);
    Array values = second.takeDictionary();
    table.close();
    second.close();
    assertClosed(closed);
    assertEquals(1, values.length());
    values.close();
    assertClosed(closed, "table");
    assertThrows(IllegalStateException.class, () -> table.child(0));
  }

  @Test
  void ruleSyncEventDestroyedByRelease() {
    DeviceArray table = deviceTable(4096);
    table.attach(object("event")); // a foreign release destroys its event
    DeviceArray first = table.takeChild(0);
    DeviceArray second = table.takeChild(1);
    assertEquals(4096, first.syncEvent());
    assertEquals(7, second.deviceId());
    assertEquals(DeviceType.CUDA, second.deviceType());
    first.close();
    table.close();
    assertClosed(closed);
    Raw there = Raw.deviceArray();
    second.moveTo(there.address());
    there.release();
    assertClosed(closed, "table", "event");
  }

  /** A consumer may write such a count into an exported struct. */
  @Test
  void impossibleCountReadsAsZero() {
    for (long count : new long[] {-1, (1L << 22) + 1, (1L << 32) + 1}) {
      Raw there = Raw.array();
      table().moveTo(there.address());
      there.child(0).set("n_children", 0);
      there.set("n_children", count);
      Array array = there.give(Array::wrap);
      assertEquals(0, array.childCount());
      there.set("n_children", 2); // the struct was moved: no effect
      Raw raw = Raw.array();
      array.moveTo(raw.address());
      raw.set("n_children", 2);
      raw.give(Array::wrap).close();
      assertClosed(closed, "table");
    }
  }

  /** A child that was not taken is released with its parent. */
  @Test
  void closeReleasesRemainingChildrenAtOnce() {
    Raw there = Raw.deviceArray();
    deviceTable(4096).moveTo(there.address());
    Raw other = Raw.array();
    new ArrayBuilder(1).build(object("other")).moveTo(other.address());
    Raw replaced = there.child(1).move(Raw.array());
    other.move(there.child(1));
    DeviceArray table = there.give(DeviceArray::wrap);
    DeviceArray first = table.takeChild(0);
    table.close();
    assertClosed(closed, "other");
    replaced.release();
    first.close();
    assertClosed(closed, "table");
  }

  @Test
  void attachedObjectIsKeptUntilRelease() {
    Array table = table();
    table.attach(object("first"));
    table.attach(object("second"));
    Array child = table.takeChild(0);
    Raw there = Raw.array();
    table.moveTo(there.address());
    there.release();
    assertClosed(closed, "first", "second");
    child.close();
    assertClosed(closed, "table");
    try (Schema schema = new SchemaBuilder("i").build()) {
      schema.attach(object("schema"));
    }
    assertClosed(closed, "schema");
  }

  @Test
  void throwingAttachedObjectIsLogged() {
    AutoCloseable thrower =
        () -> {
          throw new Exception("on purpose");
        };
    Array array = new ArrayBuilder(0).build(thrower);
    array.attach(object("attached"));
    array.close();
    assertClosed(closed, "attached");
    assertEquals(List.of("close: the callback threw: on purpose"), log.take());
  }

  @Test
  void lastUserReleasesSharedArray() {
    Shared<DeviceArray> shared = deviceTable(4096).share();
    assertEquals(2, shared.columnCount());
    DeviceArray column = shared.column(1);
    DeviceArray all = shared.view();
    assertInvalid(
        "column: child 2: no such child: expected an index below 2", () -> shared.column(2));
    shared.close();
    shared.close();
    assertThrows(IllegalStateException.class, shared::view);
    assertEquals(4096, column.syncEvent());
    assertEquals(4097, column.buffers()[1]);
    Raw there = Raw.deviceArray();
    all.moveTo(there.address());
    Raw child = there.child(0).move(Raw.array());
    there.release();
    column.close();
    assertClosed(closed);
    child.release();
    assertClosed(closed, "table");
  }

  @Test
  void sharedSchemaKeepsStrings() {
    SchemaBuilder builder = new SchemaBuilder("+s").child(new SchemaBuilder("i").name("a"));
    try (Shared<Schema> shared = builder.build().share();
        Schema view = shared.view();
        Schema column = shared.column(0)) {
      assertEquals("+s", view.format());
      assertEquals("a", column.name());
    }
  }

  @Test
  void arraysMoveBetweenHostAndDevice() {
    DeviceArray device = table().toDevice();
    assertEquals(DeviceType.CPU, device.deviceType());
    assertEquals(-1, device.deviceId());
    Array host = device.toHost();
    assertTrue(device.isReleased());
    assertEquals(2, host.childCount());
    host.close();
    assertClosed(closed, "table");
    Raw raw = new ForeignStructs().deviceArray("a", 0, false);
    raw.device().setInt("device_type", 1);
    try (DeviceArray onHost = raw.give(DeviceArray::wrap)) {
      assertInvalid("toHost: sync_event not NULL: expected none on cpu", onHost::toHost);
    }
    try (DeviceArray cuda = deviceTable(0)) {
      assertInvalid("toHost: wrong device type: expected cpu, got cuda", cuda::toHost);
    }
  }

  /** Only the parent, which owns the event, is released after the taken child. */
  @Test
  void closeReleasesDictionaryAtOnce() {
    ForeignStructs foreign = new ForeignStructs();
    DeviceArray parent = foreign.deviceArray("a", 2, true).give(DeviceArray::wrap);
    DeviceArray child = parent.takeChild(0);
    parent.close();
    assertClosed(foreign.log, "a1", "ad");
    child.close();
    assertClosed(foreign.log, "a0", "a", "event");
  }

  @Test
  void takenChildrenShareEvent() {
    DeviceArray table = deviceTable(0x1000);
    int before = Handles.count();
    DeviceArray first = table.takeChild(0);
    assertEquals(before + 2, Handles.count()); // one of the two keeps the event for all children
    DeviceArray second = table.takeChild(1);
    assertEquals(before + 3, Handles.count());
    List.of(table, first, second).forEach(DeviceArray::close);
    assertClosed(closed, "table");
  }

  /** Like a release that C calls, close never throws. */
  @Test
  void closeOfCopyIsLogged() {
    Raw there = Raw.array();
    table().moveTo(there.address());
    Raw copy = there.copy(Raw.array());
    there.give(Array::wrap).close();
    assertClosed(closed, "table");
    copy.give(Array::wrap).close();
    assertTrue(log.take().toString().contains("invalid handle"));
  }
}
