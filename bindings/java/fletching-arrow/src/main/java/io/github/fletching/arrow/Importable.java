// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.arrow;

import io.github.fletching.Array;
import io.github.fletching.ArrayBuilder;
import io.github.fletching.ArrayOwner;
import io.github.fletching.ArrayView;
import io.github.fletching.DeviceArray;
import io.github.fletching.FletchingException;
import io.github.fletching.abi.DeviceType;

/** What arrow-java assumes about an array, and reads wrong where it does not hold. */
final class Importable {
  private static final int MOST_LEVELS = 64; // arrow-java refuses more

  private final String operation;
  private boolean uncounted; // an array without validity and with null_count -1

  private Importable(String operation) {
    this.operation = operation;
  }

  /** Waits for the event of an array; returns what arrow-java can import, which owns the array. */
  static ArrayOwner of(String operation, ArrayOwner array) {
    Calls.live(operation, array);
    Importable result = new Importable(operation);
    if (array instanceof DeviceArray) {
      result.checkDevice((DeviceArray) array);
    }
    result.check(array.view(), "ArrowArray", 0);
    return result.uncounted ? counted(array) : array;
  }

  static ArrayOwner ofBatch(String operation, ArrayOwner batch) {
    ArrayOwner result = of(operation, batch);
    long nulls = result.nullCount();
    if (nulls != 0) {
      result.close();
      throw Calls.invalid(
          operation,
          "ArrowArray.null_count: rows that are null: expected 0, got "
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

  private void check(ArrayView array, String path, int level) {
    if (level > MOST_LEVELS) {
      throw Calls.invalid(
          operation, "nested too deep: expected at most " + MOST_LEVELS + " levels");
    }
    long[] buffers = array.buffers();
    int children = array.childCount();
    boolean empty = array.length() == 0 || (buffers.length == 0 && children == 0);
    if (array.offset() != 0 && !empty) {
      // Up to 19.0 at least arrow-java reads the values before the first one.
      throw Calls.invalid(
          operation,
          path
              + ".offset: not supported by arrow-java: expected 0, got "
              + array.offset()
              + "; hint: copy the slice");
    }
    uncounted |= array.nullCount() == -1 && buffers.length > 0 && buffers[0] == 0;
    for (int i = 0; i < children; i++) {
      check(array.child(i), path + ".children[" + i + "]", level + 1);
    }
    if (!array.dictionary().isReleased()) {
      check(array.dictionary(), path + ".dictionary", level + 1);
    }
  }

  /** Shows the same with the null counts that are known: without validity there are none. */
  private static Array counted(ArrayOwner array) {
    Array source = Array.wrap(array.address());
    try {
      return builder(source.view()).build(source);
    } catch (FletchingException e) {
      source.close();
      throw e;
    }
  }

  private static ArrayBuilder builder(ArrayView array) {
    long[] buffers = array.buffers();
    long nulls = array.nullCount();
    boolean none = nulls == -1 && buffers.length > 0 && buffers[0] == 0;
    ArrayBuilder result =
        new ArrayBuilder(array.length())
            .nullCount(none ? 0 : nulls)
            .offset(array.offset())
            .buffers(buffers);
    for (int i = 0; i < array.childCount(); i++) {
      result.child(builder(array.child(i)));
    }
    return array.dictionary().isReleased()
        ? result
        : result.dictionary(builder(array.dictionary()));
  }
}
