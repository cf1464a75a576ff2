// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static io.github.fletching.testing.suite.ArrayRules.assertInvalid;
import static io.github.fletching.testing.suite.ArrayRules.batch;
import static io.github.fletching.testing.suite.ArrayRules.exported;
import static io.github.fletching.testing.suite.Raw.assertClosed;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.jna.Pointer;
import io.github.fletching.Array;
import io.github.fletching.ArrayBuilder;
import io.github.fletching.ArrayView;
import io.github.fletching.DeviceArray;
import io.github.fletching.DeviceArrayStream;
import io.github.fletching.Schema;
import io.github.fletching.SchemaBuilder;
import io.github.fletching.Shared;
import io.github.fletching.abi.DeviceType;
import io.github.fletching.testing.suite.Raw.Counted;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** The rules about releases and moves. */
public abstract class ReleaseRules {
  private static final long NOWHERE = 8; // an address that nothing may read

  private final Foreign foreign = new Foreign();
  private final List<String> closed = new ArrayList<>();

  private Counted object() {
    return new Counted(closed, "dropped");
  }

  private DeviceArray onDevice() {
    return batch(2).buildOn(DeviceType.CUDA, 0, 0x1000, object());
  }

  @Test
  void ruleReleaseOnce() {
    Raw raw = foreign.array("a", 0, false);
    Array array = Array.wrap(raw.address());
    assertInvalid(
        "import: array is released: expected a live struct", () -> Array.wrap(raw.address()));
    array.close();
    array.close();
    assertClosed(foreign.log, "a");
  }

  /** A consumer may read the struct after the release. */
  @Test
  void ruleReleaseMarksReleased() {
    Raw array = exported(onDevice());
    array.release();
    assertTrue(array.isReleased());
    assertClosed(closed, "dropped");
    Raw schema = SchemaRules.exported(SchemaRules.tree());
    schema.release();
    assertTrue(schema.isReleased());
  }

  @Test
  void ruleReleaseCheckBeforeUse() {
    Raw dead = Raw.array().set("length", 5).set("n_buffers", 1).set("buffers", NOWHERE);
    dead.set("n_children", 1).set("children", NOWHERE).set("dictionary", NOWHERE);
    assertInvalid(
        "import: array is released: expected a live struct", () -> Array.wrap(dead.address()));
    Raw parent = foreign.array("a", 1, false);
    Raw child = parent.child(0);
    child.release();
    child.set("n_buffers", 1).set("buffers", NOWHERE).set("n_children", 1).set("children", NOWHERE);
    try (Array array = Array.wrap(parent.address())) {
      ArrayView view = array.child(0);
      assertTrue(view.isReleased());
      assertEquals(0, view.buffers().length);
      assertEquals(0, view.childCount());
      assertThrows(IndexOutOfBoundsException.class, () -> view.child(0));
    }
    assertClosed(foreign.log, "a0", "a");
  }

  @Test
  void ruleReleaseNotOnChildren() {
    Array parent = Array.wrap(foreign.array("a", 2, false).address());
    Array child = parent.takeChild(0);
    assertClosed(foreign.log);
    assertTrue(parent.child(0).isReleased());
    assertFalse(parent.child(1).isReleased());
    child.close();
    assertClosed(foreign.log, "a0");
    parent.close();
    assertClosed(foreign.log, "a1", "a");
  }

  /** What the release wrote into the struct is not read. */
  @Test
  void ruleReleaseNoAccessAfter() {
    Raw raw = Raw.array().set("length", 9);
    Foreign.arm(raw, false, self -> self.fill(0x55));
    Array array = Array.wrap(raw.address());
    ArrayView view = array.view();
    array.close();
    assertThrows(IllegalStateException.class, array::length);
    assertThrows(IllegalStateException.class, view::buffers);
    assertThrows(IllegalStateException.class, view::childCount);
    array.close();
  }

