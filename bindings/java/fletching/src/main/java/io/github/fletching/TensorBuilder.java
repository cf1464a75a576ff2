// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

import io.github.fletching.abi.DeviceType;
import io.github.fletching.abi.DlpackConstants;
import java.nio.ByteBuffer;
import java.util.Objects;

/**
 * Describes a tensor over the caller's memory, without a schema. The builder owns no memory: {@code
 * build} may be called repeatedly. Not thread-safe.
 *
 * <p>See "DLTensor" in DLPack.
 */
public final class TensorBuilder {
  private static final String OPERATION = "TensorBuilder";

  private final DataType dtype;
  private final long[] shape;
  private long[] strides; // null for row-major order
  private long data;
  private ByteBuffer kept; // contains the data; null for an address
  private long byteOffset;
  private DeviceType deviceType = DeviceType.CPU;
  private int deviceId;
  private long flags;

  /**
   * Creates a builder for a CPU tensor in row-major order, without data.
   *
   * @param dtype the type of the elements
   * @param shape the size of each dimension, in elements; none for a scalar
   */
  public TensorBuilder(DataType dtype, long... shape) {
    this.dtype = Objects.requireNonNull(dtype, "dtype");
    this.shape = shape.clone();
  }

  /**
   * Sets the data pointer: the address of the memory, or the handle on devices whose buffers are
   * handles. The memory must belong to the object passed to {@code build}, or live at least as
   * long.
   *
   * @param address the address; 0 for a tensor without elements
   * @return this builder
   */
  public TensorBuilder data(long address) {
    data = address;
    kept = null;
    return this;
  }

  /**
   * Sets the data to a direct buffer, which begins at its position. The buffer stays reachable
   * until the tensor is deleted. Its size is not checked against the shape. A read-only buffer
   * makes the tensor read-only.
   *
   * @param direct the buffer
   * @return this builder
   * @throws IllegalArgumentException for a heap buffer, and for a buffer without native byte order
   */
  public TensorBuilder data(ByteBuffer direct) {
    data = ArrayBuilder.addressOf("data", direct);
    kept = direct;
    return this;
  }

  /**
   * Sets the number of bytes from the data pointer to the first element; 0 by default.
   *
   * @param bytes the number of bytes, which is unsigned
   * @return this builder
   */
  public TensorBuilder byteOffset(long bytes) {
    byteOffset = bytes;
    return this;
  }

  /**
   * Sets the stride of each dimension, in elements. Strides may be negative.
   *
   * @param steps the strides, one for each dimension
   * @return this builder
   */
  public TensorBuilder strides(long... steps) {
    strides = steps.clone();
    return this;
  }

  /**
   * Sets the device of the memory; the CPU by default.
   *
   * @param type the device type
   * @param id the device id within the type; 0 on the CPU
   * @return this builder
   */
  public TensorBuilder on(DeviceType type, int id) {
    deviceType = Objects.requireNonNull(type, "type");
    deviceId = id;
    return this;
  }

  /**
   * Sets the DLPACK_FLAG_BITMASK_ bits; 0 by default, which lets consumers write to the memory.
   *
   * @param bits the flags
   * @return this builder
   */
  public TensorBuilder flags(long bits) {
    flags = bits;
    return this;
  }

  /**
   * Builds the tensor. The object is kept until the tensor is deleted. If it is AutoCloseable, it
   * is closed then, on the thread that calls the deleter, and exceptions are logged.
   *
   * @param object the object, which may be null
   * @return the tensor
   * @throws FletchingException EINVAL for a negative size, more than 64 dimensions, 2^63 elements
   *     or more, a wrong number of strides and an unknown flag; ENOMEM. The caller then still owns
   *     the object.
   */
  public Tensor build(Object object) {
    return Events.named(OPERATION, () -> checkAndBuild(object));
  }

  private Tensor checkAndBuild(Object object) {
    check();
    if ((flags & ~Tensor.KNOWN_FLAGS) != 0) {
      throw FletchingException.invalid(
          String.format(
              "unknown flag: expected those of version %d.%d, got %s",
              DlpackConstants.DLPACK_MAJOR_VERSION,
              DlpackConstants.DLPACK_MINOR_VERSION,
              Long.toUnsignedString(flags)));
    }
    boolean isReadOnly = kept != null && kept.isReadOnly();
    long readOnly = isReadOnly ? DlpackConstants.DLPACK_FLAG_BITMASK_READ_ONLY : 0;
    return build(Kind.TENSOR, flags | readOnly, object, OPERATION);
  }

