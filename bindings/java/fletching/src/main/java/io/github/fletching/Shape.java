// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;
import static io.github.fletching.Native.POINTER;

/** The buffers, children and dictionaries that a stream's schema requires of every batch. */
final class Shape {
  private final String name; // field name
  private final Format format; // null if unknown, or for the top level only
  private final int count; // number of children
  private final Shape[] children; // null for the top level only
  private final boolean hasDictionary;
  private final Shape dictionary;

  private Shape(long schema, String name, boolean deep) {
    this.name = name;
    format = deep ? format(C.getAddress(schema + Fields.SCHEMA_FORMAT)) : null;
    count = Kind.SCHEMA.childCount(schema);
    long values = Kind.SCHEMA.dictionary(schema);
    hasDictionary = values != 0;
    dictionary = deep && hasDictionary ? new Shape(values, "dictionary", true) : null;
    children = deep ? new Shape[count] : null;
    for (int i = 0; deep && i < count; i++) {
      long child = Kind.SCHEMA.child(schema, i);
      children[i] = new Shape(child, Native.text(C.getAddress(child + Fields.SCHEMA_NAME)), true);
    }
  }

  private static Format format(long text) {
    try {
      return Format.of(Native.printable(text));
    } catch (FletchingException unknown) {
      return null;
    }
  }

  /** Describes all fields of a schema. Throws EINVAL for a malformed schema. */
  static Shape of(String operation, Schema schema) {
    long struct = schema.enter(operation);
    try {
      Tree.count(operation, Kind.SCHEMA, struct);
      return new Shape(struct, "", true);
    } finally {
      schema.leave();
    }
  }

  /** Describes only the top level of a schema, which may be malformed. */
  static Shape ofTop(long schema) {
    return new Shape(schema, "", false);
  }

  /** Describes how a batch differs; null if it matches. */
  String difference(ArrayOwner batch) {
    long array = batch.enter("compare");
    try {
      Difference found = compare(array);
      return found == null ? null : found.toString();
    } finally {
      batch.leave();
    }
  }

  private Difference compare(long array) {
    if (array == 0 || Kind.ARRAY.isReleased(array)) {
      return new Difference("expected an array, got NULL or a released one");
    }
    long found = C.getLong(array + Kind.ARRAY.childCount);
    if (found != count) {
      return new Difference("expected " + count + " children, got " + found);
    }
    long values = Kind.ARRAY.dictionary(array);
    if ((values != 0) != hasDictionary) {
      return new Difference(
          hasDictionary ? "expected a dictionary, got none" : "expected no dictionary, got one");
    }
    long buffers = C.getLong(array + Fields.ARRAY_N_BUFFERS);
    if (format != null && !format.hasBuffers(buffers)) {
      return new Difference("expected " + format.buffersText() + " buffers, got " + buffers);
    }
    long list = children == null ? 0 : C.getAddress(array + Kind.ARRAY.children);
    for (int i = 0; children != null && i < count; i++) {
      long child = list == 0 ? 0 : C.getAddress(list + (long) i * POINTER);
      Difference below = children[i].compare(child);
      if (below != null) {
        return below.in(children[i]);
      }
    }
    Difference below = dictionary == null ? null : dictionary.compare(values);
    return below == null ? null : below.in(dictionary);
  }

  /** The path of a field and its difference. */
  private static final class Difference {
    private final String problem;
    private String path; // null for the batch itself

    Difference(String problem) {
      this.problem = problem;
    }

    Difference in(Shape field) {
      path = path == null ? field.name : field.name + "." + path;
      return this;
    }

    @Override
    public String toString() {
      return path == null ? problem : "field \"" + path + "\": " + problem;
    }
  }
}
