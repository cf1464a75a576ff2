// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.arrow;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.fletching.ArrayStream;
import io.github.fletching.Metadata;
import io.github.fletching.Schema;
import io.github.fletching.SchemaBuilder;
import io.github.fletching.abi.LayoutClass;
import io.github.fletching.abi.Offsets;
import io.github.fletching.abi.StructOffsets;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import org.apache.arrow.c.CDataDictionaryProvider;
import org.apache.arrow.memory.ArrowBuf;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.dictionary.Dictionary;
import org.apache.arrow.vector.dictionary.DictionaryProvider.MapDictionaryProvider;
import org.apache.arrow.vector.ipc.ArrowReader;
import org.apache.arrow.vector.types.TimeUnit;
import org.apache.arrow.vector.types.pojo.ArrowType;
import org.apache.arrow.vector.types.pojo.DictionaryEncoding;
import org.apache.arrow.vector.types.pojo.Field;
import org.apache.arrow.vector.types.pojo.FieldType;
import org.junit.jupiter.api.Test;

/** Names, metadata, flags and dictionaries of fields in both directions. */
class FieldsTest extends ImportFixture {
  private static final long ORDERED = 1;
  private static final long NULLABLE = 2;
  private static final long KEYS_SORTED = 4;
  private static final ArrowType INT = new ArrowType.Int(32, true);

  private static Field field(
      String name, ArrowType type, Map<String, String> metadata, Field... children) {
    return new Field(name, new FieldType(true, type, null, metadata), List.of(children));
  }

  private static Field field(String name, ArrowType type, Field... children) {
    return field(name, type, Map.of(), children);
  }

  private static Metadata metadata(String key, int... value) {
    byte[] bytes = new byte[value.length];
    for (int i = 0; i < value.length; i++) {
      bytes[i] = (byte) value[i];
    }
    return Metadata.EMPTY.with(key.getBytes(StandardCharsets.UTF_8), bytes);
  }

  // --- Export

  private void assertNotExported(String text, Field field) {
    assertError(
        EINVAL,
        "exportField: " + text,
        () -> ArrowData.exportField(allocator, field, null).close());
    var schema = new org.apache.arrow.vector.types.pojo.Schema(List.of(field));
    assertError(
        EINVAL,
        "exportSchema: " + text,
        () -> ArrowData.exportSchema(allocator, schema, null).close());
  }

  @Test
  void exportRejectsNulInText() {
    String nul = ": NUL character: expected text without it";
    assertNotExported("field \"a\0b\": name" + nul, field("a\0b", INT));
    assertNotExported(
        "field \"x.[0].a\0\": name" + nul,
        field(
            "x", ArrowType.List.INSTANCE, field("", ArrowType.Struct.INSTANCE, field("a\0", INT))));
    assertNotExported(
        "field \"t\": time zone" + nul,
        field("t", new ArrowType.Timestamp(TimeUnit.SECOND, "UTC\0")));
  }

  @Test
  void exportRejectsLoneSurrogate() {
    String lone = ": lone surrogate: expected Unicode text";
    assertNotExported("field \"a\ud800\": name" + lone, field("a\ud800", INT));
    assertNotExported(
        "field \"x\": metadata: value of \"k\"" + lone, field("x", INT, Map.of("k", "\udc00")));
    assertNotExported(
        "field \"x\": metadata: key \"\ud800\"" + lone, field("x", INT, Map.of("\ud800", "v")));
    var schema = new org.apache.arrow.vector.types.pojo.Schema(List.of(), Map.of("k", "\ud800"));
    assertError(
        EINVAL,
        "exportSchema: top level: metadata: value of \"k\"" + lone,
        () -> ArrowData.exportSchema(allocator, schema, null).close());
  }

  @Test
  void exportRejectsInvalidDictionaryName() {
    DictionaryEncoding encoding = new DictionaryEncoding(7, false, null);
    Field encoded = new Field("x", new FieldType(true, INT, encoding), null);
    Field values = field("v\0", INT);
    try (FieldVector vector = values.createVector(allocator)) {
      MapDictionaryProvider known = new MapDictionaryProvider(new Dictionary(vector, encoding));
      assertError(
          EINVAL,
          "exportField: field \"x.dictionary\": name: NUL character",
          () -> ArrowData.exportField(allocator, encoded, known).close());
    }
  }

  @Test
  void exportNullNameWritesEmptyName() {
    try (Schema schema = ArrowData.exportField(allocator, field(null, INT), null)) {
      assertEquals("", schema.name());
    }
  }

  // --- Import

