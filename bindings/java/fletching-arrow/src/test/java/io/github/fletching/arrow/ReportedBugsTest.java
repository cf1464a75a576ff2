// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.arrow;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.fletching.Array;
import io.github.fletching.ArrayBuilder;
import io.github.fletching.ArrayStream;
import io.github.fletching.FletchingException;
import io.github.fletching.Schema;
import io.github.fletching.SchemaBuilder;
import java.io.IOException;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.arrow.c.CDataDictionaryProvider;
import org.apache.arrow.memory.ArrowBuf;
import org.apache.arrow.memory.util.MemoryUtil;
import org.apache.arrow.vector.DecimalVector;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.dictionary.Dictionary;
import org.apache.arrow.vector.ipc.ArrowReader;
import org.apache.arrow.vector.types.pojo.ArrowType;
import org.apache.arrow.vector.types.pojo.Field;
import org.apache.arrow.vector.types.pojo.FieldType;
import org.junit.jupiter.api.Test;

/** Bugs that users of other libraries have reported publicly. */
class ReportedBugsTest extends ImportFixture {
  private static final Map<String, ArrowType> OFFSETS =
      Map.of(
          "u", ArrowType.Utf8.INSTANCE,
          "U", ArrowType.LargeUtf8.INSTANCE,
          "z", ArrowType.Binary.INSTANCE,
          "Z", ArrowType.LargeBinary.INSTANCE,
          "+l", ArrowType.List.INSTANCE,
          "+L", ArrowType.LargeList.INSTANCE,
          "+m", new ArrowType.Map(false));

  private static Field field(String name, ArrowType type, List<Field> children) {
    return new Field(name, FieldType.nullable(type), children);
  }

  private static SchemaBuilder type(String format) {
    SchemaBuilder type = new SchemaBuilder(format).name("x");
    SchemaBuilder item = new SchemaBuilder("i").name("item");
    if (format.equals("+m")) {
      SchemaBuilder entries = new SchemaBuilder("+s").name("entries");
      return type.child(entries.child(item).child(new SchemaBuilder("i").name("value")));
    }
    return format.startsWith("+") ? type.child(item) : type;
  }

  private static ArrayBuilder empty(String format) {
    ArrayBuilder item = new ArrayBuilder(0).buffers(0, 0);
    if (format.equals("+m")) {
      ArrayBuilder entries = new ArrayBuilder(0).buffers(0).child(item).child(item);
      return new ArrayBuilder(0).buffers(0, 0).child(entries);
    }
    return format.startsWith("+")
        ? new ArrayBuilder(0).buffers(0, 0).child(item)
        : new ArrayBuilder(0).buffers(0, 0, 0);
  }

  /** Returns the first offset, which has 64 bits. */
  private static long offset(Array array) {
    return MemoryUtil.directBuffer(array.buffers()[1], 8).order(ByteOrder.nativeOrder()).getLong();
  }

  /** apache/arrow-java #704. */
  @Test
  void importZeroRowsAcceptsNullOffsets() {
    for (String format : OFFSETS.keySet()) {
      releases.set(0);
      Array array = empty(format).build(counted());
      try (FieldVector found =
          ArrowData.importVector(allocator, array, type(format).build(), null)) {
        assertEquals("[]", found.toString(), format);
      }
      Array batch = new ArrayBuilder(0).buffers(0).child(empty(format)).build(counted());
      Schema schema = new SchemaBuilder("+s").child(type(format)).build();
      try (VectorSchemaRoot root =
          ArrowData.importVectorSchemaRoot(allocator, batch, schema, null)) {
        assertEquals(0, root.getRowCount());
      }
      assertEquals(2, releases.get());
    }
  }

  /** apache/arrow-java #704. */
  @Test
  void exportEmptyVectorWritesOneZeroOffset() {
    Field item = field("$data$", new ArrowType.Int(32, true), null);
    Field key = new Field("key", FieldType.notNullable(item.getType()), null);
    Field entries =
        new Field("entries", FieldType.notNullable(ArrowType.Struct.INSTANCE), List.of(key, item));
    for (ArrowType type : OFFSETS.values()) {
      Field child = type instanceof ArrowType.Map ? entries : item;
      Field field = field("x", type, type.isComplex() ? List.of(child) : null);
      for (boolean allocated : new boolean[] {false, true}) {
        try (FieldVector vector = field.createVector(allocator)) {
          if (allocated) {
            vector.allocateNew();
            if (vector.getOffsetBuffer().capacity() >= 8) {
              vector.getOffsetBuffer().setLong(0, -1); // like reused memory
            }
            vector.setValueCount(0);
          }
          try (Array array = ArrowData.exportVector(allocator, vector, null)) {
            assertEquals(0, offset(array), type::toString);
          }
        }
      }
    }
  }

  /** apache/arrow-rs #10910. */
  @Test
  void importEmptySliceAtOffsetIsEmpty() {
    try (ArrowBuf text = allocator.buffer(16)) {
      for (int i = 0; i < 3; i++) {
        text.setInt(4 * i, new int[] {0, 1, 3}[i]);
      }
      Array array =
          new ArrayBuilder(0)
              .offset(1)
              .buffers(0, text.memoryAddress(), text.memoryAddress())
              .build(counted());
      try (FieldVector found = ArrowData.importVector(allocator, array, type("u").build(), null);
          Array back = ArrowData.exportVector(allocator, found, null)) {
        assertEquals("[]", found.toString());
        assertEquals("0 0 3", back.length() + " " + back.offset() + " " + back.buffers().length);
        assertEquals(0, (int) offset(back));
      }
      assertEquals(1, releases.get());
    }
  }

