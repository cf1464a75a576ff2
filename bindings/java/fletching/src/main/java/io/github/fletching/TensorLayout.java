// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

import io.github.fletching.abi.DeviceType;

/**
 * The memory layout of a foreign tensor's elements. A value has one address: a complex number that
 * is not imported as its storage is one value with two parts.
 */
final class TensorLayout {
  private static final int MOST_EXTENTS = Tensor.MOST_DIMENSIONS + 2; // lanes and parts

  private final long tensor; // a DLTensor
  private final DlpackImportOptions options;
  final TensorType type;
  private final long itemBytes; // size of a value
  private final long partBytes; // size of a part; addresses are multiples of it
  private long values;
  private long bytes;
  int ndim;
  final long[] shape = new long[MOST_EXTENTS];
  private final long[] strides = new long[MOST_EXTENTS]; // in values

  // The location of the values for Arrow, set by arrange and copy.
  long buffer; // address of the first value, or a handle
  long offset; // values to skip, for a handle
  int[] order; // inner dimensions in memory order, outermost first: indices of shape

  private TensorLayout(long tensor, boolean isPadded, DlpackImportOptions options) {
    this.tensor = tensor;
    this.options = options;
    DataType dtype = DataType.at(tensor + Fields.TENSOR_DTYPE);
    type = TensorType.of(dtype, isPadded, options.isAsStorage);
    partBytes = type.partBytes;
    itemBytes = partBytes * (options.isAsStorage ? 1 : type.parts);
    boolean hasStrides = C.getAddress(tensor + Fields.TENSOR_STRIDES) != 0;
    readDimensions(hasStrides);
    addRepeat(dtype.lanes() / type.lanes);
    addRepeat(options.isAsStorage ? type.parts : 1);
    countValues();
    if (!hasStrides) {
      makeCompact();
    }
  }

  /**
   * Reads a DLTensor.
   *
   * @throws FletchingException EINVAL for a malformed tensor, ENOTSUP for a type that Arrow lacks
   */
  static TensorLayout read(long tensor, boolean isPadded, DlpackImportOptions options) {
    return new TensorLayout(tensor, isPadded, options);
  }

  private static FletchingException badTensor(String what) {
    return FletchingException.invalid("DLTensor." + what + "; hint: fix the producer");
  }

  DeviceType deviceType() {
    return DeviceType.of(C.getInt(tensor + Fields.TENSOR_DEVICE + Fields.DEVICE_DEVICE_TYPE));
  }

  int deviceId() {
    return C.getInt(tensor + Fields.TENSOR_DEVICE + Fields.DEVICE_DEVICE_ID);
  }

  /** Returns the number of dimensions. Throws EINVAL if the shape cannot be read. */
  static int dimensions(long tensor) {
    int ndim = C.getInt(tensor + Fields.TENSOR_NDIM);
    if (ndim < 0 || ndim > Tensor.MOST_DIMENSIONS) {
      throw FletchingException.invalid(
          String.format(
              "DLTensor.ndim: out of range: expected 0 to %d, got %d; hint: fix the producer",
              Tensor.MOST_DIMENSIONS, ndim));
    }
    if (ndim > 0 && C.getAddress(tensor + Fields.TENSOR_SHAPE) == 0) {
      throw badTensor("shape: NULL: expected ndim sizes");
    }
    return ndim;
  }

  /** Reads the numbers to which a field of a DLTensor points. */
  static long[] numbers(long tensor, long field, int count) {
    long[] numbers = new long[count];
    long list = C.getAddress(tensor + field);
    for (int i = 0; i < count; i++) {
      numbers[i] = C.getLong(list + 8L * i);
    }
    return numbers;
  }

