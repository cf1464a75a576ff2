// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;
import static io.github.fletching.Native.POINTER;

import io.github.fletching.abi.DataTypeCode;
import java.util.Arrays;

/** The walk from an array through its nested lists to the values of a tensor. */
final class TensorWalk {
  private static final String AS_STORAGE = "; hint: pass asStorage() to export the storage";

  // The values found.
  long buffer;
  long byteOffset; // from the buffer to the first element
  long bytes; // size of all elements
  DataType dtype;
  boolean isPadded; // a value narrower than a byte occupies a byte
  private int ndim;
  private final long[] shape = new long[Tensor.MOST_DIMENSIONS];
  private final long[] strides = new long[Tensor.MOST_DIMENSIONS]; // in elements
  // The list depth of each dimension, outermost first. Until scaleStrides, its stride is in
  // elements of the level below.
  private final int[] listOf = new int[Tensor.MOST_DIMENSIONS];

  private final boolean asStorage;
  private final boolean ignoresNulls;
  private final boolean isReadable; // validity bitmaps may be read

  // The current array.
  private long schema;
  private long array;
  private long first; // first element, counted from the start of the array's buffers
  private long count;
  private int depth;

  private TensorWalk(boolean asStorage, boolean ignoresNulls, boolean isReadable) {
    this.asStorage = asStorage;
    this.ignoresNulls = ignoresNulls;
    this.isReadable = isReadable;
  }

  /**
   * Finds the values. Reads no buffers except validity bitmaps, and these only if they are
   * readable. For a released struct, reads only {@code release}.
   *
   * @throws FletchingException EINVAL for malformed structs, ENOTSUP for types that a tensor cannot
   *     represent
   */
  static TensorWalk describe(
      long schema, long array, DlpackExportOptions options, boolean isReadable) {
    TensorWalk walk = new TensorWalk(options.isAsStorage, options.ignoresNulls, isReadable);
    walk.schema = schema;
    walk.array = array;
    walk.first = C.getLong(array + Fields.ARRAY_OFFSET);
    walk.count = C.getLong(array + Fields.ARRAY_LENGTH);
    if (walk.first < 0 || walk.count < 0) {
      throw badArray(
          "length or offset is negative: expected 0 or more",
          walk.first < 0 ? walk.first : walk.count);
    }
    walk.addDimension(0, walk.count, 1);
    walk.walkDown();
    walk.scaleStrides();
    return walk;
  }

  long[] shape() {
    return Arrays.copyOf(shape, ndim);
  }

  long[] strides() {
    return Arrays.copyOf(strides, ndim);
  }

  private static FletchingException badArray(String what, long got) {
    return FletchingException.invalid(
        "ArrowArray: " + what + ", got " + got + "; hint: fix the producer");
  }

  private static FletchingException tooManyDimensions() {
    return FletchingException.unsupported(
        "tensor: too many dimensions: expected at most "
            + Tensor.MOST_DIMENSIONS
            + "; hint: export the values of the inner lists");
  }

  private void addDimension(int list, long extent, long stride) {
    if (ndim == Tensor.MOST_DIMENSIONS) {
      throw tooManyDimensions();
    }
    listOf[ndim] = list;
    shape[ndim] = extent;
    strides[ndim++] = stride;
  }

  /** Adds the dimensions of arrow.fixed_shape_tensor: the shape in memory order, permuted. */
  private void addTensorShape(Extension extension, long size) {
    Extension.TensorShape tensor = extension.tensorShape();
    if (tensor.shape.length > Tensor.MOST_DIMENSIONS) {
      throw tooManyDimensions();
    }
    long[] steps = new long[tensor.shape.length];
    long step = 1;
    long product = 1;
    boolean isEmpty = false;
    for (int i = steps.length - 1; i >= 0; i--) {
      steps[i] = step;
      step = Sizes.nextStep(step, tensor.shape[i]);
      isEmpty = isEmpty || tensor.shape[i] == 0;
      product = product < 0 ? -1 : Sizes.multiply(product, tensor.shape[i]);
    }
    if (isEmpty ? size != 0 : product != size) {
      throw badArray(
          "list size of arrow.fixed_shape_tensor differs from its shape: expected the product of"
              + " the sizes",
          size);
    }
    for (long axis : tensor.permutation) {
      addDimension(depth, tensor.shape[(int) axis], steps[(int) axis]);
    }
  }

