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
import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import java.util.Map;
import org.apache.arrow.memory.ArrowBuf;
import org.apache.arrow.memory.util.MemoryUtil;
import org.apache.arrow.vector.BaseLargeVariableWidthVector;
import org.apache.arrow.vector.BaseVariableWidthVector;
import org.apache.arrow.vector.FieldVector;

/** Checks the assumptions that arrow-java makes about an array without checking them itself. */
final class Importable {
  private static final int MOST_LEVELS = 64; // the limit of arrow-java
  private static final ByteBuffer ZERO = ByteBuffer.allocateDirect(Long.BYTES); // one offset
  private static final long ZERO_ADDRESS = MemoryUtil.getByteBufferAddress(ZERO);

  private static final Map<String, Integer> OFFSET_WIDTHS =
      Map.of("u", 4, "z", 4, "+l", 4, "+m", 4, "U", 8, "Z", 8, "+L", 8);

  private final String operation;

  private Importable(String operation) {
    this.operation = operation;
  }

  /**
   * Waits for the array's event; returns an array that arrow-java can import and that owns the
   * source.
   */
  static ArrayOwner of(String operation, ArrayOwner source, Schema schema) {
    Calls.live(operation, source);
    Calls.live(operation, schema);
    ArrayOwner array = // so that another thread cannot close it
        source instanceof DeviceArray
            ? DeviceArray.filledBy(source::moveTo)
            : Array.filledBy(source::moveTo);
    try {
      Importable result = new Importable(operation);
      if (array instanceof DeviceArray) {
        result.checkDevice((DeviceArray) array);
      }
      array = plain(array);
      ArrayOwner checked = array;
      Calls.named(operation, () -> checked.check(schema));
      result.check(array.view(), schema.view(), schema.name(), 0);
      return array;
    } catch (RuntimeException | Error e) {
      array.close();
      throw e;
    }
  }

  static ArrayOwner ofBatch(String operation, ArrayOwner batch, Schema schema) {
    ArrayOwner result = of(operation, batch, schema);
    try {
      Unions.checkRows(operation, result.view(), schema.view(), schema.name());
    } catch (RuntimeException e) {
      result.close();
      throw e;
    }
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
      // Versions up to at least 19.0 of arrow-java read the values before the offset.
      throw unsupported(path, "offset", "0", array.offset(), "copy the slice");
    }
    if (array.length() > Integer.MAX_VALUE) {
      throw unsupported(
          path, "length", "at most " + Integer.MAX_VALUE, array.length(), "split the array");
    }
    if (array.length() > 0) {
      checkContents(array, schema.format(), path);
    }
    for (int i = 0; i < children; i++) {
      SchemaView child = schema.child(i);
      check(array.child(i), child, Fields.path(path, i, child.name()), level + 1);
    }
    if (!array.dictionary().isReleased()) {
      check(array.dictionary(), schema.dictionary(), Fields.dictionaryPath(path), level + 1);
    }
  }

  /** Checks the values from which arrow-java computes buffer sizes. */
  private void checkContents(ArrayView array, String format, String path) {
    int width = OFFSET_WIDTHS.getOrDefault(format, 0);
    if (width > 0) {
      long first = number(array, 1, 0, width);
      long last = number(array, 1, array.length(), width);
      long most = array.childCount() == 0 ? Long.MAX_VALUE : array.child(0).length();
      if (first < 0 || last < first || last > most) {
        throw Calls.invalid(
            operation,
            Fields.title(path)
                + ": offsets: expected 0 or more, ascending, up to the length of"
                + " the child, got "
                + first
                + " to "
                + last);
      }
    }
    if (format.startsWith("v")) {
      int sizes = array.buffers().length - 1;
      for (int i = 0; i < sizes - 2; i++) {
        if (number(array, sizes, i, Long.BYTES) < 0) {
          throw Calls.invalid(
              operation,
              Fields.title(path)
                  + ": size of variadic buffer "
                  + i
                  + ": expected 0 or more, got "
                  + number(array, sizes, i, Long.BYTES));
        }
      }
    }
  }

  private static long number(ArrayView array, int buffer, long index, int width) {
    ByteBuffer bytes = bytes(array, buffer, index * width, width);
    return width == Integer.BYTES ? bytes.getInt() : bytes.getLong();
  }

  static ByteBuffer bytes(ArrayView array, int buffer, long offset, int size) {
    return MemoryUtil.directBuffer(array.buffers()[buffer] + offset, size)
        .order(ByteOrder.nativeOrder());
  }

  /**
   * Rejects text vectors whose first offset is not 0: arrow-java before 18.3 reads too few bytes.
   */
  static void checkTexts(String operation, List<FieldVector> vectors) {
    for (FieldVector vector : vectors) {
      boolean large = vector instanceof BaseLargeVariableWidthVector;
      int rows = vector.getValueCount();
      if (rows > 0 && (large || vector instanceof BaseVariableWidthVector)) {
        ArrowBuf offsets = vector.getOffsetBuffer();
        long end = large ? offsets.getLong(8L * rows) : offsets.getInt(4L * rows);
        if (vector.getDataBuffer().capacity() < end) {
          throw Calls.invalid(
              operation,
              "field \""
                  + vector.getName()
                  + "\": first offset: not supported by this version of"
                  + " arrow-java: expected 0; hint: use 18.3 or later");
        }
      }
      checkTexts(operation, vector.getChildrenFromFields());
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
   * Returns the array with a null_count of 0 instead of -1 if it has no validity bitmap, and with
   * one zero offset if it is empty: arrow-java reads both.
   */
  static ArrayOwner plain(ArrayOwner array) {
    if (isPlain(array.view(), 0)) {
      return array;
    }
    Array source = Array.wrap(array.address());
    Reference.reachabilityFence(array);
    try {
      return builder(source.view(), 0).build(source);
    } catch (FletchingException e) {
      source.close();
      throw e;
    }
  }

  private static boolean isPlain(ArrayView array, int level) {
    if (level > MOST_LEVELS) { // rejected later
      return true;
    }
    boolean plain = isCounted(array) && !hasEmptyBuffer(array);
    for (int i = 0; i < array.childCount() && plain; i++) {
      plain = isPlain(array.child(i), level + 1);
    }
    return plain && (array.dictionary().isReleased() || isPlain(array.dictionary(), level + 1));
  }

  private static boolean isCounted(ArrayView array) {
    return array.nullCount() != -1 || array.buffers().length == 0 || array.buffers()[0] != 0;
  }

  private static boolean hasEmptyBuffer(ArrayView array) {
    return array.length() == 0 && array.buffers().length > 1;
  }

  private static ArrayBuilder builder(ArrayView array, int level) {
    long[] buffers = array.buffers();
    boolean empty = hasEmptyBuffer(array);
    if (empty) {
      buffers[1] = ZERO_ADDRESS; // enough for any type's buffer
    }
    ArrayBuilder result =
        new ArrayBuilder(array.length())
            .nullCount(isCounted(array) ? array.nullCount() : 0)
            .offset(empty ? 0 : array.offset())
            .buffers(buffers);
    if (level > MOST_LEVELS) {
      return result;
    }
    for (int i = 0; i < array.childCount(); i++) {
      result.child(builder(array.child(i), level + 1));
    }
    return array.dictionary().isReleased()
        ? result
        : result.dictionary(builder(array.dictionary(), level + 1));
  }
}
