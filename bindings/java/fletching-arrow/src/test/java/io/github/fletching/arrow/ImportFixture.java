// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.arrow;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.fletching.Array;
import io.github.fletching.ArrayBuilder;
import io.github.fletching.FletchingException;
import io.github.fletching.Schema;
import io.github.fletching.SchemaBuilder;
import io.github.fletching.abi.Errno;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.arrow.c.CDataDictionaryProvider;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.IntVector;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;

/** Fixture with four integers, counted releases, and an allocator that must be empty at the end. */
abstract class ImportFixture {
  static final int ENOMEM = Errno.ENOMEM;
  static final int EINVAL = Errno.EINVAL;
  static final int ENOSYS = Errno.ENOSYS;
  static final int ENOTSUP = Errno.ENOTSUP;

  final BufferAllocator allocator = new RootAllocator();
  final AtomicInteger releases = new AtomicInteger();
  IntVector data;
  long at;

  @BeforeEach
  void makeData() {
    data = Types.ints(allocator, 1, 2, 3, 4);
    at = data.getDataBuffer().memoryAddress();
  }

  @AfterEach
  void nothingIsLeft() {
    data.close();
    allocator.close(); // throws if memory is still allocated
  }

  Object counted() {
    return (AutoCloseable) releases::incrementAndGet;
  }

  ArrayBuilder column() {
    return new ArrayBuilder(2).buffers(0, at);
  }

  static SchemaBuilder table(int columns) {
    SchemaBuilder table = new SchemaBuilder("+s");
    for (int i = 0; i < columns; i++) {
      table.child(new SchemaBuilder("i").name("column " + i));
    }
    return table;
  }

  static void assertError(int errno, String text, Runnable action) {
    FletchingException thrown = assertThrows(FletchingException.class, action::run);
    assertTrue(thrown.getMessage().contains(text), thrown::getMessage);
    assertEquals(errno, thrown.errno());
  }

  void assertRefused(String text, SchemaBuilder type, ArrayBuilder array) {
    assertRefused(text, type, array, null);
  }

  void assertRefused(
      String text, SchemaBuilder type, ArrayBuilder array, CDataDictionaryProvider dictionaries) {
    releases.set(0);
    Schema schema = type.build();
    Array source = array.build(counted());
    assertError(
        EINVAL,
        text,
        () -> ArrowData.importVector(allocator, source, schema, dictionaries).close());
    assertEquals(1, releases.get(), text);
    assertTrue(source.isReleased() && schema.isReleased(), text);
  }
}
