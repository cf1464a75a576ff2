// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.jna.Native;
import com.sun.jna.Pointer;
import io.github.fletching.Array;
import io.github.fletching.ArrayBuilder;
import io.github.fletching.FletchingException;
import io.github.fletching.Metadata;
import io.github.fletching.Schema;
import io.github.fletching.SchemaBuilder;
import io.github.fletching.abi.DeviceType;
import java.lang.ref.WeakReference;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;

/** The structs that builders write, and the values they reject. */
@ExtendWith(LeakCheck.class)
class BuildersTest {
  private static void assertInvalid(String text, ArrayBuilder builder) {
    Raw.assertInvalid(text, () -> builder.build(null));
  }

  private static void assertInvalid(String text, SchemaBuilder builder) {
    Raw.assertInvalid(text, builder::build);
  }

  @Test
  void buildWritesEveryArrayField() {
    Raw raw = Raw.array();
    new ArrayBuilder(5)
        .nullCount(-1)
        .offset(2)
        .buffers(0, 64, 128)
        .child(new ArrayBuilder(1))
        .child(new ArrayBuilder(2).buffers(256))
        .dictionary(new ArrayBuilder(9))
        .build(null)
        .moveTo(raw.address());
    assertEquals(5, raw.get("length"));
    assertEquals(-1, raw.get("null_count"));
    assertEquals(2, raw.get("offset"));
    assertEquals(3, raw.get("n_buffers"));
    assertArrayEquals(new long[] {0, 64, 128}, new Pointer(raw.get("buffers")).getLongArray(0, 3));
    assertEquals(2, raw.get("n_children"));
    assertEquals(0, raw.child(0).get("buffers")); // no buffers: NULL
    assertEquals(0, raw.child(0).get("children"));
    assertEquals(256, new Pointer(raw.child(1).get("buffers")).getLong(0));
    try (Array array = raw.give(Array::wrap)) {
      assertEquals(9, array.dictionary().length());
      assertEquals(2, array.child(1).length());
      assertTrue(array.child(1).dictionary().isReleased());
      assertThrows(IndexOutOfBoundsException.class, () -> array.child(2));
    }
  }

  private static Array ofForgottenBuffer(List<WeakReference<ByteBuffer>> buffers) {
    ByteBuffer values = ByteBuffer.allocateDirect(8).order(ByteOrder.nativeOrder());
    buffers.add(new WeakReference<>(values));
    return new ArrayBuilder(1).child(new ArrayBuilder(1).buffers(null, values)).build(null);
  }

  @Test
  void builtArrayKeepsChildBuffers() {
    List<WeakReference<ByteBuffer>> buffers = new ArrayList<>();
    try (Array array = ofForgottenBuffer(buffers)) {
      System.gc();
      assertNotNull(buffers.get(0).get());
      assertEquals(1, array.childCount());
    }
  }

  @Test
  void buffersCopiesAddresses() {
    long[] addresses = {0, 64};
    ArrayBuilder builder = new ArrayBuilder(1).buffers(addresses);
    addresses[1] = 128;
    try (Array array = builder.build(null)) {
      assertEquals(64, array.buffers()[1]);
    }
  }

  @Test
  void buildWritesEverySchemaField() {
    Metadata metadata = Metadata.EMPTY.with("key", "caf\u00e9").with("key", "");
    SchemaBuilder builder =
        new SchemaBuilder("+s")
            .flags(2)
            .metadata(metadata)
            .child(new SchemaBuilder("i").name("\u00fc").dictionary(new SchemaBuilder("u")));
    Raw raw = Raw.schema();
    builder.build().moveTo(raw.address());
    assertEquals("", raw.text("name")); // not NULL, because some readers reject NULL
    assertEquals("", raw.child(0).dictionary().text("name"));
    assertEquals(0, raw.get("metadata") % 8);
    assertEquals(0, raw.child(0).get("metadata"));
    assertEquals("+s", new Pointer(raw.get("format")).getString(0, "UTF-8"));
    try (Schema schema = raw.give(Schema::wrap);
        Schema again = schema.view().toBuilder().build()) {
      for (Schema each : new Schema[] {schema, again}) {
        assertEquals("+s", each.format());
        assertEquals("", each.name());
        assertEquals(2, each.flags());
        assertEquals(metadata, each.metadata());
        assertEquals("caf\u00e9", each.metadata().text("key").orElseThrow());
        assertEquals("\u00fc", each.child(0).name());
        assertEquals("u", each.child(0).dictionary().format());
      }
      assertEquals(Metadata.EMPTY, schema.child(0).metadata());
    }
  }

