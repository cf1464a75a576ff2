// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.arrow;

import io.github.fletching.ArrayStream;
import io.github.fletching.DeviceArray;
import io.github.fletching.Owner;
import io.github.fletching.Schema;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.ArrowReader;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.arrow.vector.ipc.ArrowStreamWriter;

/**
 * One version of arrow-java in {@link ArrowVersions}, where each has its class loader. Only numbers
 * and texts leave it.
 */
final class VersionPeer {
  private static final int BATCHES = 3;

  private final BufferAllocator allocator = new RootAllocator();
  private final List<Owner> exported = new ArrayList<>();

  /** Returns the name of arrow-java's jar. */
  String version() {
    var source = VectorSchemaRoot.class.getProtectionDomain().getCodeSource();
    return Path.of(source.getLocation().getPath()).getFileName().toString();
  }

  /** Makes a batch with a column of every type. */
  private VectorSchemaRoot batch() {
    var schema = new org.apache.arrow.vector.types.pojo.Schema(Types.ALL);
    VectorSchemaRoot batch = VectorSchemaRoot.create(schema, allocator);
    batch.getFieldVectors().forEach(Types::fill);
    batch.setRowCount(batch.getVector(0).getValueCount());
    return batch;
  }

  private long export(Owner struct) {
    exported.add(struct);
    return struct.address();
  }

  /** Returns the addresses of a schema and a device array. */
  long[] exportBatch() {
    try (VectorSchemaRoot batch = batch()) {
      return new long[] {
        export(ArrowData.exportSchema(allocator, batch.getSchema(), null)),
        export(ArrowData.exportVectorSchemaRoot(allocator, batch, null).toDevice())
      };
    }
  }

  /** Returns whether the batch is the same as one of this version. */
  boolean importBatch(long schema, long array) {
    DeviceArray from = DeviceArray.wrap(array);
    try (VectorSchemaRoot batch =
            ArrowData.importVectorSchemaRoot(allocator, from, Schema.wrap(schema), null);
        VectorSchemaRoot expected = batch()) {
      return batch.equals(expected);
    }
  }

  /** Returns the address of a stream. */
  long exportStream() throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (VectorSchemaRoot batch = batch();
        ArrowStreamWriter writer = new ArrowStreamWriter(batch, null, bytes)) {
      for (int i = 0; i < BATCHES; i++) {
        writer.writeBatch();
      }
    }
    ArrowReader reader =
        new ArrowStreamReader(new ByteArrayInputStream(bytes.toByteArray()), allocator);
    return export(ArrowData.exportArrayStream(allocator, reader));
  }

  /** Returns whether the stream has the same batches as one of this version. */
  boolean importStream(long stream) throws IOException {
    try (ArrowReader reader = ArrowData.importArrayStream(allocator, ArrayStream.wrap(stream));
        VectorSchemaRoot expected = batch()) {
      int batches = 0;
      boolean same = true;
      for (; reader.loadNextBatch(); batches++) {
        same &= reader.getVectorSchemaRoot().equals(expected);
      }
      return same && batches == BATCHES;
    }
  }

  /** Fails if memory is still allocated. */
  void close() {
    exported.forEach(Owner::close);
    allocator.close();
  }
}
