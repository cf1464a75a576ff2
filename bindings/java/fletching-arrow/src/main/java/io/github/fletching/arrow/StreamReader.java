// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.arrow;

import io.github.fletching.ArrayOwner;
import io.github.fletching.BatchStream;
import io.github.fletching.FletchingException;
import java.io.IOException;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.apache.arrow.c.CDataDictionaryProvider;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.dictionary.Dictionary;
import org.apache.arrow.vector.ipc.ArrowReader;
import org.apache.arrow.vector.types.pojo.Schema;

/** An arrow-java reader over a Fletching stream. */
final class StreamReader extends ArrowReader {
  private final BatchStream<? extends ArrayOwner> stream;
  private io.github.fletching.Schema source; // null until the schema is read
  private final CDataDictionaryProvider provider = new CDataDictionaryProvider();

  StreamReader(BufferAllocator allocator, BatchStream<? extends ArrayOwner> stream) {
    super(allocator);
    this.stream = stream;
  }

  @Override
  protected Schema readSchema() throws IOException {
    try {
      return readSchema(stream.schema());
    } catch (FletchingException e) {
      throw new IOException(e.getMessage(), e);
    }
  }

  private Schema readSchema(io.github.fletching.Schema next) {
    try {
      Schema schema = ArrowData.readSchema(allocator, next, provider);
      // The reader creates the same vectors later, and would throw arrow-java's exception.
      Calls.guarded("importSchema", () -> VectorSchemaRoot.create(schema, allocator)).close();
      source = next;
      return schema;
    } finally {
      if (source != next) { // so the reader can read it again
        next.close();
      }
    }
  }

  @Override
  public boolean loadNextBatch() throws IOException {
    prepareLoadNextBatch();
    try {
      if (!stream.hasNext()) {
        return false;
      }
      ArrowData.importBatch(
          "loadNextBatch", allocator, stream.next(), source, getVectorSchemaRoot(), provider);
      return true;
    } catch (FletchingException e) {
      throw new IOException(e.getMessage(), e);
    }
  }

  @Override
  public Dictionary lookup(long id) {
    return provider.lookup(id);
  }

  @Override
  public Set<Long> getDictionaryIds() {
    return provider.getDictionaryIds();
  }

  @Override
  public Map<Long, Dictionary> getDictionaryVectors() throws IOException {
    ensureInitialized();
    return getDictionaryIds().stream().collect(Collectors.toMap(Function.identity(), this::lookup));
  }

  /** Returns 0: a stream does not count bytes. */
  @Override
  public long bytesRead() {
    return 0;
  }

  @Override
  protected void closeReadSource() {
    stream.close();
    if (source != null) {
      source.close();
    }
    provider.close();
  }
}