  @Test
  void ruleReleaseAddressIndependent() {
    Raw first = exported(onDevice());
    Raw elsewhere = first.copy(Raw.deviceArray());
    first.fill(0x55);
    elsewhere.release();
    assertClosed(closed, "dropped");
  }

  @Test
  void ruleReleaseWalksChildren() {
    Array array = batch(2).build(object());
    Array kept = array.takeChild(0); // the block and the other child in it stay allocated
    Raw raw = exported(array);
    Raw other = raw.child(1);
    raw.release();
    assertTrue(other.isReleased());
    assertTrue(other.dictionary().isReleased());
    assertClosed(closed);
    kept.close();
    assertClosed(closed, "dropped");
  }

  @Test
  void ruleReleaseFreesData() {
    batch(2).build(object()).close();
    assertClosed(closed, "dropped");
  }

  @Test
  void ruleDeviceArrayReleaseFreesDeviceData() {
    onDevice().close();
    assertClosed(closed, "dropped");
  }

  /** The memory of the struct is not zeroed before. */
  @Test
  void ruleReleaseBaseAllocatedByConsumer() {
    Raw schema = Raw.schema().fill(0xA5);
    new SchemaBuilder("i").build().moveTo(schema.address());
    assertEquals("i", schema.text("format"));
    assertEquals(0, schema.get("n_children"));
    assertEquals("", schema.text("name"));
    assertEquals(0, schema.get("dictionary"));
    schema.release();
  }

  @Test
  void ruleDeviceArrayBaseAllocatedByConsumer() {
    Raw stream = Raw.deviceStream();
    DeviceArray batch = new ArrayBuilder(1).buffers(0, 0).buildOn(DeviceType.CUDA, 0, 0, null);
    DeviceArrayStream.of(new SchemaBuilder("i").build(), DeviceType.CUDA, List.of(batch).iterator())
        .moveTo(stream.address());
    for (long length = 1; length >= 0; length--) { // the batch, and the end
      Raw room = Raw.deviceArray().fill(0xA5);
      assertEquals(0, stream.call("get_next", room));
      assertEquals(length, room.get("length"));
      assertEquals(length == 0, room.isReleased());
      assertArrayEquals(new long[3], room.reserved());
      assertEquals(0, room.device().get("sync_event"));
      if (length == 1) {
        room.release();
      }
    }
    stream.release();
  }

  /** The builder and its buffers may change and be collected after the export. */
  @Test
  void ruleReleaseMembersOwnedByProducer() {
    SchemaBuilder builder = new SchemaBuilder("+s").name("a name");
    Raw schema = SchemaRules.exported(builder);
    builder.name("?").format("?");
    Raw array = exported(new ArrayBuilder(2).buffers(null, values()).build(null));
    for (int i = 0; i < 3; i++) {
      System.gc();
      ByteBuffer.allocateDirect(16).putLong(-1);
    }
    assertEquals("a name", schema.text("name"));
    long buffer = new Pointer(array.get("buffers")).getLong(8);
    assertArrayEquals(new long[] {5, 6}, new Pointer(buffer).getLongArray(0, 2));
    schema.release();
    array.release();
  }

  private static ByteBuffer values() {
    return ByteBuffer.allocateDirect(16)
        .order(ByteOrder.nativeOrder())
        .putLong(5)
        .putLong(6)
        .flip();
  }

  @Test
  void ruleDeviceArrayMembersOwnedByProducer() {
    DeviceArray parent = DeviceArray.wrap(foreign.deviceArray("a", 1, false).address());
    DeviceArray child = parent.takeChild(0);
    parent.close();
    assertEquals(7, new Pointer(child.syncEvent()).getLong(0));
    child.close();
    assertClosed(foreign.log, "a0", "a", "event");
  }

