// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.arrow;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.fletching.Array;
import io.github.fletching.ArrayBuilder;
import io.github.fletching.ArrayStream;
import io.github.fletching.DeviceArray;
import io.github.fletching.FletchingException;
import io.github.fletching.Schema;
import io.github.fletching.SchemaBuilder;
import io.github.fletching.SyncEvent;
import io.github.fletching.Waiter;
import io.github.fletching.Waiters;
import io.github.fletching.abi.DeviceType;
import io.github.fletching.abi.LayoutClass;
import io.github.fletching.abi.Offsets;
import io.github.fletching.abi.StructOffsets;
import java.io.IOException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.apache.arrow.c.CDataDictionaryProvider;
import org.apache.arrow.memory.ArrowBuf;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.IntVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.dictionary.DictionaryProvider.MapDictionaryProvider;
import org.apache.arrow.vector.ipc.ArrowReader;
import org.apache.arrow.vector.types.pojo.ArrowType;
import org.apache.arrow.vector.types.pojo.DictionaryEncoding;
import org.apache.arrow.vector.types.pojo.Field;
import org.apache.arrow.vector.types.pojo.FieldType;
import org.junit.jupiter.api.Test;

/** Rejected imports release their structs exactly once. */
class ArrowErrorsTest extends ImportFixture {
  @Test
  void importRejectsMalformedArray() {
    SchemaBuilder ints = new SchemaBuilder("i");
    assertRefused(
        "importVector: top level: n_buffers is wrong: expected 2, got 1",
        ints,
        new ArrayBuilder(2).buffers(0));
    assertRefused(
        "importVector: top level: buffers[1] is NULL: length is 2, null_count is 0",
        ints,
        new ArrayBuilder(2).buffers(0, 0));
    ArrayBuilder second =
        new ArrayBuilder(2).buffers(0).child(column()).child(new ArrayBuilder(2).buffers(0));
    assertRefused("field \"column 1\": n_buffers is wrong: expected 2, got 1", table(2), second);
    assertRefused(
        "top level: n_children is wrong: expected 2, got 1",
        table(2),
        new ArrayBuilder(2).buffers(0).child(column()));
    assertRefused(
        "top level: dictionary is not NULL: expected none", ints, column().dictionary(column()));
  }

  @Test
  void importRejectsOffset() {
    String text = "importVector: top level: offset: not supported by arrow-java: expected 0, got 1";
    assertRefused(text, new SchemaBuilder("i"), column().offset(1));
    ArrayBuilder below = new ArrayBuilder(2).buffers(0).child(column()).child(column().offset(1));
    assertRefused("field \"column 1\": offset: not", table(2), below);
    assertRefused(
        "top level: offset: not",
        table(1),
        new ArrayBuilder(1).offset(1).buffers(0).child(column()));
    ArrayBuilder encoded = column().dictionary(column().offset(1));
    SchemaBuilder type = new SchemaBuilder("i").dictionary(new SchemaBuilder("i"));
    try (CDataDictionaryProvider provider = new CDataDictionaryProvider()) {
      assertRefused("field \"dictionary\": offset: not", type, encoded, provider);
    }
  }

  @Test
  void importRejectsMoreThan64Levels() {
    ArrayBuilder nested = column();
    SchemaBuilder type = new SchemaBuilder("i");
    for (int i = 0; i < 65; i++) {
      nested = new ArrayBuilder(1).buffers(0).child(nested);
      type = new SchemaBuilder("+s").child(type);
    }
    assertRefused("nested too deep: expected at most 64 levels", type, nested);
  }

  @Test
  void importBatchRejectsNullRows() {
    for (int count : new int[] {1, -1}) {
      Array batch =
          new ArrayBuilder(2).nullCount(count).buffers(at).child(column()).build(counted());
      Schema schema = table(1).build();
      assertError(
          EINVAL,
          "importVectorSchemaRoot: null_count: rows that are null: expected 0, got " + count,
          () -> ArrowData.importVectorSchemaRoot(allocator, batch, schema, null).close());
      assertTrue(schema.isReleased());
    }
    assertEquals(2, releases.get());
  }

  @Test
  void importBatchRejectsMalformedColumn() {
    Array batch =
        new ArrayBuilder(2).buffers(0).child(column()).child(new ArrayBuilder(2)).build(counted());
    Schema schema = table(2).build();
    assertError(
        EINVAL,
        "importVectorSchemaRoot: field \"column 1\": n_buffers is wrong: expected 2, got 0",
        () -> ArrowData.importVectorSchemaRoot(allocator, batch, schema, null).close());
    assertEquals(1, releases.get());
  }

