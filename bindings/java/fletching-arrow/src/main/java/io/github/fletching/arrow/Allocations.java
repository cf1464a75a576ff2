// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.arrow;

import io.github.fletching.Array;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import org.apache.arrow.c.ArrowArray;
import org.apache.arrow.c.Data;
import org.apache.arrow.memory.ArrowBuf;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.dictionary.DictionaryProvider;
import org.apache.arrow.vector.types.pojo.DictionaryEncoding;
import org.apache.arrow.vector.types.pojo.Field;

/**
 * Tracks the buffers that arrow-java allocates in one call. If the allocator reaches its limit
 * during an import or export, arrow-java leaks some of them.
 */
final class Allocations implements InvocationHandler {
  private final BufferAllocator allocator;
  private final List<ArrowBuf> buffers = new ArrayList<>(1);

  /** Delegates to the allocator and records the buffers, which belong to the allocator. */
  final BufferAllocator recording =
      (BufferAllocator)
          Proxy.newProxyInstance(
              BufferAllocator.class.getClassLoader(), new Class<?>[] {BufferAllocator.class}, this);

  Allocations(BufferAllocator allocator) {
    this.allocator = allocator;
  }

  @Override
  public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
    try {
      Object result = method.invoke(allocator, arguments);
      if (method.getName().equals("buffer")) {
        buffers.add((ArrowBuf) result);
      }
      return result;
    } catch (InvocationTargetException e) {
      throw e.getCause();
    }
  }

  /** Closes the open buffers after a failed call. */
  void close() {
    for (ArrowBuf buffer : buffers) {
      if (buffer.refCnt() > 0) {
        buffer.close();
      }
    }
  }

  /**
   * Imports an array, or releases it on failure. Each buffer of a vector holds a reference to the
   * array, and arrow-java leaks the reference that it takes before the allocator rejects the
   * buffer.
   */
  static void importIntoVector(
      BufferAllocator allocator,
      ArrowArray source,
      FieldVector vector,
      DictionaryProvider dictionaries) {
    Allocations made = new Allocations(allocator);
    boolean done = false;
    try {
      Data.importIntoVector(made.recording, source, vector, dictionaries);
      done = true;
    } finally {
      if (!done) { // after this, nobody uses the array
        vector.clear();
        clearDictionaries(vector.getField(), dictionaries);
        made.releaseArray();
        made.close();
      }
    }
  }

  private static void clearDictionaries(Field field, DictionaryProvider dictionaries) {
    DictionaryEncoding encoding = field.getDictionary();
    if (encoding != null && dictionaries != null) {
      dictionaries.lookup(encoding.getId()).getVector().clear();
    }
    field.getChildren().forEach(child -> clearDictionaries(child, dictionaries));
  }

  /** Releases the array if the import has moved it into the first buffer. */
  private void releaseArray() {
    ArrowBuf copy = buffers.isEmpty() ? null : buffers.get(0);
    boolean kept = copy != null && copy.refCnt() > 0;
    if (kept && ArrowArray.wrap(copy.memoryAddress()).snapshot().release != 0) {
      Array.wrap(copy.memoryAddress()).close();
    }
  }
}
