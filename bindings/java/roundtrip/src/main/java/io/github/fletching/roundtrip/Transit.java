// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.roundtrip;

import io.github.fletching.DeviceArray;
import io.github.fletching.Schema;

/** Functions for a peer that has this JVM in its process. Arguments are addresses. Any thread. */
public final class Transit {
  private Transit() {}

  /**
   * Moves a schema and a device array in and fills the other two with the same data, under release
   * callbacks in Java. Returns null, or the text of an error: then nothing has moved.
   */
  public static String transit(long schema, long array, long outSchema, long outArray) {
    try {
      if (outSchema == 0 || outArray == 0) {
        return "transit: out is NULL: expected room for a struct";
      }
      pass(schema, array, outSchema, outArray);
      return null;
    } catch (Throwable thrown) {
      return thrown.toString();
    }
  }

  private static void pass(long schema, long array, long outSchema, long outArray) {
    Schema movedSchema = Schema.wrap(schema);
    DeviceArray movedArray = null;
    try {
      movedArray = DeviceArray.wrap(array);
      Dump.of(movedSchema, movedArray); // refuses malformed structs
    } catch (Throwable refused) {
      movedSchema.moveTo(schema);
      if (movedArray != null) {
        movedArray.moveTo(array);
      }
      throw refused;
    }
    try (Schema sourceSchema = movedSchema;
        DeviceArray sourceArray = movedArray;
        Schema ourSchema = Reexport.schema(sourceSchema);
        DeviceArray ourArray = Reexport.array(sourceArray)) {
      ourSchema.moveTo(outSchema);
      ourArray.moveTo(outArray);
    }
  }

  /** How many structs were exported. */
  public static long exported() {
    return Reexport.exported();
  }

  /** How many of them were released. */
  public static long released() {
    return Reexport.released();
  }
}
