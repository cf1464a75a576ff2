// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static io.github.fletching.testing.suite.Raw.assertClosed;
import static io.github.fletching.testing.suite.Raw.assertInvalid;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.fletching.Array;
import io.github.fletching.ArrayBuilder;
import io.github.fletching.ArrayView;
import io.github.fletching.Metadata;
import io.github.fletching.Schema;
import io.github.fletching.SchemaBuilder;
import io.github.fletching.SchemaView;
import io.github.fletching.Shared;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.LongFunction;
import java.util.function.Supplier;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** Trees with children and dictionaries at every level: built, viewed, shared, taken apart. */
@ExtendWith(LeakCheck.class)
class TreesTest {
  private static final int LEVELS = 3;
  private static final String TOO_DEEP = "nested too deep: expected at most 256 levels";

  private final ForeignStructs foreign = new ForeignStructs();

  // --- Shapes. Struct n has children 4n + 1 and 4n + 2 and dictionary 4n + 3.

  private static long[] buffers(long id) {
    return LongStream.range(0, id % 3).map(i -> id * 0x1000 + i).toArray();
  }

  private static ArrayBuilder array(long id, int levels) {
    ArrayBuilder array = new ArrayBuilder(id).nullCount(id / 2).offset(id + 7).buffers(buffers(id));
    return levels == 0
        ? array
        : array
            .child(array(4 * id + 1, levels - 1))
            .child(array(4 * id + 2, levels - 1))
            .dictionary(array(4 * id + 3, levels - 1));
  }

  private static void assertArray(long id, int levels, ArrayView view) {
    assertEquals(id, view.length());
    assertEquals(id / 2, view.nullCount());
    assertEquals(id + 7, view.offset());
    assertArrayEquals(buffers(id), view.buffers());
    assertEquals(levels == 0 ? 0 : 2, view.childCount());
    assertEquals(levels == 0, view.dictionary().isReleased());
    if (levels > 0) {
      assertArray(4 * id + 1, levels - 1, view.child(0));
      assertArray(4 * id + 2, levels - 1, view.child(1));
      assertArray(4 * id + 3, levels - 1, view.dictionary());
    }
  }

  private static SchemaBuilder schema(long id, int levels) {
    SchemaBuilder schema =
        new SchemaBuilder("f" + id)
            .name(id % 2 == 0 ? "" : "name " + id)
            .flags(id)
            .metadata(id % 3 == 0 ? Metadata.EMPTY : Metadata.EMPTY.with("key", "" + id));
    return levels == 0
        ? schema
        : schema
            .child(schema(4 * id + 1, levels - 1))
            .child(schema(4 * id + 2, levels - 1))
            .dictionary(schema(4 * id + 3, levels - 1));
  }

  private static void assertSchema(long id, int levels, SchemaView view) {
    assertEquals("f" + id, view.format());
    assertEquals(id % 2 == 0 ? "" : "name " + id, view.name());
    assertEquals(id, view.flags());
    assertEquals(id % 3 == 0 ? "" : "" + id, view.metadata().text("key").orElse(""));
    assertEquals(levels == 0 ? 0 : 2, view.childCount());
    assertEquals(levels == 0, view.dictionary().isReleased());
    if (levels > 0) {
      assertSchema(4 * id + 1, levels - 1, view.child(0));
      assertSchema(4 * id + 2, levels - 1, view.child(1));
      assertSchema(4 * id + 3, levels - 1, view.dictionary());
    }
  }

  @Test
  void arrayKeepsShape() {
    Array array = array(1, LEVELS).build(null);
    assertArray(1, LEVELS, array.view());
    assertArray(6, LEVELS - 1, array.child(1));
    assertArray(7, LEVELS - 1, array.dictionary());
    try (Shared<Array> shared = array.share();
        Array all = shared.view();
        Array column = shared.column(1);
        Array taken = all.takeChild(1);
        Array values = all.takeDictionary()) {
      assertArray(6, LEVELS - 1, column.view());
      assertArray(6, LEVELS - 1, taken.view());
      assertArray(7, LEVELS - 1, values.view());
      assertArray(5, LEVELS - 1, all.child(0));
      try (Array again = shared.view()) {
        assertArray(1, LEVELS, again.view());
      }
    }
  }