  /**
   * Builds the tensor; overload for a lambda as the object.
   *
   * @param object the object, which may be null
   * @return the tensor
   */
  public Tensor build(AutoCloseable object) {
    return build((Object) object);
  }

  /** Copies the type, shape and device of a DLTensor. Throws EINVAL for an unreadable shape. */
  static TensorBuilder like(long tensor) {
    int ndim = tensor == 0 ? -1 : C.getInt(tensor + Fields.TENSOR_NDIM);
    boolean isNull = ndim > 0 && C.getAddress(tensor + Fields.TENSOR_SHAPE) == 0;
    if (ndim < 0 || ndim > Tensor.MOST_DIMENSIONS || isNull) {
      throw badShape();
    }
    long device = tensor + Fields.TENSOR_DEVICE;
    return new TensorBuilder(
            DataType.at(tensor + Fields.TENSOR_DTYPE),
            TensorLayout.numbers(tensor, Fields.TENSOR_SHAPE, ndim))
        .on(
            DeviceType.of(C.getInt(device + Fields.DEVICE_DEVICE_TYPE)),
            C.getInt(device + Fields.DEVICE_DEVICE_ID));
  }

  private static FletchingException badShape() {
    return FletchingException.invalid(
        "DLTensor.shape: invalid: expected 0 to " + Tensor.MOST_DIMENSIONS + " sizes");
  }

  Tensor build(Kind kind, long bits, Object object, String operation) {
    Slot slot =
        Owner.filled(
            kind,
            address ->
                C.putAddress(address, ExportedTensor.make(kind, this, bits, object, operation)));
    return new Tensor(kind, slot);
  }

  /** Checks shape and strides; returns the number of elements. Throws EINVAL. */
  long check() {
    if (shape.length > Tensor.MOST_DIMENSIONS) {
      throw badShape();
    }
    boolean isEmpty = false;
    long elements = 1;
    for (long size : shape) {
      if (size < 0) {
        throw FletchingException.invalid(
            "DLTensor.shape: negative size: expected 0 or more, got " + size);
      }
      isEmpty = isEmpty || size == 0;
      elements = elements < 0 ? -1 : Sizes.multiply(elements, size);
    }
    if (elements < 0 && !isEmpty) {
      throw FletchingException.invalid(
          "DLTensor.shape: out of range: expected fewer than 2^63 elements");
    }
    if (strides != null && strides.length != shape.length) {
      throw FletchingException.invalid(
          "DLTensor.strides: expected one for each of "
              + shape.length
              + " dimensions, got "
              + strides.length);
    }
    return isEmpty ? 0 : elements;
  }

  ByteBuffer kept() {
    return kept;
  }

  int ndim() {
    return shape.length;
  }

  DeviceType deviceType() {
    return deviceType;
  }

  /** The size of the elements in bytes, unsigned. Packed values may share a byte. */
  long countBytes(long elements) {
    long bits = (long) dtype.bits() * dtype.lanes();
    if (bits > 0 && Long.compareUnsigned(elements, Long.divideUnsigned(-1 - 7, bits)) > 0) {
      throw FletchingException.invalid(
          "DLTensor.shape: size out of range: expected less than 2^64 bits");
    }
    return (elements * bits + 7) >>> 3;
  }

  /** Writes a DLTensor, and its shape and strides to {@code extents}. */
  void write(long tensor, long extents) {
    C.putAddress(tensor + Fields.TENSOR_DATA, data);
    long device = tensor + Fields.TENSOR_DEVICE;
    C.putInt(device + Fields.DEVICE_DEVICE_TYPE, deviceType.value());
    C.putInt(device + Fields.DEVICE_DEVICE_ID, deviceId);
    C.putInt(tensor + Fields.TENSOR_NDIM, shape.length);
    dtype.write(tensor + Fields.TENSOR_DTYPE);
    C.putAddress(tensor + Fields.TENSOR_SHAPE, extents);
    C.putAddress(tensor + Fields.TENSOR_STRIDES, extents + 8L * shape.length);
    C.putLong(tensor + Fields.TENSOR_BYTE_OFFSET, byteOffset);
    long[] steps = strides != null ? strides : rowMajor(shape);
    for (int i = 0; i < shape.length; i++) {
      C.putLong(extents + 8L * i, shape[i]);
      C.putLong(extents + 8L * (shape.length + i), steps[i]);
    }
  }

  static long[] rowMajor(long[] shape) {
    long[] strides = new long[shape.length];
    long step = 1;
    for (int i = shape.length - 1; i >= 0; i--) {
      strides[i] = step;
      step = Sizes.nextStep(step, shape[i]);
    }
    return strides;
  }
}