  @Test
  void importRejectsDeviceMemory() {
    for (DeviceType device : List.of(DeviceType.CUDA, DeviceType.VULKAN, DeviceType.of(99))) {
      releases.set(0);
      DeviceArray source = column().buildOn(device, 0, 0, counted());
      Schema schema = new SchemaBuilder("i").build();
      assertError(
          EINVAL,
          "importVector: device_type: expected memory that the CPU can access, got " + device,
          () -> ArrowData.importVector(allocator, source, schema, null).close());
      assertEquals(1, releases.get());
      assertTrue(schema.isReleased());
    }
    DeviceArray pinned = column().buildOn(DeviceType.CUDA_HOST, 0, 0, counted());
    ArrowData.importVector(allocator, pinned, new SchemaBuilder("i").build(), null).close();
  }

  /** Returns a CPU array with an event that a registered waiter handles. */
  private DeviceArray withEvent() {
    StructOffsets struct = Offsets.ARROW_DEVICE_ARRAY;
    LayoutClass target = LayoutClass.of(8, 8);
    try (ArrowBuf raw = allocator.buffer(struct.size(target))) {
      column().build(counted()).toDevice().moveTo(raw.memoryAddress());
      raw.setLong(struct.offset(target, "sync_event"), 4096);
      return DeviceArray.wrap(raw.memoryAddress());
    }
  }

  private FieldVector importWithEvent() {
    return ArrowData.importVector(allocator, withEvent(), new SchemaBuilder("i").build(), null);
  }

  @Test
  void importWaitsForEvent() {
    List<Integer> waited = new ArrayList<>();
    Waiter waiter =
        new Waiter() {
          @Override
          public void synchronize(SyncEvent event) {
            waited.add(data.get(0));
            data.set(0, 8); // the producer's work
            if (waited.size() == 2) {
              throw new FletchingException(ENOMEM, "lost");
            }
          }
        };
    Waiters.register(DeviceType.CPU, waiter);
    try (FieldVector found = importWithEvent()) {
      assertEquals("[8, 2]", found.toString());
      assertEquals(List.of(1), waited);
    }
    assertError(ENOMEM, "lost", this::importWithEvent);
    Waiters.unregister(DeviceType.CPU);
    assertError(ENOTSUP, "no way to wait on an event of cpu", this::importWithEvent);
    assertEquals(3, releases.get());
  }

  @Test
  void closeDuringImportIsIgnored() {
    DeviceArray source = withEvent();
    Waiters.register(
        DeviceType.CPU,
        new Waiter() {
          @Override
          public void synchronize(SyncEvent event) {
            source.close();
            assertEquals(0, releases.get());
          }
        });
    Schema schema = new SchemaBuilder("i").build();
    try (FieldVector found = ArrowData.importVector(allocator, source, schema, null)) {
      assertEquals("[1, 2]", found.toString());
    } finally {
      Waiters.unregister(DeviceType.CPU);
    }
    assertEquals(1, releases.get());
  }

  @Test
  void importRejectsClosedOwner() {
    Array closed = column().build(null);
    closed.close();
    for (String type : new String[] {"i", "+s"}) {
      Schema schema = new SchemaBuilder(type).build();
      assertThrows(
          IllegalStateException.class,
          () -> {
            if (type.equals("i")) {
              ArrowData.importVector(allocator, closed, schema, null);
            } else {
              ArrowData.importVectorSchemaRoot(allocator, closed, schema, null);
            }
          });
      assertTrue(schema.isReleased());
      Array array = column().build(counted());
      assertThrows(
          IllegalStateException.class,
          () -> ArrowData.importVector(allocator, array, schema, null));
    }
    assertEquals(2, releases.get());
    ArrayStream stream = ArrayStream.of(table(1).build(), List.<Array>of().iterator());
    stream.close();
    assertThrows(IllegalStateException.class, () -> ArrowData.importArrayStream(allocator, stream));
  }

  @Test
  void importRejectsUnsupportedSchema() {
    Schema unknown = new SchemaBuilder("unknown").build();
    assertError(
        EINVAL,
        "importField: top level: format: unknown: expected a format string of the C data",
        () -> ArrowData.importField(allocator, unknown, null));
    Schema notStruct = new SchemaBuilder("i").build();
    assertError(
        EINVAL,
        "importSchema: arrow-java: ",
        () -> ArrowData.importSchema(allocator, notStruct, null));
    assertTrue(unknown.isReleased() && notStruct.isReleased());
  }

  /** The array was not moved yet, so the import releases it. */
  @Test
  void importAtAllocatorLimitReturnsEnomem() {
    try (BufferAllocator small = allocator.newChildAllocator("small", 0, 1)) {
      Array source = column().build(counted());
      Schema schema = new SchemaBuilder("i").build();
      assertError(
          ENOMEM,
          "importVector: arrow-java: ",
          () -> ArrowData.importVector(small, source, schema, null).close());
      assertEquals(1, releases.get());
      assertError(
          ENOMEM, "exportVector: ", () -> ArrowData.exportVector(small, data, null).close());
      assertError(
          ENOMEM,
          "exportField: ",
          () -> ArrowData.exportField(small, data.getField(), null).close());
    }
  }

