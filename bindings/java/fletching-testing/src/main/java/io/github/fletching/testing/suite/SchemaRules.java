// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static io.github.fletching.testing.suite.ArrayRules.assertInvalid;
import static io.github.fletching.testing.suite.Raw.assertClosed;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import com.sun.jna.Memory;
import com.sun.jna.Pointer;
import io.github.fletching.Metadata;
import io.github.fletching.Schema;
import io.github.fletching.SchemaBuilder;
import io.github.fletching.Shared;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;

/** The rules about schemas and metadata. */
public abstract class SchemaRules {
  private final Foreign foreign = new Foreign();

  static Raw exported(SchemaBuilder builder) {
    Raw raw = Raw.schema();
    builder.build().moveTo(raw.address());
    return raw;
  }

  /** Two columns: a leaf, and a struct of a leaf with a dictionary. */
  static SchemaBuilder tree() {
    return tree(new SchemaBuilder("c").name("d").dictionary(new SchemaBuilder("u")));
  }

  private static SchemaBuilder tree(SchemaBuilder deepest) {
    return new SchemaBuilder("+s")
        .child(new SchemaBuilder("i").name("a"))
        .child(new SchemaBuilder("+s").name("b").child(deepest));
  }

  private static void assertRefused(SchemaBuilder deepest, String text) {
    assertInvalid("schema builder: child 1: child 0: " + text, () -> tree(deepest).build().close());
  }

  private static void eachExported(Consumer<Raw> visitor) {
    Raw raw = exported(tree());
    raw.each(visitor);
    raw.release();
  }

  @Test
  void ruleSchemaFormatSet() {
    assertRefused(new SchemaBuilder(""), "format: empty: expected a format string");
    assertRefused(
        new SchemaBuilder("c").dictionary(new SchemaBuilder("")),
        "dictionary: format: empty: expected a format string");
    eachExported(each -> assertNotEquals("", each.text("format")));
  }

  private static void assertText(String expected, String field, SchemaBuilder builder) {
    Raw raw = exported(builder);
    byte[] bytes = expected.getBytes(StandardCharsets.UTF_8);
    assertArrayEquals(bytes, new Pointer(raw.get(field)).getByteArray(0, bytes.length));
    assertEquals(0, new Pointer(raw.get(field)).getByte(bytes.length));
    raw.release();
  }

  /** A lone surrogate has no UTF-8; Java would write a question mark. */
  @Test
  void ruleSchemaFormatUtf8() {
    assertRefused(new SchemaBuilder("i\0"), "format: NUL character: expected text without it");
    assertText("tsu:\u00e9123", "format", new SchemaBuilder("tsu:\u00e9123"));
    assertRefused(new SchemaBuilder("tsu:\ud800"), "format: lone surrogate: expected Unicode text");
  }

  @Test
  void ruleSchemaNameUtf8() {
    assertRefused(
        new SchemaBuilder("i").name("a\0b"), "name: NUL character: expected text without it");
    assertText("\u00e9567890", "name", new SchemaBuilder("i").name("\u00e9567890"));
    assertRefused(
        new SchemaBuilder("i").name("a\udc00"), "name: lone surrogate: expected Unicode text");
  }

  @Test
  void ruleSchemaNameNullAccepted() {
    for (long name : new long[] {0, foreign.text("")}) {
      try (Schema schema = Schema.wrap(foreign.schema("x").set("name", name).address())) {
        assertEquals("", schema.name());
        assertFalse(schema.view().isReleased());
      }
    }
  }

  @Test
  void ruleSchemaMetadataNullWhenAbsent() {
    Raw raw = exported(new SchemaBuilder("i").metadata(Metadata.EMPTY));
    assertEquals(0, raw.get("metadata"));
    raw.release();
    eachExported(each -> assertEquals(0, each.get("metadata")));
  }

  @Test
  void ruleSchemaFlagsZeroWhenAbsent() {
    eachExported(each -> assertEquals(0, each.get("flags")));
  }

  /** Also bits that have no meaning yet. */
  @Test
  void ruleSchemaFlagsPropagated() {
    long unknown = 1L << 40;
    SchemaBuilder builder =
        new SchemaBuilder("+s").flags(unknown).child(new SchemaBuilder("i").flags(unknown | 2));
    try (Schema first = builder.build();
        Shared<Schema> shared = first.view().toBuilder().build().share();
        Schema all = shared.view();
        Schema column = shared.column(0)) {
      assertEquals(unknown, all.flags());
      assertEquals(unknown | 2, column.flags());
    }
  }

