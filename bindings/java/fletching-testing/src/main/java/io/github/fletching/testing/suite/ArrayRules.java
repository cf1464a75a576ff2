// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static io.github.fletching.testing.suite.Raw.assertClosed;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.sun.jna.Pointer;
import io.github.fletching.Array;
import io.github.fletching.ArrayBuilder;
import io.github.fletching.ArrayOwner;
import io.github.fletching.DeviceArray;
import io.github.fletching.FletchingException;
import io.github.fletching.Shared;
import io.github.fletching.abi.DeviceType;
import io.github.fletching.testing.suite.Raw.Counted;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

/** The rules about arrays and device arrays, exported and imported. */
public abstract class ArrayRules {
  private static final int EINVAL = 22;

  private final Foreign foreign = new Foreign();
  private final List<String> closed = new ArrayList<>();

  static void assertError(int errno, String text, Executable action) {
    FletchingException thrown = assertThrows(FletchingException.class, action);
    assertEquals(text, thrown.getMessage());
    assertEquals(errno, thrown.errno());
  }

  static void assertInvalid(String text, Executable action) {
    assertError(EINVAL, text, action);
  }

  /** A batch of {@code columns}; the last one has a dictionary. */
  static ArrayBuilder batch(int columns) {
    ArrayBuilder batch = new ArrayBuilder(3).buffers(0);
    for (int i = 0; i < columns; i++) {
      ArrayBuilder column = new ArrayBuilder(3).buffers(0, 0x1000 + i);
      batch.child(i < columns - 1 ? column : column.dictionary(new ArrayBuilder(2).buffers(0, 0)));
    }
    return batch;
  }

  static Raw exported(Array array) {
    Raw raw = Raw.array();
    array.moveTo(raw.address());
    return raw;
  }

  static Raw exported(DeviceArray array) {
    Raw raw = Raw.deviceArray();
    array.moveTo(raw.address());
    return raw;
  }

  private static void released(Raw... structs) {
    for (Raw struct : structs) {
      struct.release();
    }
  }

  /** Expects the error of the array alone, and as a child. */
  private static void assertRefused(ArrayBuilder builder) {
    String text =
        "array builder: length, offset or null_count out of range: expected 0 or more, null_count"
            + " -1 to length";
    assertInvalid(text, () -> builder.build(null));
    assertInvalid(text, () -> new ArrayBuilder(0).child(builder).build(null));
  }

  @Test
  void ruleArrayLengthSet() {
    for (long length : new long[] {0, 5, Long.MAX_VALUE}) {
      Raw raw = exported(new ArrayBuilder(length).build(null));
      assertEquals(length, raw.get("length"));
      released(raw);
    }
    assertRefused(new ArrayBuilder(-1));
    assertRefused(new ArrayBuilder(Long.MIN_VALUE));
  }

  @Test
  void ruleArrayNullCountRange() {
    for (long nulls = -1; nulls <= 1; nulls++) {
      Raw raw = exported(new ArrayBuilder(1).nullCount(nulls).build(null));
      assertEquals(nulls, raw.get("null_count"));
      released(raw);
    }
    assertRefused(new ArrayBuilder(1).nullCount(-2));
    assertRefused(new ArrayBuilder(1).nullCount(2));
  }

  @Test
  void ruleArrayOffsetNotNegative() {
    Raw raw = exported(new ArrayBuilder(1).offset(1).build(null));
    assertEquals(1, raw.get("offset"));
    released(raw);
    assertRefused(new ArrayBuilder(1).offset(-1));
    assertRefused(new ArrayBuilder(1).offset(Long.MIN_VALUE));
  }

  private static long[] addresses(Raw raw) {
    return new Pointer(raw.get("buffers")).getLongArray(0, (int) raw.get("n_buffers"));
  }

  @Test
  void ruleArrayBuffersCount() {
    Raw raw = exported(batch(2).build(null));
    assertArrayEquals(new long[] {0}, addresses(raw));
    assertArrayEquals(new long[] {0, 0x1000}, addresses(raw.child(0)));
    assertArrayEquals(new long[] {0, 0x1001}, addresses(raw.child(1)));
    Raw none = exported(new ArrayBuilder(0).build(null));
    assertEquals(0, none.get("n_buffers"));
    assertEquals(0, none.get("buffers"));
    released(raw, none);
  }

  @Test
  void ruleArrayChildrenCount() {
    Raw raw = exported(batch(3).build(null));
    assertEquals(3, raw.get("n_children"));
    for (int i = 0; i < 3; i++) {
      assertNotEquals(0, raw.child(i).address());
    }
    released(raw);
  }

  static void assertChildrenNullOnlyWhenNone(Raw raw) {
    raw.each(each -> assertEquals(each.get("n_children") == 0, each.get("children") == 0));
  }

  @Test
  void ruleArrayChildrenNullOnlyWhenNone() {
    Raw raw = exported(batch(2).build(null));
    assertChildrenNullOnlyWhenNone(raw);
    released(raw);
  }

  @Test
  void ruleArrayDictionaryNullOtherwise() {
    Raw raw = exported(batch(2).build(null));
    assertEquals(0, raw.get("dictionary"));
    assertEquals(0, raw.child(0).get("dictionary"));
    assertNotEquals(0, raw.child(1).get("dictionary"));
    released(raw);
  }

  static void assertReleaseSet(int structs, Raw raw) {
    List<Long> callbacks = new ArrayList<>();
    raw.each(each -> callbacks.add(each.get("release")));
    assertEquals(structs, callbacks.size());
    callbacks.forEach(each -> assertNotEquals(0, each));
  }