  @Test
  void exportRejectsMissingDictionary() {
    FieldType type =
        new FieldType(true, new ArrowType.Int(32, true), new DictionaryEncoding(7, false, null));
    MapDictionaryProvider none = new MapDictionaryProvider();
    try (VectorSchemaRoot root =
        VectorSchemaRoot.create(
            new org.apache.arrow.vector.types.pojo.Schema(List.of(new Field("x", type, null))),
            allocator)) {
      root.allocateNew();
      root.setRowCount(1);
      String text = "exportVectorSchemaRoot: field \"x\": dictionary 7: not in the provider";
      assertError(
          EINVAL, text, () -> ArrowData.exportVectorSchemaRoot(allocator, root, none).close());
      text = "exportVector: field \"x\": dictionary 7: not in the provider";
      assertError(
          EINVAL, text, () -> ArrowData.exportVector(allocator, root.getVector(0), none).close());
    }
  }

  /** The stream's error is the cause, and closing the reader closes the stream. */
  @Test
  void readerErrorHasStreamErrorAsCause() throws IOException {
    Iterator<Array> failing =
        new Iterator<>() {
          @Override
          public boolean hasNext() {
            throw new FletchingException(ENOMEM, "no luck");
          }

          @Override
          public Array next() {
            return null;
          }
        };
    ArrayStream stream = ArrayStream.of(table(1).build(), failing);
    try (ArrowReader reader = ArrowData.importArrayStream(allocator, stream)) {
      assertFalse(stream.isReleased());
      IOException thrown = assertThrows(IOException.class, reader::loadNextBatch);
      assertEquals("no luck", thrown.getMessage());
      assertEquals(ENOMEM, ((FletchingException) thrown.getCause()).errno());
    }
    assertTrue(stream.isReleased());
  }

  @Test
  void readerRejectsMismatchedBatchAndSchema() throws IOException {
    Array batch = new ArrayBuilder(2).buffers(0).child(column()).child(column()).build(counted());
    ArrayStream stream = ArrayStream.of(table(1).build(), List.of(batch).iterator());
    try (ArrowReader reader = ArrowData.importArrayStream(allocator, stream)) {
      IOException thrown = assertThrows(IOException.class, reader::loadNextBatch);
      assertEquals("get_next: batch 0: expected 1 children, got 2", thrown.getMessage());
    }
    assertEquals(1, releases.get());
    ArrayStream notStruct =
        ArrayStream.of(new SchemaBuilder("i").build(), List.<Array>of().iterator());
    try (ArrowReader reader = ArrowData.importArrayStream(allocator, notStruct)) {
      IOException thrown = assertThrows(IOException.class, reader::getVectorSchemaRoot);
      assertTrue(thrown.getMessage().startsWith("importSchema: arrow-java: "), thrown::toString);
    }
  }

  private static int openOwners() throws ReflectiveOperationException {
    Method count = Class.forName("io.github.fletching.Slot").getDeclaredMethod("countOpen");
    count.setAccessible(true);
    return (int) count.invoke(null);
  }

  @Test
  void readerWithRejectedSchemaLeaksNoOwner() throws IOException, ReflectiveOperationException {
    SchemaBuilder refused = new SchemaBuilder("+s").child(new SchemaBuilder("d:5,2,32"));
    ArrayStream stream = ArrayStream.of(refused.build(), List.<Array>of().iterator());
    int open = openOwners();
    try (ArrowReader reader = ArrowData.importArrayStream(allocator, stream)) {
      for (int i = 0; i < 2; i++) {
        assertThrows(IOException.class, reader::getVectorSchemaRoot);
        assertEquals(open, openOwners());
      }
    }
  }

  @Test
  void closedReaderReleasesSchema() throws IOException, ReflectiveOperationException {
    int open = openOwners();
    ArrayStream stream = ArrayStream.of(table(1).build(), List.<Array>of().iterator());
    try (ArrowReader reader = ArrowData.importArrayStream(allocator, stream)) {
      assertFalse(reader.loadNextBatch());
    }
    assertEquals(open, openOwners());
  }

  /** A consumer would read past the end of the column. */
  @Test
  void exportBatchRejectsShortColumn() {
    try (IntVector column = new IntVector("x", allocator)) {
      column.allocateNew(2);
      column.setValueCount(2);
      VectorSchemaRoot root = new VectorSchemaRoot(List.of(column.getField()), List.of(column), 3);
      assertError(
          EINVAL,
          "exportVectorSchemaRoot: field \"x\": length: expected at least the 3 rows of the batch, got 2",
          () -> ArrowData.exportVectorSchemaRoot(allocator, root, null).close());
      root.setRowCount(2);
      ArrowData.exportVectorSchemaRoot(allocator, root, null).close();
    }
  }

  @Test
  void unsupportedOperationIsEnosys() {
    Runnable unsupported =
        () ->
            Calls.guarded(
                "importField",
                () -> {
                  throw new UnsupportedOperationException("no such type");
                });
    assertError(ENOSYS, "importField: arrow-java: no such type", unsupported);
  }
}
