// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.arrow;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.github.fletching.Array;
import io.github.fletching.ArrayBuilder;
import io.github.fletching.Schema;
import io.github.fletching.SchemaBuilder;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.complex.UnionVector;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Unions of integers and doubles, whose values arrow-java must distinguish. */
class UnionsTest extends ImportFixture {
  private static ByteBuffer bytes(int... values) {
    ByteBuffer bytes = ByteBuffer.allocateDirect(values.length);
    for (int value : values) {
      bytes.put((byte) value);
    }
    return bytes.flip().order(ByteOrder.nativeOrder());
  }

  private static ByteBuffer doubles(double... values) {
    ByteBuffer bytes = ByteBuffer.allocateDirect(8 * values.length).order(ByteOrder.nativeOrder());
    for (double value : values) {
      bytes.putDouble(value);
    }
    return bytes.flip();
  }

  /** Returns a union with two rows, the first an integer. */
  private ArrayBuilder union(String format) {
    return union(format, 0);
  }

  private ArrayBuilder union(String format, int second) {
    String[] ids = format.substring(4).split(",");
    ByteBuffer types = bytes(Integer.parseInt(ids[0]), Integer.parseInt(ids[1]));
    ArrayBuilder union = new ArrayBuilder(2);
    if (format.startsWith("+ud")) {
      union.buffers(types, bytes(0, 0, 0, 0, second, 0, 0, 0));
    } else {
      union.buffers(types);
    }
    return union
        .child(column())
        .child(
            new ArrayBuilder(2)
                .buffers(null, doubles(format.startsWith("+ud") && second == 0 ? 1.5 : 0.5, 1.5)));
  }

  private static SchemaBuilder type(String format, String first, String second) {
    return new SchemaBuilder(format)
        .name("union")
        .child(new SchemaBuilder(first).name("first"))
        .child(new SchemaBuilder(second).name("second"));
  }

  @ParameterizedTest
  @ValueSource(strings = {"+us:0,1", "+us:1,0", "+us:22,4", "+ud:0,1", "+ud:127,3"})
  void batchKeepsValuesAndIds(String format) {
    Schema schema = new SchemaBuilder("+s").child(type(format, "i", "g")).build();
    Array source = new ArrayBuilder(2).buffers(0).child(union(format)).build(counted());
    try (VectorSchemaRoot root =
        ArrowData.importVectorSchemaRoot(allocator, source, schema, null)) {
      assertEquals("[1, 1.5]", root.getVector(0).toString());
      try (Schema type = ArrowData.exportSchema(allocator, root.getSchema(), null);
          Array array = ArrowData.exportVectorSchemaRoot(allocator, root, null)) {
        assertEquals(format, type.child(0).format());
        array.check(type);
        try (VectorSchemaRoot again =
            ArrowData.importVectorSchemaRoot(allocator, array, type, null)) {
          assertEquals("[1, 1.5]", again.getVector(0).toString());
        }
      }
    }
    assertEquals(1, releases.get());
  }

  /** arrow-java would truncate the child to one value, because it has one row. */
  @Test
  void importBatchRejectsDenseOffsetOutOfRange() {
    Schema schema = new SchemaBuilder("+s").child(type("+ud:0,1", "i", "g")).build();
    Array source = new ArrayBuilder(2).buffers(0).child(union("+ud:0,1", 1)).build(counted());
    assertError(
        EINVAL,
        "importVectorSchemaRoot: field \"union\": offset of row 1 of a dense union: not supported by"
            + " arrow-java: expected one below the 1 rows of the child, got 1",
        () -> ArrowData.importVectorSchemaRoot(allocator, source, schema, null).close());
    assertEquals(1, releases.get());
    Array alone = union("+ud:0,1", 1).build(null);
    Schema type = type("+ud:0,1", "i", "g").build();
    try (FieldVector vector = ArrowData.importVector(allocator, alone, type, null)) {
      assertEquals("[1, 1.5]", vector.toString());
    }
  }

  /** The vector's field has different type IDs or another order. */
  @ParameterizedTest
  @ValueSource(strings = {"+us:0,1", "+ud:127,3"})
  void exportVectorRejectsMismatchedField(String format) {
    Schema schema = type(format, "i", "g").build();
    Array source = union(format).build(counted());
    try (FieldVector vector = ArrowData.importVector(allocator, source, schema, null)) {
      assertError(
          EINVAL,
          "exportVector: field \"union\": " + (format.startsWith("+us") ? "type id of" : "child 0"),
          () -> ArrowData.exportVector(allocator, vector, null).close());
    }
  }

  @Test
  void exportVectorAcceptsArrowJavaUnion() {
    try (UnionVector vector = UnionVector.empty("union", allocator)) {
      vector.allocateNew();
      vector.setType(0, org.apache.arrow.vector.types.Types.MinorType.INT);
      vector.getIntVector().setSafe(0, 7);
      vector.getIntVector().setValueCount(1);
      vector.setValueCount(1);
      Schema schema = ArrowData.exportField(allocator, vector.getField(), null);
      Array array = ArrowData.exportVector(allocator, vector, null);
      try (FieldVector again = ArrowData.importVector(allocator, array, schema, null)) {
        assertEquals("[7]", again.toString());
      }
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"d:5,2", "w:4", "tss:UTC", "tDs", "+l", "+s", "+us:0", "+w:2"})
  void sparseUnionRejectsUnsupportedChildType(String format) {
    SchemaBuilder type = new SchemaBuilder("+us:0,1").child(new SchemaBuilder("g"));
    SchemaBuilder child = new SchemaBuilder(format).name("child");
    type.child(format.startsWith("+") ? child.child(new SchemaBuilder("i").name("item")) : child);
    assertError(
        EINVAL,
        "field \"child\": child of a sparse union: not supported by arrow-java: expected a type"
            + " without children and parameters, got "
            + format,
        () -> ArrowData.importField(allocator, type.build(), null));
  }

  @Test
  void sparseUnionRejectsDuplicateChildType() {
    assertRefused(
        "field \"union.second\": child of a sparse union: not supported by arrow-java: expected"
            + " one child of each type, got i",
        type("+us:0,1", "i", "i"),
        new ArrayBuilder(2).buffers(bytes(0, 1)).child(column()).child(column()));
  }
}
