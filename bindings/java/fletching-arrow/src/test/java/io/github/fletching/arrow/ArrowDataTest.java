// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.arrow;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.fletching.Array;
import io.github.fletching.ArrayBuilder;
import io.github.fletching.ArrayOwner;
import io.github.fletching.ArrayStream;
import io.github.fletching.DeviceArrayStream;
import io.github.fletching.Schema;
import io.github.fletching.SchemaBuilder;
import io.github.fletching.abi.DeviceType;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.arrow.c.ArrowArray;
import org.apache.arrow.c.ArrowSchema;
import org.apache.arrow.c.CDataDictionaryProvider;
import org.apache.arrow.c.Data;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.IntVector;
import org.apache.arrow.vector.VarCharVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.compare.VectorEqualsVisitor;
import org.apache.arrow.vector.dictionary.Dictionary;
import org.apache.arrow.vector.dictionary.DictionaryEncoder;
import org.apache.arrow.vector.dictionary.DictionaryProvider.MapDictionaryProvider;
import org.apache.arrow.vector.ipc.ArrowReader;
import org.apache.arrow.vector.types.pojo.DictionaryEncoding;
import org.apache.arrow.vector.types.pojo.Field;
import org.apache.arrow.vector.util.Text;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Exports and imports; the allocator is empty after each test. */
class ArrowDataTest {
  private final BufferAllocator allocator = new RootAllocator();

  @AfterEach
  void nothingIsLeft() {
    allocator.close(); // throws if memory is still allocated
  }

  static List<Field> types() {
    return Types.ALL;
  }

  @ParameterizedTest
  @MethodSource("types")
  void everyTypeRoundTrips(Field field) {
    try (FieldVector source = field.createVector(allocator)) {
      Types.fill(source);
      Schema schema = ArrowData.exportField(allocator, field, null);
      Array array = ArrowData.exportVector(allocator, source, null);
      try (FieldVector back = ArrowData.importVector(allocator, array, schema, null)) {
        assertEquals(field, back.getField());
        assertTrue(VectorEqualsVisitor.vectorEquals(source, back), () -> source + " " + back);
        assertTrue(array.isReleased() && schema.isReleased());
      }
    }
  }

  @Test
  void exportedVectorOutlivesSource() {
    IntVector source = ints(1, 2, 3);
    Schema schema = ArrowData.exportField(allocator, source.getField(), null);
    ArrayOwner array = ArrowData.exportVector(allocator, source, null).toDevice();
    source.close();
    try (FieldVector back = ArrowData.importVector(allocator, array, schema, null)) {
      assertEquals("[1, 2, 3]", back.toString());
    }
  }

  /** Imports by address, without this artifact. */
  @Test
  void wrapImportsArrowJavaStructs() {
    try (IntVector source = ints(4, 5);
        ArrowArray array = ArrowArray.allocateNew(allocator);
        ArrowSchema schema = ArrowSchema.allocateNew(allocator)) {
      Data.exportVector(allocator, source, null, array, schema);
      try (Array ours = Array.wrap(array.memoryAddress());
          Schema type = Schema.wrap(schema.memoryAddress())) {
        assertEquals("2 i", ours.length() + " " + type.format());
        ours.moveTo(array.memoryAddress());
        type.moveTo(schema.memoryAddress());
      }
      try (FieldVector back = Data.importVector(allocator, array, schema, null)) {
        assertEquals("[4, 5]", back.toString());
      }
    }
  }

  @Test
  void anotherThreadMayReleaseExport() throws InterruptedException {
    IntVector source = ints(1);
    Array array = ArrowData.exportVector(allocator, source, null);
    source.close();
    Thread other = new Thread(array::close);
    other.start();
    other.join();
  }

  @Test
  void dictionaryRoundTrips() {
    try (VarCharVector values = new VarCharVector("values", allocator);
        VarCharVector texts = new VarCharVector("texts", allocator);
        CDataDictionaryProvider found = new CDataDictionaryProvider()) {
      fill(values, "a", "b");
      fill(texts, "b", "a", "b");
      Dictionary dictionary = new Dictionary(values, new DictionaryEncoding(7, false, null));
      MapDictionaryProvider known = new MapDictionaryProvider(dictionary);
      try (FieldVector source = (FieldVector) DictionaryEncoder.encode(texts, dictionary)) {
        Schema schema = ArrowData.exportField(allocator, source.getField(), known);
        Array array = ArrowData.exportVector(allocator, source, known);
        try (FieldVector back = ArrowData.importVector(allocator, array, schema, found)) {
          assertEquals("[1, 0, 1]", back.toString());
          long id = back.getField().getDictionary().getId();
          assertEquals("[a, b]", found.lookup(id).getVector().toString());
        }
      }
    }
  }

  @Test
  void batchRoundTrips() {
    try (VectorSchemaRoot source = batch(1, 2)) {
      Schema schema = ArrowData.exportSchema(allocator, source.getSchema(), null);
      Array array = ArrowData.exportVectorSchemaRoot(allocator, source, null);
      try (VectorSchemaRoot back =
          ArrowData.importVectorSchemaRoot(allocator, array, schema, null)) {
        assertEquals(source.getSchema(), back.getSchema());
        assertTrue(source.equals(back), back::contentToTSVString);
      }
    }
  }

