// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;
import static io.github.fletching.Native.POINTER;

import io.github.fletching.Format.Layout;

/**
 * The tree walk of {@link ArrayOwner#check} and {@link Schema#check}. It reads structs and their
 * pointer lists, but no buffer.
 */
final class ArrayCheck {
  static final long NO_ARRAY = -1;

  private int structs;

  /** A schema struct and the array struct at the same position. */
  private static final class Place {
    final Place parent; // null at the top
    final int index; // below the parent; -1 for the dictionary
    final int depth;
    final long schema;
    final long array;
    Format format;
    long length;
    long nulls;

    Place(Place parent, int index, long schema, long array) {
      this.parent = parent;
      this.index = index;
      this.schema = schema;
      this.array = array;
      depth = parent == null ? 0 : parent.depth + 1;
    }

    private String path() {
      boolean gone = schema == 0 || Kind.SCHEMA.isReleased(schema);
      String name = gone ? "" : Native.printable(C.getAddress(schema + Fields.SCHEMA_NAME));
      return parent == null ? name : SchemaView.path(parent.path(), index, name);
    }

    String text() {
      return Native.printable(C.getAddress(schema + Fields.SCHEMA_FORMAT));
    }

    Layout parentLayout() {
      return parent == null || index < 0 ? Layout.PLAIN : parent.format.layout;
    }

    boolean hasArray() {
      return array != NO_ARRAY;
    }

    FletchingException broken(String rule, String problem) {
      return FletchingException.brokenRule(rule, SchemaView.title(path()) + ": " + problem);
    }

    FletchingException broken(String rule, String what, Object expected, Object got) {
      return broken(rule, what + ": expected " + expected + ", got " + got);
    }
  }

  /** Throws EINVAL for the first violation in a schema with or without an array. */
  static void run(long schema, long array) {
    new ArrayCheck().visit(new Place(null, 0, schema, array), 0);
  }

  private void visit(Place at, long leastLength) {
    String excess = Tree.excess(at.depth, ++structs);
    if (excess != null) {
      throw FletchingException.invalid(SchemaView.title(at.path()) + ": " + excess);
    }
    checkAlive(at, Kind.SCHEMA, at.schema);
    if (at.hasArray()) {
      checkAlive(at, Kind.ARRAY, at.array);
    }
    checkFormat(at);
    long values = 0;
    if (at.hasArray()) {
      values = checkValues(at, leastLength);
      checkBuffers(at, values);
    }
    checkChildren(at, values);
    checkDictionary(at);
  }

  private static void checkAlive(Place at, Kind kind, long struct) {
    if (struct == 0) {
      throw at.broken(kind.title + ".children-count", kind.title + " is NULL");
    }
    if (kind.isReleased(struct)) {
      throw at.broken(kind.title + ".release-set", kind.title + " is released or moved out");
    }
  }

  private static void checkFormat(Place at) {
    if (C.getAddress(at.schema + Fields.SCHEMA_FORMAT) == 0) {
      throw at.broken("schema.format-set", "format is NULL: expected a format string");
    }
    try {
      at.format = Format.of(at.text());
    } catch (FletchingException e) {
      throw at.broken("format.known", e.getMessage());
    }
    long children = count(Kind.SCHEMA, at.schema);
    Layout parent = at.parentLayout();
    if (parent == Layout.MAP && (at.format.layout != Layout.STRUCT || children != 2)) {
      throw at.broken(
          "format.map-child",
          "child of a map: expected a struct of two children, got "
              + at.text()
              + " with "
              + children);
    }
    if (parent == Layout.RUN_END_ENCODED && at.index == 0 && !"s i l".contains(at.text())) {
      throw at.broken(
          "format.run-end-children", "format", "run ends of 16, 32 or 64 bits", at.text());
    }
  }

  /** Returns offset + length. */
  private static long checkValues(Place at, long leastLength) {
    at.length = C.getLong(at.array + Fields.ARRAY_LENGTH);
    at.nulls = C.getLong(at.array + Fields.ARRAY_NULL_COUNT);
    long offset = C.getLong(at.array + Fields.ARRAY_OFFSET);
    if (at.length < 0) {
      throw at.broken("array.length-set", "length is negative", "0 or more", at.length);
    }
    if (at.length < leastLength) {
      throw at.broken(
          "array.buffers-large-enough",
          "length is too small for the parent",
          "at least " + leastLength,
          at.length);
    }
    if (offset < 0) {
      throw at.broken("array.offset-not-negative", "offset is negative", "0 or more", offset);
    }
    if (at.nulls < -1 || at.nulls > at.length) {
      throw at.broken(
          "array.null-count-range", "null_count is out of range", "-1 to " + at.length, at.nulls);
    }
    if (at.nulls > 0 && hasNoNulls(at)) {
      throw at.broken("array.null-count-correct", "null_count is wrong", 0, at.nulls);
    }
    return sized(at, () -> Math.addExact(offset, at.length));
  }

  /** Whether the array cannot contain nulls: unions, run ends and map keys. */
  private static boolean hasNoNulls(Place at) {
    boolean first = at.index == 0 && at.parent != null;
    return at.format.layout.isUnion()
        || at.format.layout == Layout.RUN_END_ENCODED
        || (first && at.parentLayout() == Layout.RUN_END_ENCODED)
        || (first && at.parentLayout() == Layout.STRUCT && at.parent.parentLayout() == Layout.MAP);
  }