  /** Copies shape and strides. Replaces unused strides, which may have any value, by 0. */
  private void readDimensions(boolean hasStrides) {
    ndim = dimensions(tensor);
    long[] sizes = numbers(tensor, Fields.TENSOR_SHAPE, ndim);
    long[] steps = hasStrides ? numbers(tensor, Fields.TENSOR_STRIDES, ndim) : new long[ndim];
    for (int i = 0; i < ndim; i++) {
      if (sizes[i] < 0) {
        throw badTensor("shape: negative size: expected 0 or more, got " + sizes[i]);
      }
      shape[i] = sizes[i];
      strides[i] = sizes[i] > 1 ? steps[i] : 0;
    }
  }

  /** Adds a dimension for the values of an element. */
  private void addRepeat(long repeat) {
    if (repeat == 1) {
      return;
    }
    for (int i = 0; i < ndim; i++) {
      if (strides[i] == Long.MIN_VALUE || Sizes.multiply(Math.abs(strides[i]), repeat) < 0) {
        throw badTensor("strides: out of range: expected an offset below 2^63 bytes");
      }
      strides[i] *= repeat;
    }
    if (ndim == 0) { // a scalar element of several values becomes an array of length 1
      shape[ndim++] = 1;
    }
    shape[ndim] = repeat;
    strides[ndim++] = 1;
  }

  private void countValues() {
    boolean isEmpty = false;
    for (int i = 0; i < ndim; i++) {
      isEmpty = isEmpty || shape[i] == 0;
    }
    values = isEmpty ? 0 : 1;
    for (int i = 0; i < ndim && !isEmpty; i++) {
      values = values < 0 ? -1 : Sizes.multiply(values, shape[i]);
    }
    bytes = values < 0 ? -1 : Sizes.multiply(values, itemBytes);
    if (bytes < 0) {
      throw badTensor("shape: size out of range: expected less than 2^63 bytes");
    }
  }

  /** Sets the strides of contiguous values, with the last dimension varying fastest. */
  private void makeCompact() {
    long step = 1;
    for (int i = ndim - 1; i >= 0; i--) {
      strides[i] = step;
      step = Sizes.nextStep(step, shape[i]);
    }
  }

  // --- Order

  /**
   * Finds the location and the order of the values.
   *
   * @throws FletchingException EINVAL for an invalid address; ENOTSUP if the values must be copied
   *     for the order or the alignment that Arrow needs
   */
  void arrange() {
    place();
    order = plainOrder();
    if (ndim == 0 || values == 0) {
      return;
    }
    long cell = 1;
    for (int i = 1; i < ndim; i++) {
      cell *= shape[i];
    }
    boolean rowsFollow = shape[0] == 1 || strides[0] == cell;
    if (!findOrder() || !rowsFollow) {
      throw FletchingException.unsupported(
          "DLTensor.strides: not contiguous: expected an order that Arrow can express; hint: copy"
              + " the tensor");
    }
  }

  private int[] plainOrder() {
    int[] plain = new int[Math.max(ndim - 1, 0)];
    for (int i = 0; i < plain.length; i++) {
      plain[i] = i + 1;
    }
    return plain;
  }

  /** Whether the inner dimensions are contiguous in this order. */
  private boolean isCompact() {
    long step = 1;
    for (int i = order.length - 1; i >= 0; i--) {
      int axis = order[i];
      if (shape[axis] > 1 && strides[axis] != step) {
        return false;
      }
      step = Sizes.nextStep(step, shape[axis]);
    }
    return true;
  }

  /** A dimension of size 1 may have any stride. It is sorted outermost. */
  private long sortKey(int axis) {
    return shape[axis] == 1 ? Long.MAX_VALUE : strides[axis];
  }

  /**
   * Returns false if dimensions have gaps or overlap, or if the options cannot express the order.
   */
  private boolean findOrder() {
    if (isCompact()) {
      return true;
    }
    if (options.hasLists) {
      return false;
    }
    for (int end = 1; end < order.length; end++) { // stable insertion sort
      for (int i = end; i > 0 && sortKey(order[i - 1]) < sortKey(order[i]); i--) {
        int inner = order[i];
        order[i] = order[i - 1];
        order[i - 1] = inner;
      }
    }
    return isCompact();
  }

