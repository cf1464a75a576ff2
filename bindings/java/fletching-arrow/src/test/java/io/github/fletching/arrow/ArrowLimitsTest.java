// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.arrow;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.fletching.Array;
import io.github.fletching.ArrayBuilder;
import io.github.fletching.ArrayStream;
import io.github.fletching.FletchingException;
import io.github.fletching.Schema;
import io.github.fletching.SchemaBuilder;
import java.io.IOException;
import java.util.List;
import java.util.function.Supplier;
import org.apache.arrow.c.CDataDictionaryProvider;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.ArrowReader;
import org.junit.jupiter.api.Test;

/** Imports at every limit of arrow-java's allocator: the array is released and no memory leaks. */
class ArrowLimitsTest extends ImportFixture {
  private static final int MOST = 4096;

  private interface Import {
    void run(BufferAllocator small) throws Exception;
  }

  /** Runs an import with increasing limits until it succeeds. */
  private void walk(Import body) throws Exception {
    int failures = 0;
    for (int limit = 0; limit < MOST; limit++) {
      releases.set(0);
      boolean done = false;
      try (BufferAllocator small = allocator.newChildAllocator("small", 0, limit)) {
        body.run(small);
        done = true;
      } catch (FletchingException e) {
        assertEquals(ENOMEM, e.errno(), e::getMessage);
        failures++;
      }
      assertEquals(1, releases.get(), "releases with a limit of " + limit);
      if (done) {
        assertTrue(failures > 0);
        return;
      }
    }
    throw new AssertionError("no limit suffices");
  }

  private void walkVector(Supplier<SchemaBuilder> type, Supplier<ArrayBuilder> array)
      throws Exception {
    walk(
        small -> {
          try (CDataDictionaryProvider dictionaries = new CDataDictionaryProvider()) {
            Array source = array.get().build(counted());
            Schema schema = type.get().build();
            try {
              ArrowData.importVector(small, source, schema, dictionaries).close();
            } catch (FletchingException e) { // the array is released and must not be read
              for (long id : dictionaries.getDictionaryIds()) {
                assertEquals(0, dictionaries.lookup(id).getVector().getValueCount());
              }
              throw e;
            }
          }
        });
  }

  private ArrayBuilder withNulls() {
    return new ArrayBuilder(2).nullCount(1).buffers(at, at);
  }

  private ArrayBuilder batch() {
    return new ArrayBuilder(2).buffers(0).child(column()).child(withNulls());
  }

  private static SchemaBuilder encoded(String name) {
    return new SchemaBuilder("i").name(name).dictionary(new SchemaBuilder("i"));
  }

  @Test
  void importVectorOfAnyTypeReleases() throws Exception {
    SchemaBuilder ints = new SchemaBuilder("i").name("item");
    walkVector(() -> ints, this::column);
    walkVector(() -> ints, this::withNulls);
    data.set(0, 0);
    walkVector(() -> new SchemaBuilder("u"), () -> new ArrayBuilder(2).buffers(0, at, at));
    walkVector(
        () -> new SchemaBuilder("+l").child(ints),
        () -> new ArrayBuilder(1).buffers(0, at).child(withNulls()));
  }

  @Test
  void importVectorWithDictionaryReleases() throws Exception {
    walkVector(() -> encoded(""), () -> withNulls().dictionary(withNulls()));
    walkVector(
        () -> new SchemaBuilder("+s").child(encoded("a")).child(encoded("b")),
        () ->
            new ArrayBuilder(2)
                .buffers(0)
                .child(column().dictionary(withNulls()))
                .child(withNulls().dictionary(column())));
  }

  @Test
  void importVectorSchemaRootReleases() throws Exception {
    walk(
        small -> {
          Array source = batch().build(counted());
          ArrowData.importVectorSchemaRoot(small, source, table(2).build(), null).close();
        });
  }

  @Test
  void importIntoVectorSchemaRootReleases() throws Exception {
    walk(
        small -> {
          var schema = ArrowData.importSchema(allocator, table(2).build(), null);
          try (VectorSchemaRoot root = VectorSchemaRoot.create(schema, small)) {
            Array source = batch().build(counted());
            ArrowData.importIntoVectorSchemaRoot(small, source, root, null);
          }
        });
  }

  @Test
  void importArrayStreamReleases() throws Exception {
    walk(
        small -> {
          Array source = batch().build(counted());
          ArrayStream stream = ArrayStream.of(table(2).build(), List.of(source).iterator());
          try (ArrowReader reader = ArrowData.importArrayStream(small, stream)) {
            reader.loadNextBatch();
          } catch (IOException e) {
            throw (FletchingException) e.getCause();
          } finally {
            source.close(); // a list's iterator does not close it
          }
        });
  }

  /** Exports the schema of a table with a dictionary, and of a column without children. */
  @Test
  void exportLeaksNoMemory() throws Exception {
    walk(
        small -> {
          SchemaBuilder type = table(1).child(encoded("encoded"));
          try (CDataDictionaryProvider dictionaries = new CDataDictionaryProvider()) {
            var schema = ArrowData.importSchema(allocator, type.build(), dictionaries);
            ArrowData.exportSchema(small, schema, dictionaries).close();
            ArrowData.exportField(small, schema.getFields().get(1), dictionaries).close();
            ArrowData.exportVector(small, data, null).close();
          } finally {
            releases.incrementAndGet(); // no array is released here
          }
        });
  }
}
