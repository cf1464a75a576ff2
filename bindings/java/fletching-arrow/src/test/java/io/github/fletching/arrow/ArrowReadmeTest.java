// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.arrow;

import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.fletching.DeviceArray;
import io.github.fletching.Schema;
import io.github.fletching.abi.LayoutClass;
import io.github.fletching.abi.Offsets;
import org.apache.arrow.memory.ArrowBuf;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.junit.jupiter.api.Test;

/** Runs the example of bindings/java/README.md: [blocks] in language.toml compares the two. */
class ArrowReadmeTest {
  // The example begins
  static void send(BufferAllocator allocator, VectorSchemaRoot batch, long schema, long array) {
    ArrowData.exportSchema(allocator, batch.getSchema(), null).moveTo(schema);
    ArrowData.exportVectorSchemaRoot(allocator, batch, null).toDevice().moveTo(array);
  }

  static VectorSchemaRoot receive(BufferAllocator allocator, long schema, long array) {
    DeviceArray batch = DeviceArray.wrap(array); // from any producer; import waits for its event
    return ArrowData.importVectorSchemaRoot(allocator, batch, Schema.wrap(schema), null);
  }

  // The example ends

  @Test
  void exampleRuns() {
    LayoutClass target = LayoutClass.of(8, 8);
    try (BufferAllocator allocator = new RootAllocator();
        ArrowBuf schema = allocator.buffer(Offsets.ARROW_SCHEMA.size(target));
        ArrowBuf array = allocator.buffer(Offsets.ARROW_DEVICE_ARRAY.size(target));
        VectorSchemaRoot batch = VectorSchemaRoot.of(Types.ints(allocator, 1, 2))) {
      send(allocator, batch, schema.memoryAddress(), array.memoryAddress());
      try (VectorSchemaRoot back =
          receive(allocator, schema.memoryAddress(), array.memoryAddress())) {
        assertTrue(batch.equals(back), back::contentToTSVString);
      }
    }
  }
}
