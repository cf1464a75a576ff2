// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.arrow;

import io.github.fletching.Array;
import io.github.fletching.ArrayOwner;
import io.github.fletching.ArrayStream;
import io.github.fletching.BatchStream;
import io.github.fletching.DeviceArray;
import io.github.fletching.FletchingException;
import io.github.fletching.Owner;
import io.github.fletching.Schema;
import java.util.List;
import java.util.function.BiConsumer;
import org.apache.arrow.c.ArrowArray;
import org.apache.arrow.c.ArrowSchema;
import org.apache.arrow.c.CDataDictionaryProvider;
import org.apache.arrow.c.Data;
import org.apache.arrow.c.StructVectorUnloader;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.VectorLoader;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.complex.StructVector;
import org.apache.arrow.vector.dictionary.DictionaryProvider;
import org.apache.arrow.vector.ipc.ArrowReader;
import org.apache.arrow.vector.ipc.message.ArrowRecordBatch;
import org.apache.arrow.vector.types.pojo.Field;

/**
 * The operations of arrow-java's {@link Data} under the same names, on owners instead of addresses.
 * The dictionary provider may be null if no field has a dictionary.
 *
 * <p><b>Ownership.</b> Imports close their sources, also when they fail; a source is then released
 * exactly once. Vectors release an imported array with their last buffer, so close the vectors, and
 * the provider, which owns the dictionary vectors. Exports share their buffers: close the source at
 * any time, but the allocator only after the consumer's release.
 *
 * <p><b>Devices.</b> An array can be imported if the CPU can access its memory: cpu, cuda_host,
 * cuda_managed, rocm_host. The import waits for its event first, as {@link
 * DeviceArray#synchronize()} does, so it blocks until the producer's work is done.
 *
 * <p><b>Errors.</b> {@link FletchingException}: EINVAL for memory of another device, for an array
 * with an offset (not supported by arrow-java), for null rows in a batch, and for input that
 * arrow-java rejects, with its exception as the cause; the errors of {@code synchronize}; ENOMEM if
 * the allocator reaches its limit. IllegalStateException if an owner is closed.
 *
 * <p><b>Threads.</b> As for {@link Owner}; an exported struct may be released on any thread.
 *
 * <p>See the Arrow C data interface and the Arrow C stream interface.
 */
public final class ArrowData {
  private ArrowData() {}

  // --- From arrow-java

  /**
   * Exports a field as the schema of a column.
   *
   * @param allocator the allocator for arrow-java's structs and vectors
   * @param field the field to export
   * @param dictionaries the dictionary provider; may be null
   * @return the schema
   */
  public static Schema exportField(
      BufferAllocator allocator, Field field, DictionaryProvider dictionaries) {
    String operation = "exportField";
    Fields.checkExport(operation, List.of(field), dictionaries);
    return exported(
        operation,
        allocator,
        (recording, out) -> Data.exportField(recording, field, dictionaries, out));
  }

  /**
   * Exports the schema of record batches as a struct type.
   *
   * @param allocator the allocator for arrow-java's structs and vectors
   * @param schema the schema of the record batches
   * @param dictionaries the dictionary provider; may be null
   * @return the schema
   */
  public static Schema exportSchema(
      BufferAllocator allocator,
      org.apache.arrow.vector.types.pojo.Schema schema,
      DictionaryProvider dictionaries) {
    String operation = "exportSchema";
    Fields.checkMetadata(operation, Fields.title(""), schema.getCustomMetadata());
    Fields.checkExport(operation, schema.getFields(), dictionaries);
    return exported(
        operation,
        allocator,
        (recording, out) -> Data.exportSchema(recording, schema, dictionaries, out));
  }

  /** Exports through a copy, because arrow-java writes NULL for a null name. */
  private static Schema exported(
      String operation,
      BufferAllocator allocator,
      BiConsumer<BufferAllocator, ArrowSchema> export) {
    Allocations made = new Allocations(allocator);
    return Calls.guarded(
        operation,
        made::close,
        () -> {
          try (ArrowSchema out = ArrowSchema.allocateNew(allocator)) {
            export.accept(made.recording, out);
            try (Schema schema = Schema.wrap(out.memoryAddress())) {
              return schema.view().toBuilder().build();
            }
          }
        });
  }