  @Test
  void schemaKeepsShape() {
    Schema schema = schema(1, LEVELS).build();
    try (Schema copy = schema.view().toBuilder().build()) {
      assertSchema(1, LEVELS, copy.view());
    }
    assertEquals(1, schema.flags());
    assertEquals("name 1", schema.name());
    assertEquals(2, schema.childCount());
    assertSchema(6, LEVELS - 1, schema.child(1));
    assertSchema(7, LEVELS - 1, schema.dictionary());
    try (Shared<Schema> shared = schema.share();
        Schema all = shared.view();
        Schema column = shared.column(1);
        Schema taken = all.takeChild(1);
        Schema values = all.takeDictionary()) {
      assertSchema(6, LEVELS - 1, column.view());
      assertSchema(6, LEVELS - 1, taken.view());
      assertSchema(7, LEVELS - 1, values.view());
      assertSchema(5, LEVELS - 1, all.child(0));
      assertTrue(all.child(1).isReleased());
      assertTrue(all.dictionary().isReleased());
    }
  }

  @Test
  void settersReturnBuilder() {
    ArrayBuilder array = new ArrayBuilder(1);
    assertSame(array, array.nullCount(0));
    assertSame(array, array.offset(0));
    assertSame(array, array.buffers(1, 2));
    assertSame(array, array.buffers((ByteBuffer) null));
    assertSame(array, array.child(new ArrayBuilder(0)));
    assertSame(array, array.dictionary(new ArrayBuilder(0)));
    SchemaBuilder schema = new SchemaBuilder("i");
    assertSame(schema, schema.format("+s"));
    assertSame(schema, schema.name("a"));
    assertSame(schema, schema.flags(2));
    assertSame(schema, schema.metadata(Metadata.EMPTY));
    assertSame(schema, schema.child(new SchemaBuilder("i")));
    assertSame(schema, schema.dictionary(new SchemaBuilder("i")));
  }

  @Test
  void childRejectsIndexOutOfRange() {
    try (Array array = array(1, 1).build(null);
        Schema schema = schema(1, 1).build()) {
      for (int index : new int[] {Integer.MIN_VALUE, -1, 2, Integer.MAX_VALUE}) {
        String text = "child " + index + ": no such child: expected an index below 2";
        for (Consumer<Integer> child : List.<Consumer<Integer>>of(array::child, schema::child)) {
          assertEquals(
              text,
              assertThrows(IndexOutOfBoundsException.class, () -> child.accept(index))
                  .getMessage());
        }
        assertInvalid("takeChild: " + text, () -> array.takeChild(index));
        assertInvalid("takeChild: " + text, () -> schema.takeChild(index));
      }
    }
  }

  // --- Limits

  private static ArrayBuilder above(ArrayBuilder array, boolean isChild) {
    ArrayBuilder above = new ArrayBuilder(0);
    return isChild ? above.child(array) : above.dictionary(array);
  }

  private static SchemaBuilder above(SchemaBuilder schema, boolean isChild) {
    SchemaBuilder above = new SchemaBuilder("+s");
    return isChild ? above.child(schema) : above.dictionary(schema);
  }

  @Test
  void buildRejectsMoreThan256Levels() {
    for (boolean isChild : new boolean[] {true, false}) {
      ArrayBuilder array = new ArrayBuilder(0);
      SchemaBuilder schema = new SchemaBuilder("i");
      for (int level = 1; level < 256; level++) {
        array = above(array, isChild);
        schema = above(schema, isChild);
      }
      try (Shared<Array> shared = array.build(null).share()) {
        shared.view().close();
      }
      try (Schema built = schema.build()) {
        built.view().toBuilder().build().close();
      }
      ArrayBuilder deep = above(array, isChild);
      assertInvalid("ArrayBuilder: " + TOO_DEEP, () -> deep.build(null));
      String path = (isChild ? "child 0: " : "dictionary: ").repeat(256);
      assertInvalid("SchemaBuilder: " + path + TOO_DEEP, above(schema, isChild)::build);
    }
  }

  /** Returns a foreign struct with 257 levels, whose release releases only the leaf. */
  private Raw deep(Supplier<Raw> make, String field, Raw leaf) {
    boolean isList = field.equals("children");
    Raw raw = leaf;
    for (int level = 1; level <= 256; level++) {
      Raw above = foreign.keep(make.get()).set("n_children", isList ? 1 : 0);
      above.set(field, isList ? foreign.longs(raw.address()) : raw.address());
      raw = ForeignStructs.arm(above, leaf.isSchema(), self -> {});
    }
    return ForeignStructs.arm(raw, leaf.isSchema(), self -> leaf.release());
  }

  @Test
  void viewRejectsTooDeepForeignArray() {
    for (String field : List.of("children", "dictionary")) {
      Raw raw = deep(Raw::array, field, foreign.array("leaf", 0, false));
      try (Shared<Array> shared = raw.give(Array::wrap).share()) {
        assertInvalid("view: the struct or a descendant is " + TOO_DEEP, shared::view);
        if (field.equals("children")) {
          shared.column(0).close(); // exactly 256 levels
        }
      }
      assertClosed(foreign.log, "leaf");
    }
  }

