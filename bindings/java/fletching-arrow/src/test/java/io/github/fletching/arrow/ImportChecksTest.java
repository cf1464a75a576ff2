// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.arrow;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.fletching.Array;
import io.github.fletching.ArrayBuilder;
import io.github.fletching.ArrayStream;
import io.github.fletching.Schema;
import io.github.fletching.SchemaBuilder;
import java.io.IOException;
import java.math.BigDecimal;
import java.util.List;
import org.apache.arrow.c.CDataDictionaryProvider;
import org.apache.arrow.memory.ArrowBuf;
import org.apache.arrow.vector.DecimalVector;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.ArrowReader;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Arrays that do not match their schema: arrow-java reads several of them without an error. */
class ImportChecksTest extends ImportFixture {
  private static SchemaBuilder type(String format, SchemaBuilder... children) {
    SchemaBuilder type = new SchemaBuilder(format);
    for (SchemaBuilder child : children) {
      type.child(child);
    }
    return type;
  }

  private static SchemaBuilder named(String name, String format, SchemaBuilder... children) {
    return type(format, children).name(name);
  }

  private ArrayBuilder array(int buffers, ArrayBuilder... children) {
    long[] addresses = new long[buffers];
    for (int i = 1; i < buffers; i++) {
      addresses[i] = at;
    }
    ArrayBuilder array = new ArrayBuilder(2).buffers(addresses);
    for (ArrayBuilder child : children) {
      array.child(child);
    }
    return array;
  }

  @Test
  void importRejectsWrongBufferCount() {
    String[] two = {"c", "L", "b", "e", "g", "tdD", "ttn", "tsu:", "tDs", "tin", "w:4", "d:9,2"};
    for (String format : two) {
      assertRefused("top level: n_buffers is wrong: expected 2, got 3", type(format), array(3));
      assertRefused("top level: n_buffers is wrong: expected 2, got 1", type(format), array(1));
    }
    for (String format : new String[] {"u", "U", "z", "Z"}) {
      assertRefused("top level: n_buffers is wrong: expected 3, got 2", type(format), array(2));
      assertRefused("top level: n_buffers is wrong: expected 3, got 4", type(format), array(4));
    }
    for (String format : new String[] {"vu", "vz"}) {
      assertRefused(
          "top level: n_buffers is wrong: expected at least 3, got 2 (rule"
              + " array.view-sizes-buffer)",
          type(format),
          array(2));
    }
    assertRefused("top level: n_buffers is wrong: expected 0, got 1", type("n"), array(1));
    assertRefused(
        "top level: n_buffers is wrong: expected 0, got 1",
        type("+r", type("s"), type("i")),
        array(1, column(), column()));
  }

  @Test
  void importErrorNamesNestedFieldPath() {
    SchemaBuilder items = named("items", "+l", named("item", "l"));
    assertRefused(
        "importVector: field \"a.items.item\": n_buffers is wrong: expected 2, got 3",
        named("a", "+s", items),
        array(1, array(2, array(3))));
    assertRefused(
        "importVector: field \"a.[1]\": buffers[1] is NULL: length is 2, null_count is 0",
        named("a", "+s", type("i"), type("i")),
        array(1, column(), new ArrayBuilder(2).buffers(0, 0)));
    try (CDataDictionaryProvider provider = new CDataDictionaryProvider()) {
      assertRefused(
          "importVector: field \"a.dictionary\": n_buffers is wrong: expected 3, got 2",
          named("a", "i").dictionary(type("u")),
          column().dictionary(column()),
          provider);
    }
  }

  @Test
  void importRejectsWrongChildCount() {
    String text = "top level: n_children is wrong: expected ";
    assertRefused(text + "1, got 0", type("+l", type("i")), array(2));
    assertRefused(text + "2, got 0", table(2), array(1));
    assertRefused(text + "0, got 1", table(0), array(1, column()));
    assertRefused(text + "0, got 1", type("i"), array(2, column()));
    text = "top level: n_children of the schema is wrong: expected ";
    assertRefused(text + "1, got 2", type("+l", type("i"), type("i")), array(2));
    assertRefused(text + "0, got 1", type("i", type("i")), column());
    assertRefused(text + "2, got 1", type("+us:0,1", type("i")), new ArrayBuilder(2).buffers(at));
    assertRefused(
        "field \"[0]\": child of a map: expected a struct of two children, got +s with 1",
        type("+m", type("+s", type("i"))),
        array(2, array(1, column())));
  }