  /**
   * Exports a vector.
   *
   * @param allocator the allocator for arrow-java's structs and vectors
   * @param vector the vector to export
   * @param dictionaries the dictionary provider; may be null
   * @return the array
   */
  public static Array exportVector(
      BufferAllocator allocator, FieldVector vector, DictionaryProvider dictionaries) {
    String operation = "exportVector";
    List<Field> fields = List.of(vector.getField());
    Fields.checkExport(operation, fields, dictionaries);
    Unions.checkExport(operation, List.of(vector), fields, "");
    return Calls.guarded(
        operation,
        () -> {
          try (ArrowArray out = ArrowArray.allocateNew(allocator)) {
            Data.exportVector(allocator, vector, dictionaries, out);
            return (Array) Importable.plain(Array.wrap(out.memoryAddress()));
          }
        });
  }

  /**
   * Exports a record batch as a struct array.
   *
   * @param allocator the allocator for arrow-java's structs and vectors
   * @param root the record batch
   * @param dictionaries the dictionary provider; may be null
   * @return the struct array
   */
  public static Array exportVectorSchemaRoot(
      BufferAllocator allocator, VectorSchemaRoot root, DictionaryProvider dictionaries) {
    String operation = "exportVectorSchemaRoot";
    List<Field> fields = root.getSchema().getFields();
    Fields.checkExport(operation, fields, dictionaries);
    Unions.checkExport(operation, root.getFieldVectors(), fields, "");
    checkRows(operation, root);
    return Calls.guarded(
        operation,
        () -> {
          try (ArrowArray out = ArrowArray.allocateNew(allocator)) {
            Data.exportVectorSchemaRoot(allocator, root, dictionaries, out);
            return (Array) Importable.plain(Array.wrap(out.memoryAddress()));
          }
        });
  }

  /** Rejects columns shorter than the batch: a consumer would read past their end. */
  private static void checkRows(String operation, VectorSchemaRoot root) {
    int rows = root.getRowCount();
    for (FieldVector column : root.getFieldVectors()) {
      if (column.getValueCount() < rows) {
        throw Calls.invalid(
            operation,
            Fields.title(column.getName())
                + ": length: expected at least the "
                + rows
                + " rows of the batch, got "
                + column.getValueCount());
      }
    }
  }

  /**
   * Exports the batches of a reader. Closing the stream closes the reader. The schema is read at
   * once; if that fails, the caller keeps the reader.
   *
   * @param allocator the allocator for arrow-java's structs and vectors
   * @param reader the reader to export
   * @return the stream
   */
  public static ArrayStream exportArrayStream(BufferAllocator allocator, ArrowReader reader) {
    return ReaderBatches.export(allocator, reader);
  }

  // --- To arrow-java

  /**
   * Imports a schema of any type. Its dictionaries become empty vectors in the provider.
   *
   * @param allocator the allocator for arrow-java's structs and vectors
   * @param schema the schema to import; always closed
   * @param dictionaries the dictionary provider; may be null
   * @return the field
   */
  public static Field importField(
      BufferAllocator allocator, Schema schema, CDataDictionaryProvider dictionaries) {
    String operation = "importField";
    try (schema;
        Schema source = Fields.importable(operation, schema, dictionaries)) {
      ArrowSchema struct = ArrowSchema.wrap(source.address());
      return Calls.guarded(operation, () -> Data.importField(allocator, struct, dictionaries));
    }
  }

  /**
   * Imports the schema of record batches, which must be a struct.
   *
   * @param allocator the allocator for arrow-java's structs and vectors
   * @param schema the schema to import; always closed
   * @param dictionaries the dictionary provider; may be null
   * @return the schema
   */
  public static org.apache.arrow.vector.types.pojo.Schema importSchema(
      BufferAllocator allocator, Schema schema, CDataDictionaryProvider dictionaries) {
    try (schema) {
      return readSchema(allocator, schema, dictionaries);
    }
  }

  /** Imports the schema without closing it. */
  static org.apache.arrow.vector.types.pojo.Schema readSchema(
      BufferAllocator allocator, Schema schema, CDataDictionaryProvider dictionaries) {
    String operation = "importSchema";
    try (Schema source = Fields.importable(operation, schema, dictionaries)) {
      ArrowSchema struct = ArrowSchema.wrap(source.address());
      return Calls.guarded(operation, () -> Data.importSchema(allocator, struct, dictionaries));
    }
  }

