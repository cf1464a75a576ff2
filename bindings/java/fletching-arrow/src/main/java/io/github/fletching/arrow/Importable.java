// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.arrow;

import io.github.fletching.Array;
import io.github.fletching.ArrayBuilder;
import io.github.fletching.ArrayOwner;
import io.github.fletching.ArrayView;
import io.github.fletching.DeviceArray;
import io.github.fletching.FletchingException;
import io.github.fletching.Schema;
import io.github.fletching.SchemaView;
import io.github.fletching.abi.DeviceType;
import java.nio.ByteBuffer;
import org.apache.arrow.memory.util.MemoryUtil;

/** What arrow-java assumes about an array, and reads wrong where it does not hold. */
final class Importable {
  private static final int MOST_LEVELS = 64; // arrow-java refuses more
  private static final ByteBuffer ZERO = ByteBuffer.allocateDirect(Long.BYTES); // an offset
  private static final long ZERO_ADDRESS = MemoryUtil.getByteBufferAddress(ZERO);

  private final String operation;

  private Importable(String operation) {
    this.operation = operation;
  }

  /** Waits for the event of an array; returns what arrow-java can import, which owns the array. */
  static ArrayOwner of(String operation, ArrayOwner array, Schema schema) {
    Calls.live(operation, array);
    Importable result = new Importable(operation);
    Calls.named(operation, () -> array.check(Calls.live(operation, schema)));
    result.check(array.view(), schema.view(), schema.name(), 0);
    if (array instanceof DeviceArray) {
      result.checkDevice((DeviceArray) array);
    }
    return plain(array);
  }

  static ArrayOwner ofBatch(String operation, ArrayOwner batch, Schema schema) {
    ArrayOwner result = of(operation, batch, schema);
    long nulls = result.nullCount();
    if (nulls != 0) {
      result.close();
      throw Calls.invalid(
          operation,
          "null_count: rows that are null: expected 0, got "
              + nulls
              + "; hint: import it as a vector");
    }
    return result;
  }

  private void checkDevice(DeviceArray array) {
    DeviceType found = array.deviceType();
    if (!found.accessibleFrom().contains(DeviceType.CPU)) {
      throw Calls.invalid(
          operation,
          "device_type: expected memory that the CPU can access, got "
              + found
              + "; hint: copy it to the host");
    }
    array.synchronize();
  }

  private void check(ArrayView array, SchemaView schema, String path, int level) {
    if (level > MOST_LEVELS) {
      throw Calls.invalid(
          operation, "nested too deep: expected at most " + MOST_LEVELS + " levels");
    }
    int children = array.childCount();
    boolean empty = array.length() == 0 || (array.buffers().length == 0 && children == 0);
    if (array.offset() != 0 && !empty) {
      // Up to 19.0 at least arrow-java reads the values before the first one.
      throw unsupported(path, "offset", "0", array.offset(), "copy the slice");
    }
    if (array.length() > Integer.MAX_VALUE) {
      throw unsupported(
          path, "length", "at most " + Integer.MAX_VALUE, array.length(), "split the array");
    }
    for (int i = 0; i < children; i++) {
      SchemaView child = schema.child(i);
      check(array.child(i), child, Fields.path(path, i, child.name()), level + 1);
    }
    if (!array.dictionary().isReleased()) {
      check(array.dictionary(), schema.dictionary(), Fields.dictionaryPath(path), level + 1);
    }
  }

  private FletchingException unsupported(
      String path, String what, String expected, long got, String hint) {
    return Calls.invalid(
        operation,
        Fields.title(path)
            + ": "
            + what
            + ": not supported by arrow-java: expected "
            + expected
            + ", got "
            + got
            + "; hint: "
            + hint);
  }

  /**
   * Returns the array with null counts that are known, because without validity there are no nulls,
   * and with a zero as the offsets of empty arrays, which other libraries read there.
   */
  static ArrayOwner plain(ArrayOwner array) {
    if (isPlain(array.view())) {
      return array;
    }
    Array source = Array.wrap(array.address());
    try {
      return builder(source.view()).build(source);
    } catch (FletchingException e) {
      source.close();
      throw e;
    }
  }

  private static boolean isPlain(ArrayView array) {
    boolean plain = isCounted(array) && !hasEmptyBuffer(array);
    for (int i = 0; i < array.childCount() && plain; i++) {
      plain = isPlain(array.child(i));
    }
    return plain && (array.dictionary().isReleased() || isPlain(array.dictionary()));
  }

  private static boolean isCounted(ArrayView array) {
    return array.nullCount() != -1 || array.buffers().length == 0 || array.buffers()[0] != 0;
  }

  private static boolean hasEmptyBuffer(ArrayView array) {
    return array.length() == 0 && array.buffers().length > 1;
  }

  private static ArrayBuilder builder(ArrayView array) {
    long[] buffers = array.buffers();
    boolean empty = hasEmptyBuffer(array);
    if (empty) {
      buffers[1] = ZERO_ADDRESS; // which is enough for a buffer of every type
    }
    ArrayBuilder result =
        new ArrayBuilder(array.length())
            .nullCount(isCounted(array) ? array.nullCount() : 0)
            .offset(empty ? 0 : array.offset())
            .buffers(buffers);
    for (int i = 0; i < array.childCount(); i++) {
      result.child(builder(array.child(i)));
    }
    return array.dictionary().isReleased()
        ? result
        : result.dictionary(builder(array.dictionary()));
  }
}
