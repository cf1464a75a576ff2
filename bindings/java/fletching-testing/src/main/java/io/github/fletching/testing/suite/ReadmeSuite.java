// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.fletching.Array;
import io.github.fletching.ArrayBuilder;
import io.github.fletching.DeviceArray;
import io.github.fletching.abi.DeviceType;
import io.github.fletching.testing.suite.Raw.Counted;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/**
 * Runs the examples in bindings/java/README.md: [blocks] in language.toml compares the code with
 * the README.
 */
public abstract class ReadmeSuite {
  /** Runs the example of the raw layer on a device array. */
  protected abstract String run(long deviceArray);

  @Test
  void rawLayerExampleRuns() {
    List<String> closed = new ArrayList<>();
    Raw raw = Raw.deviceArray();
    new ArrayBuilder(4)
        .buildOn(DeviceType.CPU, -1, 0, new Counted(closed, "array"))
        .moveTo(raw.address());
    assertEquals("4 values on cpu", run(raw.address()));
    assertTrue(raw.isReleased());
    assertEquals(List.of("array"), closed);
  }

  // The example begins
  static void produce(long address, long values, AutoCloseable memory) {
    Array array = new ArrayBuilder(4).buffers(0, values).build(memory);
    array.toDevice().moveTo(address); // C releases it, and then memory is closed
  }

  static String consume(long address) {
    try (DeviceArray array = DeviceArray.wrap(address)) {
      return array.length() + " values on " + array.deviceType();
    }
  }

  // The example ends

  @Test
  void safeLayerExampleRuns() {
    List<String> closed = new ArrayList<>();
    Raw raw = Raw.deviceArray();
    produce(raw.address(), 4096, new Counted(closed, "memory"));
    assertEquals("4 values on cpu", consume(raw.address()));
    assertTrue(raw.isReleased());
    assertEquals(List.of("memory"), closed);
  }
}