  @Test
  void importRejectsChildShorterThanParent() {
    String text = "length is too small for the parent: expected at least ";
    ArrayBuilder one = new ArrayBuilder(1).buffers(0, at);
    assertRefused("field \"column 0\": " + text + "2, got 1", table(1), array(1, one));
    assertRefused(
        "field \"[0]\": " + text + "6, got 2", type("+w:3", type("i")), array(1, column()));
  }

  /** arrow-java reads both as 16-byte decimals. */
  @ParameterizedTest
  @ValueSource(strings = {"d:4,1,32", "d:4,1,64"})
  void importRejects32And64BitDecimals(String format) {
    String text =
        "field \"x\": format: not supported by arrow-java: expected a decimal of 128 or 256 bits,"
            + " got ";
    assertRefused("importField: " + text + format, named("x", format), column());
    Schema schema = type("+s", named("x", format)).build();
    assertError(
        EINVAL,
        "importSchema: " + text + format,
        () -> ArrowData.importSchema(allocator, schema, null));
  }

  @Test
  void importReadsNegativeDecimalScale() {
    try (ArrowBuf values = allocator.buffer(16)) {
      values.setLong(0, 1001);
      values.setLong(8, 0);
      Array array = new ArrayBuilder(1).buffers(0, values.memoryAddress()).build(null);
      try (FieldVector found =
          ArrowData.importVector(allocator, array, type("d:5,-3").build(), null)) {
        assertEquals(new BigDecimal("1001000"), bigDecimal((DecimalVector) found));
      }
    }
  }

  private static BigDecimal bigDecimal(DecimalVector vector) {
    return vector.getObject(0).setScale(0);
  }

  /** arrow-java reads each as some other type, or throws without naming the field. */
  @ParameterizedTest
  @ValueSource(
      strings = {
        "+",
        "+v",
        "+w",
        "+u",
        "+vx",
        "+lx",
        "+sx",
        "+w:-1",
        "+w:2147483648",
        "w:-1",
        "w:1,2",
        "+us",
        "+ud",
        "tsn",
        "tss:'UTC'",
        "tss:\"UTC\"",
        "+ud:0,0",
        "+us:-1",
        "+us:128",
        "+us:0,",
        "d:0,10",
        "d:39,10",
        "d:10,4,33",
        "d:10,4,32",
        "d:19,4,64",
        "d:77,4,256",
        "d:19,10,512",
        "d:38",
        "d:38,10,"
      })
  void importRejectsMalformedFormat(String format) {
    for (SchemaBuilder builder : List.of(named("x", format), type("+l", named("x", format)))) {
      Schema schema = builder.build();
      assertError(
          EINVAL,
          "importField: field \"x\": format: ",
          () -> ArrowData.importField(allocator, schema, null));
      assertTrue(schema.isReleased());
    }
  }

  @Test
  void importAcceptsFormatParameters() {
    for (String format :
        new String[] {"w:0", "+w:0", "tsu:+01:00", "d:9,2", "d:38,39", "d:76,1,256", "+us:0,127"}) {
      SchemaBuilder builder = type(format);
      for (int i = 0; i < (format.startsWith("+w") ? 1 : format.startsWith("+u") ? 2 : 0); i++) {
        builder.child(named("x" + i, i == 0 ? "i" : "g"));
      }
      ArrowData.importField(allocator, builder.build(), null);
    }
  }

  @Test
  void importRejectsOldUnionLayout() {
    SchemaBuilder dense = type("+ud:0", type("i"));
    assertRefused(
        "top level: n_buffers is wrong: union layout before Arrow 1.0: expected 2, got 3",
        dense,
        array(3, column()));
    SchemaBuilder sparse = type("+us:0", type("i"));
    assertRefused(
        "top level: n_buffers is wrong: union layout before Arrow 1.0: expected 1, got 2",
        sparse,
        array(2, column()));
  }

  @Test
  void importRejectsUnexpectedNulls() {
    String text = "null_count is wrong: expected 0, got 1";
    SchemaBuilder union = type("+ud:0", type("i"));
    assertRefused("top level: " + text, union, array(2, column()).nullCount(1));
    SchemaBuilder runs = type("+r", named("run_ends", "i"), named("values", "i"));
    assertRefused("top level: " + text, runs, array(0, column(), column()).nullCount(1));
    ArrayBuilder nulls = new ArrayBuilder(2).buffers(at, at).nullCount(1);
    assertRefused("field \"run_ends\": " + text, runs, array(0, nulls, column()));
    SchemaBuilder entries = named("entries", "+s", named("key", "i"), named("value", "i"));
    assertRefused(
        "field \"entries.key\": " + text, type("+m", entries), array(2, array(1, nulls, nulls)));
  }