  /** Throws EINVAL for a released struct or dictionary. */
  private void checkAlive() {
    checkAlive(Kind.SCHEMA, "ArrowSchema", schema);
    checkAlive(Kind.ARRAY, "ArrowArray", array);
  }

  private void checkAlive(Kind kind, String title, long struct) {
    String below;
    if (kind.isReleased(struct)) {
      below = "";
    } else if (kind.dictionary(struct) != 0 && kind.isReleased(kind.dictionary(struct))) {
      below = ".dictionary";
    } else {
      return;
    }
    throw FletchingException.invalid(
        title
            + ".children[0]".repeat(depth)
            + below
            + ": released: expected a live struct, got release NULL");
  }

  private long buffer(int index) {
    return C.getAddress(C.getAddress(array + Fields.ARRAY_BUFFERS) + (long) index * POINTER);
  }

  private void checkNulls() {
    long nulls = C.getLong(array + Fields.ARRAY_NULL_COUNT);
    if (ignoresNulls || nulls == 0) {
      return;
    }
    long bitmap = buffer(0);
    if (bitmap == 0 && nulls > 0) {
      throw badArray("validity bitmap is NULL: expected one for the null_count", nulls);
    }
    if (bitmap == 0 || count == 0 || (isReadable && isEveryBitSet(bitmap))) {
      return;
    }
    throw FletchingException.unsupported(
        "ArrowArray: "
            + (isReadable || nulls > 0 ? "has" : "may have")
            + " nulls: expected none in a tensor; hint: fill them, or let the export ignore nulls");
  }

  private boolean isEveryBitSet(long bitmap) {
    for (long i = first; i < first + count; ) {
      int value = C.getByte(bitmap + i / 8) & 0xFF;
      int bits = (int) Math.min(8 - i % 8, first + count - i);
      int mask = ((1 << bits) - 1) << (i % 8);
      if ((value & mask) != mask) {
        return false;
      }
      i += bits;
    }
    return true;
  }

  private void checkLevel(TensorFormat format) {
    long needed = format.isList ? 1 : 2;
    long buffers = C.getLong(array + Fields.ARRAY_N_BUFFERS);
    boolean isNull = C.getAddress(array + Fields.ARRAY_BUFFERS) == 0;
    if (buffers < needed || isNull) {
      throw badArray("n_buffers is too small: expected at least " + needed, isNull ? 0 : buffers);
    }
    if (Kind.SCHEMA.dictionary(schema) != 0 && !asStorage) {
      throw format.noTensorType("the values are indices into a dictionary", AS_STORAGE);
    }
  }

  private static FletchingException unknownExtension(Extension extension) {
    return FletchingException.unsupported(
        "ArrowSchema: extension type "
            + extension.inWords()
            + " would be lost: expected a plain type"
            + AS_STORAGE);
  }

  /** Moves to the only child of a list of {@code size} elements. */
  private void descend(long size) {
    checkOneChild(C.getLong(schema + Fields.SCHEMA_N_CHILDREN));
    checkOneChild(C.getLong(array + Fields.ARRAY_N_CHILDREN));
    schema = Kind.SCHEMA.childCount(schema) == 0 ? 0 : Kind.SCHEMA.child(schema, 0);
    array = Kind.ARRAY.childCount(array) == 0 ? 0 : Kind.ARRAY.child(array, 0);
    depth++;
    if (schema == 0 || array == 0) {
      throw FletchingException.invalid(
          "ArrowArray: child of a fixed-size list: NULL: expected one; hint: fix the producer");
    }
    checkAlive();
    long end = Sizes.multiply(first + count, size);
    long length = C.getLong(array + Fields.ARRAY_LENGTH);
    long offset = C.getLong(array + Fields.ARRAY_OFFSET);
    if (offset < 0) {
      throw badArray("offset of a child is negative: expected 0 or more", offset);
    }
    if (end < 0 || length < end || offset > Long.MAX_VALUE - end) {
      throw badArray(
          "child of a fixed-size list is too short: expected length * list size elements", length);
    }
    first = offset + first * size;
    count *= size;
  }