  @Test
  void ruleArrayReleaseSet() {
    Raw raw = exported(batch(2).build(null));
    assertReleaseSet(4, raw);
    released(raw);
  }

  @Test
  void ruleArrayNullCountUnknownAccepted() {
    Raw raw = foreign.array("a", 0, false).set("length", 3).set("null_count", -1);
    try (Shared<Array> shared = Array.wrap(raw.address()).share();
        Array view = shared.view()) {
      assertEquals(-1, view.nullCount());
    }
    assertClosed(foreign.log, "a");
  }

  @Test
  void ruleArrayBuffersNullAccepted() {
    Raw raw = foreign.array("a", 0, false); // both are NULL
    try (Shared<Array> shared = Array.wrap(raw.address()).share();
        Array view = shared.view()) {
      assertArrayEquals(new long[] {0, 0}, view.buffers());
    }
    assertClosed(foreign.log, "a");
    try (Array none = new ArrayBuilder(0).build(null)) {
      assertArrayEquals(new long[0], none.buffers());
    }
  }

  // --- Device arrays

  @Test
  void ruleDeviceArrayDeviceTypeSet() {
    for (DeviceType type : new DeviceType[] {DeviceType.CUDA, DeviceType.of(9999)}) {
      Raw raw = exported(batch(1).buildOn(type, 0, 0, null));
      assertEquals(type.value(), raw.device().getInt("device_type"));
      released(raw);
    }
    try (DeviceArray parent = DeviceArray.wrap(foreign.deviceArray("a", 1, false).address());
        DeviceArray child = parent.takeChild(0)) {
      assertEquals(DeviceType.CUDA, child.deviceType());
    }
  }

  @Test
  void ruleDeviceArrayDeviceIdSet() {
    Raw raw = exported(batch(1).buildOn(DeviceType.CUDA, 7, 0, null));
    assertEquals(7, raw.device().get("device_id"));
    released(raw);
    DeviceArray array = DeviceArray.wrap(foreign.deviceArray("a", 1, false).address());
    try (Shared<DeviceArray> shared = array.share();
        DeviceArray column = shared.column(0)) {
      assertEquals(3, column.deviceId());
    }
  }

  @Test
  void ruleDeviceArrayDeviceIdConvention() {
    Raw raw = exported(new ArrayBuilder(1).build(null).toDevice());
    assertEquals(-1, raw.device().get("device_id"));
    assertEquals(DeviceType.CPU.value(), raw.device().getInt("device_type"));
    released(raw);
  }

  @Test
  void ruleDeviceArrayReservedZero() {
    DeviceArray parent = batch(1).buildOn(DeviceType.CUDA, 0, 0x1000, null);
    try (parent;
        Shared<DeviceArray> shared = batch(1).buildOn(DeviceType.CUDA, 0, 0, null).share()) {
      for (DeviceArray array :
          List.of(
              batch(1).buildOn(DeviceType.CUDA, 0, 0, null),
              new ArrayBuilder(1).build(null).toDevice(),
              shared.view(),
              parent.takeChild(0))) {
        Raw raw = exported(array);
        assertArrayEquals(new long[3], raw.reserved());
        released(raw);
      }
    }
  }

  @Test
  void ruleDeviceArrayReleasedLikeArray() {
    Raw raw = Raw.deviceArray().set("n_children", 1).set("children", 8);
    raw.device().setInt("device_type", 2).set("sync_event", 8);
    assertInvalid(
        "import: device array is released: expected a live struct",
        () -> DeviceArray.wrap(raw.address()));
  }

  // --- Events

  /** Every part and every view of the data has the event. */
  @Test
  void ruleSyncEventNullMeansReady() {
    Raw raw = foreign.deviceArray("a", 2, true);
    long event = raw.device().get("sync_event");
    DeviceArray parent = DeviceArray.wrap(raw.address());
    List<DeviceArray> parts =
        new ArrayList<>(List.of(parent.takeChild(0), parent.takeDictionary(), parent.takeChild(1)));
    Shared<DeviceArray> shared =
        DeviceArray.wrap(foreign.deviceArray("b", 1, false).address()).share();
    for (DeviceArray part : parts) {
      assertEquals(event, part.syncEvent());
      part.close();
    }
    parent.close();
    assertClosed(foreign.log, "a0", "ad", "a1", "a", "event");
    for (DeviceArray part : List.of(shared.column(0), shared.view())) {
      assertNotEquals(0, part.syncEvent());
      part.close();
    }
    shared.close();
    Raw onHost = foreign.deviceArray("c", 0, false);
    onHost.device().setInt("device_type", 1);
    try (DeviceArray array = DeviceArray.wrap(onHost.address())) {
      assertInvalid("array: sync_event not NULL: expected none on cpu", array::toHost);
    }
  }

  @Test
  void ruleSyncEventNullWhereNone() {
    for (DeviceType type : List.of(DeviceType.CPU, DeviceType.HEXAGON)) {
      assertInvalid(
          "array builder: sync_event not NULL: expected NULL, because the device type has no event",
          () -> new ArrayBuilder(0).buildOn(type, -1, 0x1000, null));
    }
    for (DeviceType type : List.of(DeviceType.EXT_DEV, DeviceType.CUDA, DeviceType.of(9999))) {
      new ArrayBuilder(0).buildOn(type, 0, 0x1000, null).close();
    }
  }

  @Test
  void ruleSyncEventDestroyedByRelease() {
    DeviceArray array = batch(2).buildOn(DeviceType.CUDA, 0, 0x1000, new Counted(closed, "event"));
    ArrayOwner child = array.takeChild(0);
    array.close();
    assertClosed(closed);
    child.close();
    assertClosed(closed, "event");
  }
}