  // --- Location

  private static FletchingException notAligned(String field, long align) {
    return FletchingException.unsupported(
        "DLTensor."
            + field
            + ": not aligned: expected a multiple of "
            + align
            + " bytes; hint: copy the tensor");
  }

  private long data() {
    return C.getAddress(tensor + Fields.TENSOR_DATA);
  }

  private long byteOffset() {
    return C.getLong(tensor + Fields.TENSOR_BYTE_OFFSET);
  }

  private void place() {
    if (values == 0) {
      return;
    }
    long data = data();
    long byteOffset = byteOffset();
    if (data == 0) {
      throw badTensor("data: NULL: expected an address, because there are elements");
    }
    if (!TensorTypes.hasAddresses(deviceType())) {
      if (Long.compareUnsigned(byteOffset, Long.MAX_VALUE - bytes) > 0) {
        throw badTensor("byte_offset: out of range: expected less than 2^63");
      }
      // A handle has no alignment. The offset must be a whole number of values.
      if (byteOffset % partBytes != 0) {
        throw notAligned("byte_offset", partBytes);
      }
      buffer = data;
      offset = byteOffset / partBytes;
      return;
    }
    if (!Sizes.fit(data, byteOffset) || !Sizes.fit(data + byteOffset, bytes)) {
      throw badTensor("byte_offset: out of range: expected an end within the address space");
    }
    long align = type.format.startsWith("w") ? 1 : partBytes; // bytes need no alignment
    if (Long.remainderUnsigned(data + byteOffset, align) != 0) {
      throw notAligned("data", align);
    }
    buffer = data + byteOffset;
  }

  // --- Copy

  /**
   * Copies the values in order, with the last dimension varying fastest, to new C memory, which the
   * caller owns. The data pointer must be valid.
   *
   * @throws FletchingException EINVAL for elements outside the address space, ENOMEM
   */
  void copy() {
    if (!fitsAddressSpace()) {
      throw badTensor("strides: out of range: expected elements within the address space");
    }
    buffer = Native.allocate(bytes, "toDeviceArray");
    offset = 0;
    order = plainOrder();
    int outer = ndim;
    long run = itemBytes; // bytes of contiguous values
    for (long step = 1; outer > 0 && (shape[outer - 1] == 1 || strides[outer - 1] == step); ) {
      outer--;
      step = Sizes.nextStep(step, shape[outer]);
      run *= shape[outer];
    }
    gather(data() + byteOffset(), outer, run);
  }

  private void gather(long from, int outer, long run) {
    long[] index = new long[outer];
    long at = 0;
    for (long to = buffer; to < buffer + bytes; to += run) {
      C.copy(from + at * itemBytes, to, run);
      for (int i = outer - 1; i >= 0; i--) {
        if (++index[i] < shape[i]) {
          at += strides[i];
          break;
        }
        at -= strides[i] * (shape[i] - 1);
        index[i] = 0;
      }
    }
  }

  /** Whether all values that the strides reach are within the address space. */
  private boolean fitsAddressSpace() {
    long before = 0;
    long after = 1;
    for (int i = 0; i < ndim; i++) {
      if (strides[i] == Long.MIN_VALUE) {
        return false;
      }
      long reach = Sizes.multiply(Math.abs(strides[i]), shape[i] - 1);
      long side = strides[i] < 0 ? before : after;
      if (reach < 0 || reach > Long.MAX_VALUE - side) {
        return false;
      }
      before += strides[i] < 0 ? reach : 0;
      after += strides[i] < 0 ? 0 : reach;
    }
    before = Sizes.multiply(before, itemBytes);
    after = Sizes.multiply(after, itemBytes);
    if (before < 0 || after < 0 || !Sizes.fit(data(), byteOffset())) {
      return false;
    }
    long first = data() + byteOffset();
    return Long.compareUnsigned(before, first) <= 0 && Sizes.fit(first, after);
  }
}