  @Test
  void buildRejectsValuesOutOfRange() {
    String range =
        "ArrayBuilder: length, offset or null_count out of range: expected 0 or more, null_count"
            + " -1 to length";
    assertInvalid(range, new ArrayBuilder(-1));
    assertInvalid(range, new ArrayBuilder(1).offset(-1));
    assertInvalid(range, new ArrayBuilder(1).nullCount(2));
    assertInvalid(range, new ArrayBuilder(1).child(new ArrayBuilder(1).nullCount(-2)));
    assertInvalid("SchemaBuilder: format: empty: expected a format string", new SchemaBuilder(""));
    String nul = ": NUL character: expected text without it";
    assertInvalid(
        "SchemaBuilder: child 1: dictionary: name" + nul,
        new SchemaBuilder("+s")
            .child(new SchemaBuilder("i"))
            .child(new SchemaBuilder("i").dictionary(new SchemaBuilder("u").name("a\0b"))));
    assertInvalid("SchemaBuilder: format" + nul, new SchemaBuilder("i\0"));
    assertInvalid("SchemaBuilder: format" + nul, new SchemaBuilder("\0i"));
    assertInvalid("SchemaBuilder: name" + nul, new SchemaBuilder("i").name("\0a"));
    String surrogate = ": lone surrogate: expected Unicode text"; // Java would encode it as '?'
    assertInvalid("SchemaBuilder: format" + surrogate, new SchemaBuilder("tsu:\ud800"));
    assertInvalid("SchemaBuilder: name" + surrogate, new SchemaBuilder("i").name("a\udc00"));
  }

  @Test
  void ruleSyncEventNullWhereNone() {
    Raw.assertInvalid(
        "ArrayBuilder: sync_event not NULL: expected NULL, because the device type has no event",
        () -> new ArrayBuilder(0).buildOn(DeviceType.CPU, -1, 0x1000, null));
    new ArrayBuilder(0).buildOn(DeviceType.of(9999), 0, 0x1000, null).close();
  }

  @Test
  void buildRejectsMoreThan2147483647Buffers() {
    ArrayBuilder wide = new ArrayBuilder(0).buffers(new long[1 << 20]);
    ArrayBuilder table = new ArrayBuilder(0);
    for (int i = 0; i < 1 << 12; i++) {
      table.child(wide);
    }
    assertInvalid("ArrayBuilder: too many buffers: expected at most 2147483647", table);
  }

  /** Children that are listed twice at every level, as in a malformed schema. */
  @Test
  @Timeout(60)
  void toBuilderRejectsMoreThan4194304Schemas() {
    ForeignStructs foreign = new ForeignStructs();
    List<Schema> levels = new ArrayList<>(List.of(new SchemaBuilder("i").build()));
    for (int level = 1; level < 30; level++) {
      long below = levels.get(0).address();
      levels.add(0, new SchemaBuilder("+s").build());
      Raw raw = Raw.schemaAt(levels.get(0).address());
      raw.set("n_children", 2).set("children", foreign.longs(below, below));
    }
    assertEquals(
        "toBuilder: the struct or a descendant is one of too many: expected at most"
            + " 4194304 structs",
        assertThrows(FletchingException.class, levels.get(0).view()::toBuilder).getMessage());
    levels.forEach(Schema::close);
  }