  @Test
  void importRejectsMismatchedDictionary() {
    SchemaBuilder encoded = named("x", "i").dictionary(type("i"));
    try (CDataDictionaryProvider provider = new CDataDictionaryProvider()) {
      assertRefused("field \"x\": dictionary is NULL: expected one", encoded, column(), provider);
      assertRefused(
          "field \"x\": format: expected an integer for the indices, got u",
          named("x", "u").dictionary(type("i")),
          array(3).dictionary(column()),
          provider);
    }
    assertRefused(
        "field \"x\": dictionary: expected a provider for it, got null",
        encoded,
        column().dictionary(column()));
  }

  @Test
  void importIntoRootRejectsMismatchedBatch() {
    var type = ArrowData.importSchema(allocator, table(1).build(), null);
    try (VectorSchemaRoot root = VectorSchemaRoot.create(type, allocator)) {
      Array batch = array(1, array(3)).build(counted());
      assertError(
          EINVAL,
          "importIntoVectorSchemaRoot: field \"column 0\": n_buffers is wrong: expected 2, got 3",
          () -> ArrowData.importIntoVectorSchemaRoot(allocator, batch, root, null));
      assertEquals(1, releases.get());
      Array good = array(1, column()).build(counted());
      ArrowData.importIntoVectorSchemaRoot(allocator, good, root, null);
      assertEquals("column 0\n1\n2\n", root.contentToTSVString());
    }
    assertEquals(2, releases.get());
  }

  @Test
  void readerRejectsMalformedBatch() throws IOException {
    Array batch = array(1, new ArrayBuilder(2).buffers(0, 0)).build(counted());
    ArrayStream stream = ArrayStream.of(table(1).build(), List.of(batch).iterator());
    try (ArrowReader reader = ArrowData.importArrayStream(allocator, stream)) {
      IOException thrown = assertThrows(IOException.class, reader::loadNextBatch);
      assertEquals(
          "loadNextBatch: field \"column 0\": buffers[1] is NULL: length is 2, null_count is 0 (rule"
              + " array.buffers-null-only-when)",
          thrown.getMessage());
    }
    assertEquals(1, releases.get());
  }

  @Test
  void importRejectsTooManyValues() {
    assertRefused(
        "field \"x\": length: not supported by arrow-java: expected at most 2147483647, got"
            + " 2147483648",
        named("x", "i"),
        new ArrayBuilder(1L << 31).buffers(0, at));
    assertRefused(
        "field \"x\": offset + length are more than memory can hold",
        named("x", "i"),
        new ArrayBuilder(Long.MAX_VALUE / 4).buffers(0, at));
  }

  /** arrow-java computes buffer sizes from them. */
  @Test
  void importRejectsWrongOffsetsAndSizes() {
    String[][] cases = {
      {"u", "-1 to 2"},
      {"z", "3 to 2"},
      {"U", "-1 to 2"},
      {"Z", "3 to 2"},
      {"+l", "0 to 3"},
      {"+L", "0 to 3"},
      {"+m", "-1 to 2"}
    };
    try (ArrowBuf offsets = allocator.buffer(24)) {
      for (String[] each : cases) {
        boolean large = Character.isUpperCase(each[0].charAt(each[0].length() - 1));
        String[] ends = each[1].split(" to ");
        for (int i = 0; i < 2; i++) {
          long index = i == 0 ? 0 : 2;
          if (large) {
            offsets.setLong(8 * index, Long.parseLong(ends[i]));
          } else {
            offsets.setInt(4 * index, Integer.parseInt(ends[i]));
          }
        }
        SchemaBuilder item = each[0].equals("+m") ? type("+s", type("i"), type("i")) : type("i");
        ArrayBuilder below = each[0].equals("+m") ? array(1, column(), column()) : column();
        boolean text = !each[0].startsWith("+");
        assertRefused(
            "top level: offsets: expected 0 or more, ascending, up to the length of the child, got "
                + each[1],
            text ? type(each[0]) : type(each[0], item),
            text
                ? new ArrayBuilder(2).buffers(0, offsets.memoryAddress(), at)
                : new ArrayBuilder(2).buffers(0, offsets.memoryAddress()).child(below));
      }
      offsets.setLong(0, -8);
      assertRefused(
          "top level: size of variadic buffer 0: expected 0 or more, got -8",
          type("vu"),
          new ArrayBuilder(1).buffers(0, at, at, offsets.memoryAddress()));
    }
  }
}