  private static void checkOneChild(long children) {
    if (children != 1) {
      throw badArray("children of a fixed-size list: expected one", children);
    }
  }

  /** Stores the location of the values; an element has {@code elementBytes} bytes. */
  private void endWalk(long elementBytes) {
    if (Sizes.multiply(first + count, elementBytes) < 0) {
      throw badArray("size out of range: expected less than 2^63 bytes", count);
    }
    buffer = buffer(1);
    byteOffset = first * elementBytes;
    bytes = count * elementBytes;
    if (buffer == 0 && bytes > 0) {
      throw FletchingException.invalid(
          "ArrowArray: buffers[1] is NULL: expected values; hint: fix the producer");
    }
  }

  private static FletchingException badStorage(TensorType row) {
    return FletchingException.invalid(
        "ArrowSchema: storage of "
            + row.typeName
            + " differs: expected format \""
            + row.format
            + '"'
            + (row.parts > 1 ? " in a fixed-size list" : "")
            + "; hint: fix the producer");
  }

  /** Walks a DLPack type that Arrow lacks. */
  private void walkOpaque(TensorFormat format, TensorType row) {
    TensorFormat values = format;
    dtype = row.dataType();
    isPadded = row.isPadded;
    checkNulls();
    if (row.parts > 1) {
      if (!format.isList || format.size != row.parts) {
        throw badStorage(row);
      }
      descend(row.parts);
      Extension inner = Extension.of(schema);
      if (inner.exists()) {
        throw unknownExtension(inner);
      }
      values = TensorFormat.at(C.getAddress(schema + Fields.SCHEMA_FORMAT));
      checkLevel(values);
    }
    if (!values.text.equals(row.format)) {
      throw badStorage(row);
    }
    if (row.parts > 1) {
      checkNulls();
    }
    endWalk(row.partBytes);
  }

  private void walkValues(TensorFormat format, Extension extension) {
    if (format.lost != null && !asStorage) {
      throw format.noTensorType(format.lost, AS_STORAGE);
    }
    dtype = format.type;
    if (extension.is(TensorTypes.BOOL8)) {
      if (!format.text.equals("c")) {
        throw FletchingException.invalid(
            "ArrowSchema: storage of arrow.bool8 differs: expected int8; hint: fix the producer");
      }
      dtype = DataType.of(DataTypeCode.BOOL, 8);
    } else if (extension.exists() && !asStorage) {
      throw unknownExtension(extension);
    }
    checkNulls();
    if (format.isBinary) {
      addDimension(depth + 1, format.size, 1);
    }
    endWalk(format.size * (format.type.bits() / 8));
  }

  /** Converts the strides within each list to strides in tensor elements. */
  private void scaleStrides() {
    long step = 1; // tensor elements per element of this list
    long below = 1; // tensor elements per element of the next outer list
    for (int i = ndim - 1; i >= 0; i--) {
      if (i + 1 < ndim && listOf[i] != listOf[i + 1]) {
        step = below;
      }
      strides[i] = Sizes.nextStep(strides[i], step);
      below = Sizes.nextStep(below, shape[i]);
    }
  }

  /** Descends to the values. The limit on dimensions bounds the depth. */
  private void walkDown() {
    checkAlive();
    if (first > Long.MAX_VALUE - count) {
      throw FletchingException.invalid(
          String.format(
              "ArrowArray: offset plus length out of range: expected at most"
                  + " 9223372036854775807, got %d + %d",
              first, count));
    }
    while (true) {
      TensorFormat format = TensorFormat.at(C.getAddress(schema + Fields.SCHEMA_FORMAT));
      checkLevel(format);
      Extension extension = Extension.of(schema);
      TensorType row = asStorage ? null : extension.opaque();
      if (row != null) {
        walkOpaque(format, row);
        return;
      }
      if (!format.isList) {
        walkValues(format, extension);
        return;
      }
      boolean isTensor = extension.is(TensorTypes.FIXED_SHAPE_TENSOR);
      if (!isTensor && extension.exists() && !asStorage) {
        throw unknownExtension(extension);
      }
      checkNulls();
      descend(format.size);
      if (isTensor) {
        addTensorShape(extension, format.size);
      } else {
        addDimension(depth, format.size, 1);
      }
    }
  }
}