  /** apache/arrow-java #709: the data begins at 0, not at the first offset. */
  @Test
  void importNonzeroFirstOffsetReadsTextOrThrows() {
    try (ArrowBuf text = allocator.buffer(32)) {
      for (int i = 0; i < 3; i++) {
        text.setInt(4 * i, new int[] {5, 7, 9}[i]);
      }
      text.setBytes(16, "01234abcd".getBytes(StandardCharsets.UTF_8));
      Array array =
          new ArrayBuilder(2)
              .buffers(0, text.memoryAddress(), text.memoryAddress() + 16)
              .build(counted());
      try (FieldVector found = ArrowData.importVector(allocator, array, type("u").build(), null)) {
        assertEquals("[ab, cd]", found.toString());
      } catch (FletchingException e) {
        assertTrue(
            System.getProperty("java.class.path").contains("arrow-vector-16.1.0"), e::toString);
        assertEquals(
            "importVector: field \"x\": first offset: not supported by this version of arrow-java:"
                + " expected 0; hint: use 18.3 or later",
            e.getMessage());
      }
      assertEquals(1, releases.get());
    }
  }

  /** apache/arrow-rs #9394. */
  @Test
  void readerKeepsRowCountWithoutColumns() throws IOException {
    Array batch = new ArrayBuilder(10).buffers(0).build(null);
    ArrayStream stream = ArrayStream.of(new SchemaBuilder("+s").build(), List.of(batch).iterator());
    try (ArrowReader reader = ArrowData.importArrayStream(allocator, stream);
        ArrayStream again = ArrowData.exportArrayStream(allocator, reader)) {
      try (Array found = again.next()) {
        assertEquals("10 0", found.length() + " " + found.childCount());
      }
    }
  }

  /** apache/arrow-dotnet PR 251: the size of the values is more than 2^31 - 1 bytes. */
  @Test
  void importTwoGibibyteVectorReadsLastValue() {
    int length = 1 << 27;
    try (ArrowBuf values = allocator.buffer(16L * length)) { // only one page is touched
      values.setLong(16L * (length - 1), 7);
      values.setLong(16L * (length - 1) + 8, 0);
      Array array = new ArrayBuilder(length).buffers(0, values.memoryAddress()).build(null);
      SchemaBuilder decimal = new SchemaBuilder("d:38,0").name("x");
      try (DecimalVector found =
          (DecimalVector) ArrowData.importVector(allocator, array, decimal.build(), null)) {
        assertEquals("7", found.getObject(length - 1).toString());
      }
    }
  }

  /** A reader whose batches throw. */
  private final class FailingReader extends ArrowReader {
    private final Exception failure;
    private boolean closed;

    FailingReader(Exception failure) {
      super(ReportedBugsTest.this.allocator);
      this.failure = failure;
    }

    @Override
    public boolean loadNextBatch() throws IOException {
      if (failure instanceof IOException) {
        throw (IOException) failure;
      }
      throw (RuntimeException) failure;
    }

    @Override
    protected org.apache.arrow.vector.types.pojo.Schema readSchema() {
      return new org.apache.arrow.vector.types.pojo.Schema(
          List.of(field("x", new ArrowType.Int(32, true), null)));
    }

    @Override
    public Dictionary lookup(long id) {
      return null;
    }

    @Override
    public Set<Long> getDictionaryIds() {
      return Set.of();
    }

    @Override
    public Map<Long, Dictionary> getDictionaryVectors() {
      return Map.of();
    }

    @Override
    public long bytesRead() {
      return 0;
    }

    @Override
    protected void closeReadSource() {
      closed = true;
    }
  }

  private FletchingException failureOfAStream(Exception failure) {
    FailingReader reader = new FailingReader(failure);
    try (ArrayStream stream = ArrowData.exportArrayStream(allocator, reader)) {
      FletchingException thrown = assertThrows(FletchingException.class, stream::hasNext);
      assertEquals(false, reader.closed);
      return thrown;
    } finally {
      assertEquals(true, reader.closed);
    }
  }

  /** apache/arrow-java #759: C reads the text until a NUL. */
  @Test
  void exportedStreamReturnsReaderErrorText() {
    String text = "e".repeat(4096);
    FletchingException thrown = failureOfAStream(new IOException(text));
    assertEquals(text, thrown.getMessage());
    assertEquals(5, thrown.errno());
    thrown = failureOfAStream(new IOException("a\0b"));
    assertEquals("a\\x00b", thrown.getMessage());
    thrown = failureOfAStream(new IOException("lost", new FletchingException(ENOMEM, "no luck")));
    assertEquals("lost", thrown.getMessage());
    assertEquals(ENOMEM, thrown.errno());
    thrown = failureOfAStream(new IOException());
    assertEquals("java.io.IOException", thrown.getMessage());
  }

  /** Imports a batch whose columns are longer than the batch. */
  @Test
  void importLongerColumnsKeepsBatchRowCount() {
    Array batch =
        new ArrayBuilder(2).buffers(0).child(new ArrayBuilder(4).buffers(0, at)).build(null);
    try (CDataDictionaryProvider provider = new CDataDictionaryProvider();
        VectorSchemaRoot root =
            ArrowData.importVectorSchemaRoot(allocator, batch, table(1).build(), provider)) {
      assertEquals("column 0\n1\n2\n", root.contentToTSVString());
      assertEquals(2, root.getVector(0).getValueCount());
    }
  }
}