  @Test
  void ruleSchemaNChildrenSet() {
    Raw raw = exported(tree());
    assertEquals(2, raw.get("n_children"));
    assertEquals(0, raw.child(0).get("n_children"));
    assertEquals(1, raw.child(1).get("n_children"));
    raw.release();
  }

  @Test
  void ruleSchemaChildrenCount() {
    eachExported(each -> assertNotEquals(0, each.address()));
  }

  @Test
  void ruleSchemaChildrenNullOnlyWhenNone() {
    Raw raw = exported(tree());
    ArrayRules.assertChildrenNullOnlyWhenNone(raw);
    raw.release();
  }

  @Test
  void ruleSchemaDictionaryNullOtherwise() {
    eachExported(
        each -> assertEquals(each.text("format").equals("c"), each.get("dictionary") != 0));
  }

  @Test
  void ruleSchemaReleaseSet() {
    Raw raw = exported(tree());
    ArrayRules.assertReleaseSet(5, raw);
    raw.release();
  }

  @Test
  void ruleSchemaPrivateDataUntouched() {
    long[] found = {0};
    Raw raw = Raw.schema().set("format", foreign.text("i"));
    Foreign.arm(raw, true, self -> found[0] = self.get("private_data"));
    long expected = raw.get("private_data");
    Schema schema = Schema.wrap(raw.address());
    schema.attach("an object");
    Schema view;
    try (Shared<Schema> shared = schema.share()) {
      view = shared.view();
    }
    assertEquals("i", view.format());
    assertEquals(0, found[0]);
    view.close();
    assertEquals(expected, found[0]);
  }

  // --- Metadata

  private static byte[] block(int... numbers) {
    ByteBuffer block = ByteBuffer.allocate(4 * numbers.length).order(ByteOrder.nativeOrder());
    for (int number : numbers) {
      block.putInt(number);
    }
    return block.array();
  }

  @Test
  void ruleMetadataEncoding() {
    Map.of(
            "number of pairs at byte 0: negative: expected 0 or more, got -1", block(-1),
            "length of key 0 at byte 4: negative: expected 0 or more, got -5", block(1, -5),
            "length of value 0 at byte 8: negative: expected 0 or more, got -2147483648",
                block(1, 0, Integer.MIN_VALUE))
        .forEach(this::assertMalformed);
    Metadata pairs = Metadata.EMPTY.with("k", "").with(new byte[0], new byte[] {-1});
    byte[] expected =
        ByteBuffer.allocate(22)
            .order(ByteOrder.nativeOrder())
            .putInt(2)
            .putInt(1)
            .put((byte) 'k')
            .putInt(0)
            .putInt(0)
            .putInt(1)
            .put((byte) -1)
            .array();
    Raw raw = exported(new SchemaBuilder("i").metadata(pairs));
    assertArrayEquals(expected, new Pointer(raw.get("metadata")).getByteArray(0, expected.length));
    raw.release();
  }

  private void assertMalformed(String text, byte[] block) {
    Raw raw = foreign.schema("x");
    Memory memory = foreign.keep(new Memory(block.length));
    memory.write(0, block, 0, block.length);
    raw.set("metadata", Pointer.nativeValue(memory));
    try (Schema schema = Schema.wrap(raw.address())) {
      assertInvalid("metadata: " + text, schema::metadata);
    }
    assertClosed(foreign.log, "x");
    assertInvalid("metadata: " + text, () -> Metadata.decode(block));
  }

  @Test
  void ruleMetadataNativeEndian() {
    byte[] block = Metadata.EMPTY.with("key", "").encode();
    assertEquals(3, ByteBuffer.wrap(block).order(ByteOrder.nativeOrder()).getInt(4));
  }

  @Test
  void ruleMetadataNotNulTerminated() {
    Metadata pairs = Metadata.EMPTY.with("a\0b", "v").with("k", "a\0b");
    assertEquals(pairs, Metadata.decode(pairs.encode()));
    try (Schema schema = new SchemaBuilder("i").metadata(pairs).build()) {
      assertEquals("a\0b", schema.metadata().text("k").orElseThrow());
      assertEquals(pairs, schema.metadata());
    }
  }
}