  private interface Size {
    long get();
  }

  private static long sized(Place at, Size size) {
    try {
      return size.get();
    } catch (ArithmeticException e) {
      throw at.broken(
          "array.buffers-large-enough",
          "offset + length are more than memory can hold: got "
              + C.getLong(at.array + Fields.ARRAY_OFFSET)
              + " + "
              + at.length);
    }
  }

  private static void checkBuffers(Place at, long values) {
    Format format = at.format;
    long count = C.getLong(at.array + Fields.ARRAY_N_BUFFERS);
    int fixed = format.bits.length;
    boolean views = format.layout == Layout.VIEW;
    if (format.layout.isUnion() && count == fixed + 1) {
      throw at.broken(
          "array.n-buffers-of-type",
          "n_buffers is wrong: union layout before Arrow 1.0",
          fixed,
          count);
    }
    if (!format.hasBuffers(count)) {
      throw at.broken(
          views && count == fixed ? "array.view-sizes-buffer" : "array.n-buffers-of-type",
          "n_buffers is wrong",
          format.buffersText(),
          count);
    }
    if (count == 0) {
      return;
    }
    long list = C.getAddress(at.array + Fields.ARRAY_BUFFERS);
    if (list == 0) {
      throw at.broken("array.buffers-count", "buffers is NULL: expected a list of " + count);
    }
    for (int i = 0; i < fixed; i++) {
      long more = format.isOffsets(i) ? 1 : 0;
      long bits = format.bits[i];
      sized(at, () -> Math.multiplyExact(Math.addExact(values, more), bits));
      boolean validity = i == 0 && format.hasValidity();
      boolean empty = at.length == 0 || bits == 0 || (validity && at.nulls <= 0);
      checkBuffer(at, list, i, empty);
    }
    if (views) { // variadic buffers may be empty; without them the list of sizes may be NULL
      checkBuffer(at, list, count - 1, count == fixed + 1);
    }
  }

  private static void checkBuffer(Place at, long list, long index, boolean mayBeNull) {
    if (!mayBeNull && C.getAddress(list + index * POINTER) == 0) {
      throw at.broken(
          "array.buffers-null-only-when",
          "buffers[" + index + "] is NULL: length is " + at.length + ", null_count is " + at.nulls);
    }
  }

  private void checkChildren(Place at, long values) {
    long count = count(Kind.SCHEMA, at.schema);
    boolean any = at.format.children == Format.ANY_NUMBER;
    if (any ? count < 0 || count > Kind.MOST_STRUCTS : count != at.format.children) {
      throw at.broken(
          "schema.n-children-set",
          "n_children of the schema is wrong",
          any ? "0 to 2^22" : at.format.children,
          count);
    }
    if (at.hasArray() && count(Kind.ARRAY, at.array) != count) {
      throw at.broken(
          "array.n-children-of-type", "n_children is wrong", count, count(Kind.ARRAY, at.array));
    }
    if (count == 0) {
      return;
    }
    checkList(at, Kind.SCHEMA, at.schema);
    if (at.hasArray()) {
      checkList(at, Kind.ARRAY, at.array);
    }
    long least = leastChildLength(at, values);
    for (int i = 0; i < count; i++) {
      long array = at.hasArray() ? Kind.ARRAY.child(at.array, i) : NO_ARRAY;
      visit(new Place(at, i, Kind.SCHEMA.child(at.schema, i), array), least);
      if (at.hasArray() && at.format.layout == Layout.RUN_END_ENCODED) {
        least = C.getLong(array + Fields.ARRAY_LENGTH); // one value per run end
      }
    }
  }

  private static void checkList(Place at, Kind kind, long struct) {
    if (C.getAddress(struct + kind.children) == 0) {
      throw at.broken(
          kind.title + ".children-null-only-when-none",
          "children of the " + kind.title + " is NULL");
    }
  }

  private static long count(Kind kind, long struct) {
    return C.getLong(struct + kind.childCount);
  }

  private static long leastChildLength(Place at, long values) {
    switch (at.format.layout) {
      case STRUCT:
      case SPARSE_UNION:
        return values;
      case FIXED_SIZE_LIST:
        return sized(at, () -> Math.multiplyExact(values, (long) at.format.size));
      case RUN_END_ENCODED:
        return Math.min(values, 1);
      default:
        return 0;
    }
  }

  private void checkDictionary(Place at) {
    long schema = Kind.SCHEMA.dictionary(at.schema);
    long array = at.hasArray() ? Kind.ARRAY.dictionary(at.array) : schema == 0 ? 0 : NO_ARRAY;
    if (schema != 0 && at.format.layout != Layout.INTEGER) {
      throw at.broken(
          "format.dictionary-index-type", "format", "an integer for the indices", at.text());
    }
    if (schema != 0 && array == 0) {
      throw at.broken(
          "array.dictionary-when-encoded", "dictionary is NULL: expected one, as in the schema");
    }
    if (schema == 0 && array != 0) {
      throw at.broken(
          "array.dictionary-null-otherwise",
          "dictionary is not NULL: expected none, as in the schema");
    }
    if (schema != 0) {
      visit(new Place(at, -1, schema, array), 0);
    }
  }
}
