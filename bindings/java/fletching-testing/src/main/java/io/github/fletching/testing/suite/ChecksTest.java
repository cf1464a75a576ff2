// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static io.github.fletching.testing.suite.Raw.assertInvalid;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.github.fletching.Array;
import io.github.fletching.ArrayBuilder;
import io.github.fletching.Schema;
import io.github.fletching.SchemaBuilder;
import org.junit.jupiter.api.Test;

/** The errors of {@code check} for schemas and arrays. */
class ChecksTest {
  private static final long AT = 0x1000; // never read

  private static SchemaBuilder type(String format, SchemaBuilder... children) {
    SchemaBuilder type = new SchemaBuilder(format);
    for (SchemaBuilder child : children) {
      type.child(child);
    }
    return type;
  }

  private static ArrayBuilder array(int buffers, ArrayBuilder... children) {
    long[] addresses = new long[buffers];
    for (int i = 1; i < buffers; i++) {
      addresses[i] = AT;
    }
    ArrayBuilder array = new ArrayBuilder(2).buffers(addresses);
    for (ArrayBuilder child : children) {
      array.child(child);
    }
    return array;
  }

  private static void assertFits(SchemaBuilder type, ArrayBuilder array) {
    try (Schema schema = type.build();
        Array built = array.build(null)) {
      schema.check();
      built.check(schema);
    }
  }

  private static void assertRefused(String text, SchemaBuilder type, ArrayBuilder array) {
    try (Schema schema = type.build();
        Array built = array.build(null)) {
      assertInvalid(text, () -> built.check(schema));
    }
  }

  private static void assertRefused(String text, SchemaBuilder type) {
    try (Schema schema = type.build()) {
      assertInvalid(text, schema::check);
    }
  }

  /** Changes a field of a built array in memory, expects the error, and restores the field. */
  private static void assertRefused(String text, ArrayBuilder array, String field, long value) {
    Raw raw = Raw.array();
    array.build(null).moveTo(raw.address());
    long before = raw.get(field);
    raw.set(field, value);
    try (Array changed = raw.give(Array::wrap);
        Schema schema = type("i").build()) {
      Raw moved = Raw.arrayAt(changed.address());
      assertInvalid(text, () -> changed.check(schema));
      moved.set(field, before);
    }
  }

  @Test
  void checkFormatNamesProblem() {
    String unknown = "unknown: expected a format string of the C data interface";
    String[][] cases = {
      {"+", unknown},
      {"+lx", unknown},
      {"tin ", unknown},
      {"+us", unknown},
      {"w:-1", "malformed size: expected a number from 0 to 2147483647 after the colon"},
      {"+w:2147483648", "malformed size: expected a number from 0 to 2147483647 after the colon"},
      {"d:38", "malformed decimal: expected the form 'd:19,10' or 'd:19,10,256'"},
      {"d:38,99999999999", "malformed decimal: expected the form 'd:19,10' or 'd:19,10,256'"},
      {"d:0,10", "precision out of range for the width: expected 1 to 38"},
      {"d:10,4,32", "precision out of range for the width: expected 1 to 9"},
      {"d:9,4,33", "unknown width: expected 32, 64, 128 or 256"},
      {"tsn", "no colon: expected one after the unit, even without a time zone"},
      {"tss:'UTC'", "time zone in quotes: expected it without"},
      {"tsx:", "unknown unit: expected s, m, u or n"},
      {"+us:0,", "malformed type ids: expected numbers from 0 to 127 separated by commas"},
      {"+us:128", "malformed type ids: expected numbers from 0 to 127 separated by commas"},
      {"+ud:0,0", "duplicate type id: expected each once"},
    };
    for (String[] each : cases) {
      String text = ": format: " + each[1] + ", got \"" + each[0] + "\" (rule format.known)";
      assertRefused("top level" + text, type(each[0]));
    }
    String text = ": format: " + unknown + ", got \"x\" (rule format.known)";
    assertRefused("field \"a\"" + text, type("x").name("a"));
    assertRefused(
        "field \"a.[1].dictionary\"" + text,
        type("+s", type("i"), type("i").dictionary(type("x"))).name("a"));
  }

  @Test
  void checkSchemaNamesProblem() {
    assertRefused(
        "field \"e\": child of a map: expected a struct of two children, got +s with 1 (rule"
            + " format.map-child)",
        type("+m", type("+s", type("i")).name("e")));
    for (String ends : new String[] {"S", "c", "u"}) {
      assertRefused(
          "field \"[0]\": format: expected run ends of 16, 32 or 64 bits, got "
              + ends
              + " (rule format.run-end-children)",
          type("+r", type(ends), type("i")));
    }
    assertRefused(
        "top level: format: expected an integer for the indices, got b (rule"
            + " format.dictionary-index-type)",
        type("b").dictionary(type("u")));
    assertRefused(
        "top level: n_children of the schema is wrong: expected 1, got 0 (rule"
            + " schema.n-children-set)",
        type("+l"));
  }