  @Test
  void toBuilderRejectsTooDeepForeignSchema() {
    for (String field : List.of("children", "dictionary")) {
      Supplier<Raw> make = () -> Raw.schema().set("format", foreign.text("+s"));
      Raw raw = deep(make, field, foreign.schema("leaf"));
      try (Schema schema = raw.give(Schema::wrap)) {
        String text = "toBuilder: the struct or a descendant is " + TOO_DEEP;
        assertInvalid(text, schema.view()::toBuilder);
        SchemaView below = field.equals("children") ? schema.child(0) : schema.dictionary();
        below.toBuilder().build().close();
      }
      assertClosed(foreign.log, "leaf");
    }
  }

  // --- Malformed structs

  /** The structs after the malformed struct, a second child and a dictionary, are well formed. */
  @Test
  void viewRejectsOneMalformedStruct() {
    Raw parent = foreign.array("a", 2, true);
    parent.child(0).release();
    try (Shared<Array> shared = parent.give(Array::wrap).share()) {
      String text = ": the struct or a descendant is released or moved out";
      assertInvalid("view" + text, shared::view);
      assertInvalid("column" + text, () -> shared.column(0));
      assertEquals(2, shared.columnCount());
      shared.column(1).close();
    }
    assertClosed(foreign.log, "a0", "a1", "ad", "a");

    for (long count : new long[] {-1, (1L << 22) + 1, Long.MIN_VALUE}) {
      Raw raw = foreign.array("b", 2, true);
      raw.child(0).set("n_children", count);
      Raw child = raw.child(0);
      String text = "has n_children out of range: expected 0 to 4194304, got " + count;
      try (Shared<Array> shared = raw.give(Array::wrap).share()) {
        assertInvalid("view: the struct or a descendant " + text, shared::view);
        child.set("n_children", 0);
        shared.view().close();
      }
      assertClosed(foreign.log, "b0", "b1", "bd", "b");
    }

    Raw without = foreign.array("c", 2, true);
    Raw child = without.child(0);
    child.set("n_children", 5);
    try (Shared<Array> shared = without.give(Array::wrap).share()) {
      assertInvalid(
          "view: the struct or a descendant has children NULL: expected a list of 5", shared::view);
      child.set("n_children", 1).set("children", foreign.longs(0));
      assertInvalid("view: the struct or a descendant is NULL", shared::view);
      child.set("n_children", 0);
    }
    assertClosed(foreign.log, "c0", "c1", "cd", "c");
  }

  @Test
  void toBuilderRejectsNonUtf8Text() {
    for (String field : List.of("format", "name")) {
      Raw raw = foreign.schema("x");
      raw.set(field, foreign.bytes('a', 0xFF, 0));
      try (Schema schema = raw.give(Schema::wrap)) {
        assertEquals("a\uFFFD", field.equals("name") ? schema.name() : schema.format());
        String at = field.equals("name") ? "field \"a\uFFFD\"" : "field \"x\"";
        assertInvalid(
            "toBuilder: " + at + ": " + field + ": expected UTF-8", schema.view()::toBuilder);
      }
      assertClosed(foreign.log, "x");
    }
  }

  // --- Adjacent structs in memory are unchanged

  /**
   * Creates owners with the lengths 0 to 199, some of them adjacent in memory, and changes every
   * other one.
   */
  private static void assertApart(LongFunction<Array> make, Consumer<Array> use) {
    List<Array> arrays = new ArrayList<>();
    for (long length = 0; length < 200; length++) {
      arrays.add(make.apply(length));
    }
    for (int i = 0; i < 200; i += 2) {
      use.accept(arrays.get(i));
    }
    for (int i = 1; i < 200; i += 2) {
      assertEquals(i, arrays.get(i).length());
      assertEquals(i / 2, arrays.get(i).nullCount());
      assertEquals(i + 7, arrays.get(i).offset());
      arrays.get(i).close();
    }
  }

  @Test
  void viewDoesNotChangeOtherArrays() {
    List<Array> views = new ArrayList<>();
    assertApart(
        id -> array(id, 0).build(null),
        each -> {
          try (Shared<Array> shared = each.share()) {
            views.add(shared.view());
          }
        });
    for (int i = 0; i < views.size(); i++) {
      assertArray(2L * i, 0, views.get(i).view());
      views.get(i).close();
    }
  }
}
