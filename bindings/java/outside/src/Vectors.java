// SPDX-License-Identifier: Apache-2.0
package outside;

import io.github.fletching.Array;
import io.github.fletching.Schema;
import io.github.fletching.arrow.ArrowData;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.IntVector;

/** Sends a vector of arrow-java through the C data interface and back. */
final class Vectors {
  private Vectors() {}

  public static void main(String[] arguments) {
    try (RootAllocator allocator = new RootAllocator();
        IntVector source = new IntVector("x", allocator)) {
      source.allocateNew(1);
      source.set(0, 7);
      source.setValueCount(1);
      Schema schema = ArrowData.exportField(allocator, source.getField(), null);
      Array array = ArrowData.exportVector(allocator, source, null);
      try (var back = ArrowData.importVector(allocator, array, schema, null)) {
        System.out.println(back);
      }
    }
  }
}
