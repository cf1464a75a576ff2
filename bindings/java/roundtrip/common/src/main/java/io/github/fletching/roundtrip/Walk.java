// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.roundtrip;

/**
 * Checks foreign trees before anything else looks at them. What is wrong becomes a {@link
 * TransitException} that names the struct, the field, and where it is in the tree, as in "/2/d".
 */
final class Walk {
  private final Structs structs;

  Walk(Structs structs) {
    this.structs = structs;
  }

  void checkSchema(long schema) {
    checkSchema(schema, "");
  }

  /** The schema has been checked. */
  void checkArray(long schema, long array) {
    checkArray(schema, array, "");
  }

  void checkStream(long stream) {
    Structs.Stream access = structs.stream;
    require(stream != 0, "stream", "the address is NULL");
    require(access.release.of(stream) != 0, "stream", "it is released");
    require(access.getSchema.of(stream) != 0, "stream", "get_schema is NULL");
    require(access.getNext.of(stream) != 0, "stream", "get_next is NULL");
    require(access.getLastError.of(stream) != 0, "stream", "get_last_error is NULL");
  }

  private void checkSchema(long schema, String path) {
    checkNode(structs.schema, schema, path);
    require(structs.schema.format.of(schema) != 0, "schema " + path, "format is NULL");
    forEachBelow(structs.schema, schema, path, this::checkSchema);
  }

  private void checkArray(long schema, long array, String path) {
    Structs.Array access = structs.array;
    String subject = "array " + path;
    checkNode(access, array, path);
    require(access.length.of(array) >= 0, subject, "length is negative");
    require(access.offset.of(array) >= 0, subject, "offset is negative");
    require(access.nullCount.of(array) >= -1, subject, "null_count is less than -1");
    require(access.bufferCount.of(array) >= 0, subject, "n_buffers is negative");
    require(
        access.bufferCount.of(array) == 0 || access.buffers.of(array) != 0,
        subject,
        "buffers is NULL");
    long expected = structs.schema.childCount.of(schema);
    long count = access.childCount.of(array);
    require(
        count == expected, subject, "n_children is " + count + ", in the schema it is " + expected);
    for (long i = 0; i < count; i++) {
      long childSchema = Foreign.pointerAt(structs.schema.children.of(schema), i);
      checkArray(childSchema, Foreign.pointerAt(access.children.of(array), i), path + "/" + i);
    }
    long dictionary = structs.schema.dictionary.of(schema);
    boolean same = (dictionary == 0) == (access.dictionary.of(array) == 0);
    require(same, subject, "dictionary is NULL in one of schema and array");
    if (dictionary != 0) {
      checkArray(dictionary, access.dictionary.of(array), path + "/d");
    }
  }

  /** What holds for either struct; its children may be looked at then. */
  private static void checkNode(Structs.Node access, long struct, String path) {
    String subject = access.name + " " + path;
    require(struct != 0, subject, "the address is NULL");
    require(access.release.of(struct) != 0, subject, "it is released");
    long count = access.childCount.of(struct);
    require(count >= 0 && count <= Integer.MAX_VALUE, subject, "n_children is " + count);
    require(count == 0 || access.children.of(struct) != 0, subject, "children is NULL");
    for (long i = 0; i < count; i++) {
      boolean there = Foreign.pointerAt(access.children.of(struct), i) != 0;
      require(there, subject, "children[" + i + "] is NULL");
    }
  }

  private interface Visitor {
    void visit(long struct, String path);
  }

  private static void forEachBelow(Structs.Node access, long struct, String path, Visitor visitor) {
    for (long i = 0; i < access.childCount.of(struct); i++) {
      visitor.visit(Foreign.pointerAt(access.children.of(struct), i), path + "/" + i);
    }
    if (access.dictionary.of(struct) != 0) {
      visitor.visit(access.dictionary.of(struct), path + "/d");
    }
  }

  private static void require(boolean condition, String subject, String problem) {
    if (!condition) {
      throw new TransitException(TransitException.EINVAL, subject.trim() + ": " + problem);
    }
  }
}