  @Test
  void schemaMetadataRoundTrips() {
    Map<String, String> metadata = Map.of("k", "v");
    var source = new org.apache.arrow.vector.types.pojo.Schema(Types.ALL, metadata);
    Schema schema = ArrowData.exportSchema(allocator, source, null);
    assertEquals(source, ArrowData.importSchema(allocator, schema, null));
  }

  /** A valid null count that arrow-java cannot read without a validity buffer. */
  @Test
  void importAcceptsUnknownNullCount() {
    List<String> closed = new ArrayList<>();
    try (IntVector data = ints(1, 2)) {
      ArrayBuilder column =
          new ArrayBuilder(2).nullCount(-1).buffers(0, data.getDataBuffer().memoryAddress());
      ArrayBuilder table = new ArrayBuilder(2).nullCount(-1).buffers(0).child(column);
      Array array = table.build((AutoCloseable) () -> closed.add("released"));
      Schema schema = new SchemaBuilder("+s").child(new SchemaBuilder("i").name("x")).build();
      try (VectorSchemaRoot back =
          ArrowData.importVectorSchemaRoot(allocator, array, schema, null)) {
        assertEquals("x\n1\n2\n", back.contentToTSVString());
        assertEquals(List.of(), closed);
      }
    }
    assertEquals(List.of("released"), closed);
  }

  /** arrow-java reads no value of an empty array, so its offset is harmless. */
  @Test
  void importAcceptsOffsetOfEmptyArray() {
    Array array = new ArrayBuilder(0).offset(2).buffers(0, 0).build(null);
    Schema schema = new SchemaBuilder("i").build();
    try (FieldVector back = ArrowData.importVector(allocator, array, schema, null)) {
      assertEquals(0, back.getValueCount());
    }
  }

  // --- Streams

  @Test
  void streamRoundTrips() throws Exception {
    Iterator<Array> batches = List.of(exported(1), exported(2, 3)).iterator();
    ArrayStream stream = ArrayStream.of(exportedSchema(), batches);
    ArrowReader reader = ArrowData.importArrayStream(allocator, stream);
    assertEquals(
        "1 2 3",
        sum(
            ArrowData.importArrayStream(
                allocator, ArrowData.exportArrayStream(allocator, reader))));
    assertTrue(stream.isReleased());
  }

  @Test
  void importArrayStreamReadsDeviceStream() throws Exception {
    var batches = List.of(exported(1).toDevice(), exported(2).toDevice()).iterator();
    assertEquals(
        "1 2",
        sum(
            ArrowData.importArrayStream(
                allocator, DeviceArrayStream.of(exportedSchema(), DeviceType.CPU, batches))));
  }

  /** Reads all batches and closes the reader. */
  private static String sum(ArrowReader reader) throws Exception {
    List<String> values = new ArrayList<>();
    try (reader) {
      while (reader.loadNextBatch()) {
        IntVector column = (IntVector) reader.getVectorSchemaRoot().getVector(0);
        for (int i = 0; i < column.getValueCount(); i++) {
          values.add(String.valueOf(column.get(i)));
        }
      }
      assertEquals(Map.of(), reader.getDictionaryVectors());
    }
    return String.join(" ", values);
  }

  @Test
  void importArrayStreamReadsDictionaries() throws Exception {
    SchemaBuilder column =
        new SchemaBuilder("i").name("x").dictionary(new SchemaBuilder("i").name("values"));
    Schema schema = new SchemaBuilder("+s").child(column).build();
    try (IntVector indices = ints(1, 0);
        IntVector values = ints(8, 9)) {
      ArrayBuilder child =
          new ArrayBuilder(2)
              .buffers(0, indices.getDataBufferAddress())
              .dictionary(new ArrayBuilder(2).buffers(0, values.getDataBufferAddress()));
      ArrayBuilder table = new ArrayBuilder(2).buffers(0).child(child);
      Iterator<Array> batches = List.of(table.build(null), table.build(null)).iterator();
      ArrayStream stream = ArrayStream.of(schema, batches);
      try (ArrowReader reader = ArrowData.importArrayStream(allocator, stream)) {
        while (reader.loadNextBatch()) {
          FieldVector found = reader.getVectorSchemaRoot().getVector(0);
          assertEquals("[1, 0]", found.toString());
          long id = found.getField().getDictionary().getId();
          assertEquals("[8, 9]", reader.lookup(id).getVector().toString());
          assertEquals(List.of(id), List.copyOf(reader.getDictionaryVectors().keySet()));
        }
      }
    }
  }

  // --- Data

  private IntVector ints(int... values) {
    return Types.ints(allocator, values);
  }

  private static void fill(VarCharVector vector, String... values) {
    vector.allocateNew();
    for (int i = 0; i < values.length; i++) {
      vector.setSafe(i, new Text(values[i]));
    }
    vector.setValueCount(values.length);
  }

  private VectorSchemaRoot batch(int... values) {
    return VectorSchemaRoot.of(ints(values));
  }

  private Array exported(int... values) {
    try (VectorSchemaRoot source = batch(values)) {
      return ArrowData.exportVectorSchemaRoot(allocator, source, null);
    }
  }

  private Schema exportedSchema() {
    try (VectorSchemaRoot source = batch()) {
      return ArrowData.exportSchema(allocator, source.getSchema(), null);
    }
  }
}