  /** The release gets the struct as it was received, and nothing below it has changed. */
  @Test
  void ruleReleaseConsumerFreesNothing() {
    List<String> calls = new ArrayList<>();
    Raw child = Foreign.arm(Raw.array(), false, self -> calls.add("child"));
    long list = foreign.longs(child.address());
    long buffers = foreign.longs(0, NOWHERE);
    Raw raw = Raw.array().set("length", 4).set("n_buffers", 2).set("buffers", buffers);
    raw.set("n_children", 1).set("children", list);
    List<byte[]> found = new ArrayList<>();
    Foreign.arm(raw, false, self -> found.add(self.bytes()));
    byte[] expected = raw.bytes();
    byte[] below = child.bytes();
    try (Shared<DeviceArray> shared = Array.wrap(raw.address()).toDevice().share()) {
      shared.column(0).close();
      shared.view().close();
      assertEquals(List.of(), found);
    }
    assertEquals(1, found.size());
    assertArrayEquals(expected, found.get(0));
    assertArrayEquals(below, child.bytes());
    assertFalse(child.isReleased());
    assertEquals(child.address(), new Pointer(list).getLong(0));
    assertEquals(NOWHERE, new Pointer(buffers).getLong(8));
    assertEquals(List.of(), calls);
    child.release();
  }

  @Test
  void ruleArrayPrivateDataUntouched() {
    long[] found = {0};
    Raw raw = Foreign.arm(Raw.array(), false, self -> found[0] = self.get("private_data"));
    long expected = raw.get("private_data");
    Array array = Array.wrap(raw.address());
    array.attach(object());
    array.close();
    assertEquals(expected, found[0]);
    assertClosed(closed, "dropped");
  }

  /** The callback gets the inner array, not the struct around it. */
  @Test
  void ruleDeviceArrayReleaseThroughArray() {
    long[] found = {0};
    Raw raw = Raw.deviceArray().set("length", 7);
    Foreign.arm(raw, false, self -> found[0] = self.get("length"));
    raw.device().setInt("device_type", 2);
    DeviceArray.wrap(raw.address()).close();
    assertEquals(7, found[0]);
  }

  // --- Moves

  @Test
  void ruleMoveMarksSource() {
    Raw raw = foreign.array("a", 0, false);
    Array array = Array.wrap(raw.address());
    assertTrue(raw.isReleased());
    Raw target = exported(array);
    assertTrue(array.isReleased());
    assertFalse(target.isReleased());
    assertClosed(foreign.log);
    target.release();
    assertClosed(foreign.log, "a");
  }

  @Test
  void ruleDeviceArrayMoveMarksSource() {
    Raw raw = foreign.deviceArray("a", 0, false);
    DeviceArray array = DeviceArray.wrap(raw.address());
    assertTrue(raw.isReleased());
    assertEquals(raw.device().get("sync_event"), array.syncEvent());
    Raw target = exported(array);
    assertTrue(array.isReleased());
    assertEquals(raw.device().get("sync_event"), target.device().get("sync_event"));
    target.release();
    assertClosed(foreign.log, "a", "event");
  }

  @Test
  void ruleMoveChildThenReleaseParent() {
    Array parent = Array.wrap(foreign.array("a", 2, false).address());
    Array child = parent.takeChild(1);
    parent.close();
    assertClosed(foreign.log, "a0", "a");
    assertEquals(1, child.length());
    child.close();
    assertClosed(foreign.log, "a1");
  }

  @Test
  void ruleMoveNoInnerPointers() {
    Raw raw = exported(onDevice());
    long size = raw.memory.size();
    for (long word : raw.memory.getLongArray(0, (int) size / 8)) {
      assertFalse(word >= raw.address() && word < raw.address() + size, Long.toHexString(word));
    }
    raw.release();
  }

  /** The old place of the struct is overwritten before the release of the struct and of a child. */
  @Test
  void ruleMoveNoStoredAddress() {
    Raw room = exported(onDevice());
    DeviceArray moved = DeviceArray.wrap(room.address());
    room.fill(0x55);
    DeviceArray child = moved.takeChild(1);
    moved.close();
    child.close();
    assertClosed(closed, "dropped");
    try (Schema schema = SchemaRules.tree().build();
        Schema column = schema.takeChild(0)) {
      assertEquals("i", column.format());
    }
  }
}
