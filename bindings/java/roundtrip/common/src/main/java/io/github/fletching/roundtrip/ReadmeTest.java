// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.roundtrip;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import org.junit.jupiter.api.Test;

/** Runs the example of bindings/java/README.md: [blocks] in language.toml compares the two. */
public abstract class ReadmeTest {
  private final Structs structs;

  protected ReadmeTest(Structs structs) {
    this.structs = structs;
  }

  /** Runs the example on a device array that a producer filled. */
  protected abstract String run(long deviceArray);

  @Test
  void theExampleRuns() {
    Producer producer = new Producer();
    long schema = structs.allocate(structs.schema.size);
    long array = structs.allocate(structs.deviceArraySize);
    assertNull(producer.exportArray("cpu", "int32", schema, array));
    assertEquals("4 values on cpu", run(array));
    assertEquals(0, structs.array.release.of(structs.arrayOf(array)));
    structs.schema.callRelease.accept(schema);
    structs.free(schema);
    structs.free(array);
  }
}
