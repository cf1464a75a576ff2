// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.roundtrip;

import io.github.fletching.abi.Offsets;
import io.github.fletching.abi.StructOffsets;
import io.github.fletching.abi.engine.Engine;
import io.github.fletching.abi.engine.EngineProvider;
import io.github.fletching.abi.engine.Engines;
import java.util.ServiceLoader;
import java.util.function.LongConsumer;

/** Memory of C, through the engine that the system property chooses. */
final class Rooms {
  /**
   * The name of the engine, {@code jna} or {@code ffm}; the column of the cells is named after it.
   */
  static final String ENGINE = System.getProperty(Engines.PROPERTY);

  static final Engine C = Engines.open(ServiceLoader.load(EngineProvider.class), required(ENGINE));

  private Rooms() {}

  private static String required(String engine) {
    if (engine == null) {
      throw new IllegalStateException("property " + Engines.PROPERTY + ": expected ffm or jna");
    }
    return engine;
  }

  static int offset(StructOffsets struct, String field) {
    return struct.offset(C.target(), field);
  }

  /** Runs the action on room for a struct, which it leaves released or moved. */
  static void with(StructOffsets struct, LongConsumer action) {
    long room = C.allocate(struct.size(C.target()));
    try {
      action.accept(room);
    } finally {
      C.free(room);
    }
  }

  /** Moves a schema or an array from one room to another. */
  static void move(StructOffsets struct, long from, long to) {
    C.copy(from, to, struct.size(C.target()));
    StructOffsets base = struct == Offsets.ARROW_DEVICE_ARRAY ? Offsets.ARROW_ARRAY : struct;
    C.putAddress(from + offset(base, "release"), 0);
  }
}