  private void assertNotImported(String text, SchemaBuilder builder) throws IOException {
    Schema schema = builder.build();
    assertError(
        EINVAL,
        "importField: field \"x\": " + text,
        () -> ArrowData.importField(allocator, schema, null));
    assertTrue(schema.isReleased());
    SchemaBuilder table = new SchemaBuilder("+s").child(builder);
    ArrayStream stream =
        ArrayStream.of(table.build(), List.<io.github.fletching.Array>of().iterator());
    try (ArrowReader reader = ArrowData.importArrayStream(allocator, stream)) {
      IOException thrown = assertThrows(IOException.class, reader::getVectorSchemaRoot);
      assertTrue(
          thrown.getMessage().startsWith("importSchema: field \"x\": " + text), thrown::toString);
    }
  }

  @Test
  void importRejectsNonUtf8Metadata() throws IOException {
    SchemaBuilder x = new SchemaBuilder("i").name("x");
    assertNotImported(
        "metadata: value of \"k\": expected UTF-8", x.metadata(metadata("k", 0xFF, 0xFE)));
    byte[] key = {(byte) 0xFF};
    assertNotImported(
        "metadata: key 0: expected UTF-8", x.metadata(Metadata.EMPTY.with(key, new byte[0])));
  }

  @Test
  void importRejectsDuplicateKey() throws IOException {
    Metadata twice = Metadata.EMPTY.with("k", "1").with("l", "2").with("k", "3");
    assertNotImported(
        "metadata: key \"k\" twice: arrow-java has one value for each",
        new SchemaBuilder("i").name("x").metadata(twice));
  }

  @Test
  void importRejectsNonUtf8Name() {
    StructOffsets struct = Offsets.ARROW_SCHEMA;
    LayoutClass target = LayoutClass.of(8, 8);
    try (ArrowBuf raw = allocator.buffer(struct.size(target));
        ArrowBuf name = allocator.buffer(2)) {
      name.setByte(0, 0xFF);
      name.setByte(1, 0);
      new SchemaBuilder("i").build().moveTo(raw.memoryAddress());
      raw.setLong(struct.offset(target, "name"), name.memoryAddress());
      Schema schema = Schema.wrap(raw.memoryAddress());
      assertError(
          EINVAL,
          "field \"\uFFFD\": name: expected UTF-8",
          () -> ArrowData.importField(allocator, schema, null));
    }
  }

  @Test
  void importExtensionWithoutParametersKeepsName() {
    SchemaBuilder type =
        new SchemaBuilder("z")
            .name("x")
            .metadata(Metadata.EMPTY.with("ARROW:extension:name", "geoarrow.wkb"));
    Field found = ArrowData.importField(allocator, type.build(), null);
    assertEquals(Map.of("ARROW:extension:name", "geoarrow.wkb"), found.getMetadata());
    try (Schema back = ArrowData.exportField(allocator, found, null)) {
      assertEquals("geoarrow.wkb", back.metadata().text("ARROW:extension:name").orElseThrow());
    }
  }

  // --- There and back

  private static SchemaBuilder named(String name, String format, long flags) {
    return new SchemaBuilder(format).name(name).flags(flags);
  }

  @Test
  void importAndExportKeepFlags() {
    SchemaBuilder entries =
        named("entries", "+s", 0).child(named("key", "i", 0)).child(named("value", "i", NULLABLE));
    SchemaBuilder map = named("x", "+m", NULLABLE | KEYS_SORTED).child(entries);
    for (long flags : new long[] {0, NULLABLE}) {
      Field found = ArrowData.importField(allocator, named("x", "i", flags).build(), null);
      try (Schema back = ArrowData.exportField(allocator, found, null)) {
        assertEquals(flags, back.flags());
      }
    }
    Field found = ArrowData.importField(allocator, map.build(), null);
    try (Schema back = ArrowData.exportField(allocator, found, null)) {
      assertEquals(NULLABLE | KEYS_SORTED, back.flags());
      assertEquals(0, back.child(0).child(0).flags());
      assertEquals(NULLABLE, back.child(0).child(1).flags());
    }
  }

  @Test
  void importAndExportKeepDictionaryFlagsAndMetadata() {
    SchemaBuilder values = named("values", "u", NULLABLE).metadata(Metadata.EMPTY.with("k", "v"));
    SchemaBuilder type =
        named("x", "i", NULLABLE | ORDERED)
            .metadata(Metadata.EMPTY.with("a", "b"))
            .dictionary(values);
    try (CDataDictionaryProvider provider = new CDataDictionaryProvider()) {
      Field found = ArrowData.importField(allocator, type.build(), provider);
      assertTrue(found.getDictionary().isOrdered());
      try (Schema back = ArrowData.exportField(allocator, found, provider)) {
        assertEquals(NULLABLE | ORDERED, back.flags());
        assertEquals("b", back.metadata().text("a").orElseThrow());
        assertEquals("values", back.dictionary().name());
        assertEquals(NULLABLE, back.dictionary().flags());
        assertEquals("v", back.dictionary().metadata().text("k").orElseThrow());
      }
    }
  }
}