  @Test
  void toBuilderRejectsInvalidChildren() {
    try (Schema schema = new SchemaBuilder("+s").build()) {
      for (long count : new long[] {-1, 1, 1L << 40}) {
        Raw.schemaAt(schema.address()).set("n_children", count);
        String text =
            count == 1
                ? "children NULL: expected a list of 1"
                : "n_children out of range: expected 0 to 4194304, got " + count;
        Raw.assertInvalid(
            "toBuilder: the struct or a descendant has " + text, schema.view()::toBuilder);
      }
    }
  }

  @Test
  void buildOnRejectsNullDeviceType() {
    Object object = (AutoCloseable) () -> {};
    ArrayBuilder builder = new ArrayBuilder(1);
    assertThrows(NullPointerException.class, () -> builder.buildOn(null, 0, 0, object));
  }

  @Test
  @Timeout(60)
  void javaBuffersStayReachableUntilRelease() {
    ByteBuffer values = ByteBuffer.allocateDirect(16).order(ByteOrder.nativeOrder()).putInt(0, 7);
    long address = Pointer.nativeValue(Native.getDirectBufferPointer(values));
    WeakReference<ByteBuffer> reference = new WeakReference<>(values);
    Array array = new ArrayBuilder(4).buffers(null, values).build(null);
    values = null;
    System.gc();
    assertEquals(address, array.buffers()[1]);
    assertEquals(7, new Pointer(array.buffers()[1]).getInt(0));
    assertTrue(reference.get() != null);
    array.close();
    while (reference.get() != null && !Thread.interrupted()) {
      System.gc();
    }
    assertEquals(
        "buffer 0: on the heap: expected a direct buffer",
        assertThrows(
                IllegalArgumentException.class,
                () -> new ArrayBuilder(1).buffers(ByteBuffer.allocate(1)))
            .getMessage());
  }

  @Test
  void buffersStartAtPosition() {
    ByteBuffer all = ByteBuffer.allocateDirect(16).order(ByteOrder.nativeOrder());
    all.putInt(1).putInt(7);
    ByteBuffer second = all.duplicate().order(ByteOrder.nativeOrder()).position(4);
    try (Array array = new ArrayBuilder(1).buffers(all.flip(), second).build(null)) {
      assertEquals(1, new Pointer(array.buffers()[0]).getInt(0));
      assertEquals(7, new Pointer(array.buffers()[1]).getInt(0));
      assertEquals(4, second.position());
    }
  }

  @Test
  void buffersRejectsOtherByteOrder() {
    ByteOrder other =
        ByteOrder.nativeOrder() == ByteOrder.BIG_ENDIAN
            ? ByteOrder.LITTLE_ENDIAN
            : ByteOrder.BIG_ENDIAN;
    ByteBuffer swapped = ByteBuffer.allocateDirect(8).order(other);
    assertEquals(
        "buffer 1: byte order "
            + other
            + ": expected ByteOrder.nativeOrder(); hint: set the order"
            + " before the values, and again after slice or duplicate",
        assertThrows(
                IllegalArgumentException.class, () -> new ArrayBuilder(1).buffers(null, swapped))
            .getMessage());
  }

  @Test
  void lambdaIsClosedWithStruct() {
    List<String> closed = new ArrayList<>();
    Array array = new ArrayBuilder(1).build(() -> closed.add("array"));
    array.attach(() -> closed.add("attached"));
    array.close();
    DeviceType cpu = DeviceType.CPU;
    new ArrayBuilder(1).buildOn(cpu, -1, 0, () -> closed.add("device array")).close();
    Schema schema = new SchemaBuilder("i").build();
    schema.attach(() -> closed.add("schema"));
    schema.close();
    assertEquals(List.of("array", "attached", "device array", "schema"), closed);
  }
}