  @Test
  void checkArrayNamesWrongCount() {
    String buffers = "top level: n_buffers is wrong: expected ";
    String rule = " (rule array.n-buffers-of-type)";
    assertRefused(buffers + "2, got 3" + rule, type("l"), array(3));
    assertRefused(buffers + "3, got 2" + rule, type("u"), array(2));
    assertRefused(buffers + "0, got 1" + rule, type("n"), array(1));
    assertRefused(buffers + "at least 3, got 1" + rule, type("vu"), array(1));
    assertRefused(
        "top level: n_buffers is wrong: union layout before Arrow 1.0: expected 1, got 2" + rule,
        type("+us:0", type("i")),
        array(2, array(2)));
    for (long count : new long[] {-1, 1L << 40}) {
      assertRefused(buffers + "2, got " + count + rule, array(2), "n_buffers", count);
    }
    assertRefused(
        buffers + "at least 3, got 2 (rule array.view-sizes-buffer)", type("vz"), array(2));
    String children = "top level: n_children is wrong: expected ";
    rule = " (rule array.n-children-of-type)";
    assertRefused(
        children + "1, got 2" + rule, type("+s", type("i")), array(1, array(2), array(2)));
    assertRefused(children + "0, got -5" + rule, array(2), "n_children", -5);
    assertRefused(
        "top level: dictionary is NULL: expected one, as in the schema (rule"
            + " array.dictionary-when-encoded)",
        type("i").dictionary(type("u")),
        array(2));
  }

  @Test
  void checkArrayNamesWrongSize() {
    String rule = " (rule array.buffers-large-enough)";
    String small = "length is too small for the parent: expected at least ";
    assertRefused(
        "field \"[0]\": " + small + "3, got 2" + rule,
        type("+s", type("i")),
        array(1, array(2)).offset(1));
    assertRefused(
        "field \"[0]\": " + small + "8, got 2" + rule, type("+w:4", type("i")), array(1, array(2)));
    assertRefused(
        "field \"[1]\": " + small + "2, got 1" + rule,
        type("+r", type("i"), type("i")),
        array(0, array(2), new ArrayBuilder(1).buffers(0, AT)));
    String large = "top level: offset + length are more than memory can hold: got ";
    assertRefused(
        large + "1 + " + Long.MAX_VALUE + rule,
        type("n"),
        new ArrayBuilder(Long.MAX_VALUE).offset(1));
    long length = Long.MAX_VALUE / 4 + 1;
    assertRefused(
        large + "0 + " + length + rule, type("i"), new ArrayBuilder(length).buffers(0, AT));
  }

  @Test
  void checkArrayNamesMissingBuffer() {
    String text = " is NULL: length is 2, null_count is ";
    String rule = " (rule array.buffers-null-only-when)";
    assertRefused(
        "top level: buffers[1]" + text + 0 + rule, type("i"), new ArrayBuilder(2).buffers(0, 0));
    assertRefused("top level: buffers[0]" + text + 1 + rule, type("i"), array(2).nullCount(1));
    assertFits(type("i"), array(2).nullCount(-1)); // -1: not counted, and no nulls
    assertFits(type("i"), new ArrayBuilder(0).buffers(0, 0).nullCount(-1));
    assertRefused(
        "top level: buffers[3]" + text + 0 + rule,
        type("vu"),
        new ArrayBuilder(2).buffers(0, AT, AT, 0));
  }

  @Test
  void checkArrayNamesWrongNullCount() {
    String text = "null_count is wrong: expected 0, got 1 (rule array.null-count-correct)";
    SchemaBuilder ints = type("i");
    ArrayBuilder leaf = array(2);
    ArrayBuilder nulls = new ArrayBuilder(2).buffers(AT, AT).nullCount(1);
    assertRefused("top level: " + text, type("+ud:0", ints), array(2, leaf).nullCount(1));
    assertRefused("top level: " + text, type("+r", ints, ints), array(0, leaf, leaf).nullCount(1));
    assertRefused("field \"[0]\": " + text, type("+r", ints, ints), array(0, nulls, nulls));
    assertRefused(
        "field \"[0].[0]\": " + text,
        type("+m", type("+s", ints, ints)),
        array(2, array(1, nulls, nulls)));
    assertFits(type("+m", type("+s", ints, ints)), array(2, array(1, leaf, nulls)));
    assertFits(type("+r", ints, ints), array(0, leaf, nulls));
    assertFits(type("+s", ints), array(1, nulls));
  }

  @Test
  void ruleSchemaDictionaryWhenEncoded() {
    assertRefused(
        "top level: dictionary is not NULL: expected none, as in the schema (rule"
            + " array.dictionary-null-otherwise)",
        type("i"),
        array(2).dictionary(array(3)));
  }

  @Test
  void checkRejectsNullLists() {
    String rule = " (rule array.buffers-count)";
    assertRefused(
        "top level: buffers is NULL: expected a list of 2" + rule, array(2), "buffers", 0);
    Raw raw = Raw.schema();
    type("+s", type("i")).build().moveTo(raw.address());
    long children = raw.get("children");
    raw.set("children", 0);
    try (Schema schema = raw.give(Schema::wrap)) {
      Raw moved = Raw.schemaAt(schema.address());
      assertInvalid(
          "top level: children of the schema is NULL (rule schema.children-null-only-when-none)",
          schema::check);
      moved.set("children", children);
      schema.takeChild(0).close();
      assertInvalid(
          "field \"[0]\": schema is released or moved out (rule schema.release-set)",
          schema::check);
      moved.set("format", 0);
      assertInvalid(
          "top level: format is NULL: expected a format string (rule schema.format-set)",
          schema::check);
    }
  }

  @Test
  void checkRejectsClosedOwner() {
    Schema schema = type("i").build();
    Array array = array(2).build(null);
    schema.close();
    assertThrows(IllegalStateException.class, schema::check);
    assertThrows(IllegalStateException.class, () -> array.check(schema));
    array.close();
    assertThrows(IllegalStateException.class, () -> array.check(schema));
  }
}