  /**
   * Imports an array or a device array.
   *
   * @param allocator the allocator for arrow-java's structs and vectors
   * @param array the array to import; always closed
   * @param schema the type of the array; always closed
   * @param dictionaries the dictionary provider; may be null
   * @return the vector
   */
  public static FieldVector importVector(
      BufferAllocator allocator,
      ArrayOwner array,
      Schema schema,
      CDataDictionaryProvider dictionaries) {
    String operation = "importVector";
    try (array;
        schema;
        ArrayOwner source = Importable.of(operation, array, schema)) {
      Field field = importField(allocator, schema, dictionaries);
      FieldVector vector = Calls.guarded(operation, () -> field.createVector(allocator));
      return Calls.guarded(
          operation,
          vector::close,
          () -> {
            ArrowArray struct = ArrowArray.wrap(source.address());
            Allocations.importIntoVector(allocator, struct, vector, dictionaries);
            Importable.checkTexts(operation, List.of(vector));
            return vector;
          });
    }
  }

  /**
   * Imports a record batch: a struct without null rows.
   *
   * @param allocator the allocator for arrow-java's structs and vectors
   * @param batch the record batch; always closed
   * @param schema the type of the batch; always closed
   * @param dictionaries the dictionary provider; may be null
   * @return the root
   */
  public static VectorSchemaRoot importVectorSchemaRoot(
      BufferAllocator allocator,
      ArrayOwner batch,
      Schema schema,
      CDataDictionaryProvider dictionaries) {
    String operation = "importVectorSchemaRoot";
    try (batch;
        schema;
        ArrayOwner source = Importable.ofBatch(operation, batch, schema)) {
      var type = importSchema(allocator, schema, dictionaries);
      VectorSchemaRoot root =
          Calls.guarded(operation, () -> VectorSchemaRoot.create(type, allocator));
      return Calls.guarded(
          operation, root::close, () -> moveInto(operation, allocator, source, root, dictionaries));
    }
  }

  /**
   * Imports a record batch into a root with the same schema, replacing the root's contents.
   *
   * @param allocator the allocator for arrow-java's structs and vectors
   * @param batch the record batch; always closed
   * @param root the root to fill
   * @param dictionaries the dictionary provider; may be null
   */
  public static void importIntoVectorSchemaRoot(
      BufferAllocator allocator,
      ArrayOwner batch,
      VectorSchemaRoot root,
      CDataDictionaryProvider dictionaries) {
    try (batch;
        Schema schema = exportSchema(allocator, root.getSchema(), dictionaries)) {
      String operation = "importIntoVectorSchemaRoot";
      importBatch(operation, allocator, batch, schema, root, dictionaries);
    }
  }

  /** Imports a batch; {@code schema} is the exported schema of the root and is not closed. */
  static void importBatch(
      String operation,
      BufferAllocator allocator,
      ArrayOwner batch,
      Schema schema,
      VectorSchemaRoot root,
      CDataDictionaryProvider dictionaries) {
    try (batch;
        ArrayOwner source = Importable.ofBatch(operation, batch, schema)) {
      Calls.guarded(operation, () -> moveInto(operation, allocator, source, root, dictionaries));
    }
  }

  private static VectorSchemaRoot moveInto(
      String operation,
      BufferAllocator allocator,
      ArrayOwner source,
      VectorSchemaRoot root,
      CDataDictionaryProvider dictionaries) {
    ArrowArray struct = ArrowArray.wrap(source.address());
    try (StructVector rows = StructVector.emptyWithDuplicates("", allocator)) {
      rows.initializeChildrenFromFields(root.getSchema().getFields());
      Allocations.importIntoVector(allocator, struct, rows, dictionaries);
      try (ArrowRecordBatch batch = new StructVectorUnloader(rows).getRecordBatch()) {
        new VectorLoader(root).load(batch);
      }
    }
    Importable.checkTexts(operation, root.getFieldVectors());
    return root;
  }

  /**
   * Returns a reader of the stream's batches, each imported as by {@link
   * #importIntoVectorSchemaRoot}. The reader owns the stream and closes it. It throws IOExceptions
   * with a FletchingException as the cause, and makes no call to the stream until it is first used.
   *
   * @param allocator the allocator for arrow-java's structs and vectors
   * @param stream the stream to import
   * @return the reader
   */
  public static ArrowReader importArrayStream(
      BufferAllocator allocator, BatchStream<? extends ArrayOwner> stream) {
    return new StreamReader(allocator, Calls.live("importArrayStream", stream));
  }
}
