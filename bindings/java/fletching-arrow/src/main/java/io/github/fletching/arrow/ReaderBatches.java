// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.arrow;

import io.github.fletching.Array;
import io.github.fletching.ArrayStream;
import io.github.fletching.FletchingException;
import io.github.fletching.Schema;
import io.github.fletching.abi.Errno;
import java.io.IOException;
import java.util.Iterator;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.ArrowReader;

/** The batches of an arrow-java reader, as the source of a Fletching stream. */
final class ReaderBatches implements Iterator<Array>, AutoCloseable {
  private final BufferAllocator allocator;
  private final ArrowReader reader;

  private ReaderBatches(BufferAllocator allocator, ArrowReader reader) {
    this.allocator = allocator;
    this.reader = reader;
  }

  static ArrayStream export(BufferAllocator allocator, ArrowReader reader) {
    ReaderBatches batches = new ReaderBatches(allocator, reader);
    Schema schema = ArrowData.exportSchema(allocator, batches.root().getSchema(), reader);
    return ArrayStream.of(schema, batches);
  }

  private interface Read<T> {
    T run() throws IOException;
  }

  private static <T> T read(Read<T> body) {
    try {
      return body.run();
    } catch (IOException e) {
      boolean known = e.getCause() instanceof FletchingException;
      int errno = known ? ((FletchingException) e.getCause()).errno() : Errno.EIO;
      throw new FletchingException(
          errno, e.getMessage() == null ? e.toString() : e.getMessage(), e);
    }
  }

  private VectorSchemaRoot root() {
    return read(reader::getVectorSchemaRoot);
  }

  /** Loads the batch: the stream calls this once per batch. */
  @Override
  public boolean hasNext() {
    return read(reader::loadNextBatch);
  }

  @Override
  public Array next() {
    return ArrowData.exportVectorSchemaRoot(allocator, root(), reader);
  }

  @Override
  public void close() throws IOException {
    reader.close();
  }
}
