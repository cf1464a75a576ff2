// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

import io.github.fletching.abi.DeviceType;
import io.github.fletching.abi.DlpackConstants;
import java.util.function.LongFunction;

/**
 * Owner of a DLPack tensor: a DLManagedTensorVersioned or the older DLManagedTensor. See {@link
 * Owner}.
 *
 * <p>The struct stays at the producer's address. The owner stores the address, a move passes it on,
 * and a release calls the deleter unless it is NULL.
 *
 * <p>The accessors read the struct but no element. They throw a FletchingException: ENOTSUP for
 * another major version of DLPack, of which only the deleter is used, and EINVAL for an invalid
 * number of dimensions.
 *
 * <p>See "DLManagedTensorVersioned" and "DLManagedTensor" in DLPack.
 */
public final class Tensor extends Owner {
  /** The maximum number of dimensions, the same as in NumPy and PyTorch. */
  static final int MOST_DIMENSIONS = 64;

  static final long KNOWN_FLAGS =
      DlpackConstants.DLPACK_FLAG_BITMASK_READ_ONLY
          | DlpackConstants.DLPACK_FLAG_BITMASK_IS_COPIED
          | DlpackConstants.DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;

  Tensor(Kind kind, Slot slot) {
    super(kind, slot);
  }

  /**
   * Takes ownership of the DLManagedTensorVersioned at an address. The caller must not use it
   * afterwards.
   *
   * @param address the address of a DLManagedTensorVersioned
   * @return the owner
   * @throws FletchingException EINVAL for address 0; ENOMEM, and the caller then still owns the
   *     tensor
   */
  public static Tensor wrap(long address) {
    return wrap(Kind.TENSOR, address);
  }

  /**
   * Takes ownership of a DLManagedTensor, the struct from before DLPack 1.0, without a version and
   * flags.
   *
   * @param address the address of a DLManagedTensor
   * @return the owner
   */
  public static Tensor wrapLegacy(long address) {
    return wrap(Kind.LEGACY_TENSOR, address);
  }

  static Tensor wrap(Kind kind, long address) {
    if (address == 0) {
      throw FletchingException.invalid(
          (kind == Kind.TENSOR ? "wrap: " : "wrapLegacy: ")
              + kind.title
              + " is NULL: expected an address");
    }
    Slot slot = Slot.takeReleased(kind);
    C.putAddress(slot.address, address);
    Handover.IMPORT.validate(kind, slot.address);
    return new Tensor(kind, slot);
  }

  /**
   * The address of the managed struct, for a C function that reads it. It is valid until the owner
   * is closed: keep the owner reachable until the function has returned.
   *
   * @return the address
   * @throws IllegalStateException after close
   */
  @Override
  public long address() {
    long managed = C.getAddress(enter("address"));
    leave();
    return managed;
  }

  /**
   * Moves the tensor to a pointer, such as the {@code out} parameter of a C function, by writing
   * the address of the managed struct there. The receiver must call the deleter; the owner is
   * closed.
   *
   * @param address the address of a pointer
   * @throws IllegalStateException after close
   * @throws FletchingException EINVAL for address 0
   */
  @Override
  public void moveTo(long address) {
    super.moveTo(address);
  }

  /**
   * Returns the address of the managed struct, and passes ownership to the receiver, which must
   * call the deleter. The owner is closed.
   *
   * @return the address
   * @throws IllegalStateException after close
   */
  public long detach() {
    Slot slot = takeSlot("detach");
    Handover.EXPORT.validate(kind, slot.address);
    long address = C.getAddress(slot.address);
    slot.free();
    return address;
  }

  /**
   * Converts the tensor to a schema and a device array, without a copy unless an option allows it.
   *
   * <p>Shape: the first dimension is the array's length; a tensor without dimensions becomes an
   * array of length 1. Several lanes become an additional dimension. byte_offset is added to the
   * address, or to the array's offset on devices whose buffers are handles. NULL strides mean
   * row-major order. Types that Arrow lacks become arrow.opaque with the vendor "DLPack".
   *
   * <p>Ownership: the tensor is always consumed. Its deleter is called when the array and every
   * child moved out of it are released, on any thread; after an error and after a copy it is called
   * at once.
   *
   * <p>See "DLTensor" in DLPack and the Arrow canonical extension types.
   *
   * @param options which types, dimensions and copies are allowed, and the consumer's stream
   * @return the schema and the array
   * @throws FletchingException EINVAL for a malformed tensor; ENOTSUP for a type, an order of
   *     elements or a version that Arrow or this library does not support; ENOMEM; with a stream
   *     also the errors of {@link DeviceArray#exportWithEvent}
   * @throws IllegalStateException after close
   */
  public ImportedTensor toDeviceArray(DlpackImportOptions options) {
    return TensorImport.run(this, options);
  }

  /**
   * Converts the tensor with the default options.
   *
   * @return the schema and the array
   */
  public ImportedTensor toDeviceArray() {
    return toDeviceArray(DlpackImportOptions.defaults());
  }

  /**
   * Whether the struct is the legacy one from before DLPack 1.0.
   *
   * @return whether the struct is a DLManagedTensor
   */
  public boolean isLegacy() {
    return kind == Kind.LEGACY_TENSOR;
  }

  /**
   * The size of each dimension, in elements.
   *
   * @return the size of each dimension
   */
  public long[] shape() {
    return read(Tensor::shapeOf);
  }

  private static long[] shapeOf(long tensor) {
    return TensorLayout.numbers(tensor, Fields.TENSOR_SHAPE, TensorLayout.dimensions(tensor));
  }

  /**
   * The stride of each dimension, in elements; row-major strides if the struct has NULL.
   *
   * @return the stride of each dimension
   */
  public long[] strides() {
    return read(
        tensor ->
            C.getAddress(tensor + Fields.TENSOR_STRIDES) == 0
                ? TensorBuilder.rowMajor(shapeOf(tensor))
                : TensorLayout.numbers(
                    tensor, Fields.TENSOR_STRIDES, TensorLayout.dimensions(tensor)));
  }

  /**
   * The element type.
   *
   * @return the element type
   */
  public DataType dtype() {
    return read(tensor -> DataType.at(tensor + Fields.TENSOR_DTYPE));
  }

  /**
   * The device type of the data.
   *
   * @return the device type
   */
  public DeviceType deviceType() {
    return read(
        tensor ->
            DeviceType.of(C.getInt(tensor + Fields.TENSOR_DEVICE + Fields.DEVICE_DEVICE_TYPE)));
  }

  /**
   * The device id within the type.
   *
   * @return the device id
   */
  public int deviceId() {
    return read(tensor -> C.getInt(tensor + Fields.TENSOR_DEVICE + Fields.DEVICE_DEVICE_ID));
  }

  /**
   * The data pointer: an address, or a handle on devices whose buffers are handles. The first
   * element is {@link #byteOffset} bytes after it.
   *
   * @return the data pointer; 0 for NULL
   */
  public long dataAddress() {
    return read(tensor -> C.getAddress(tensor + Fields.TENSOR_DATA));
  }

  /**
   * The number of bytes from the data pointer to the first element.
   *
   * @return the number of bytes, which is unsigned
   */
  public long byteOffset() {
    return read(tensor -> C.getLong(tensor + Fields.TENSOR_BYTE_OFFSET));
  }

  /**
   * The DLPACK_FLAG_BITMASK_ bits. A legacy tensor has no flags and counts as read-only.
   *
   * @return the flags
   */
  public long flags() {
    return read(tensor -> flagsOf(kind, tensor - kind.tensor));
  }

  /**
   * Whether the flags mark the memory as read-only.
   *
   * @return whether the memory is read-only
   */
  public boolean isReadOnly() {
    return (flags() & DlpackConstants.DLPACK_FLAG_BITMASK_READ_ONLY) != 0;
  }

  /**
   * Whether the flags mark the memory as a copy made for this consumer.
   *
   * @return whether the memory is a copy
   */
  public boolean isCopied() {
    return (flags() & DlpackConstants.DLPACK_FLAG_BITMASK_IS_COPIED) != 0;
  }

  private <T> T read(LongFunction<T> field) {
    long cell = enter("read");
    try {
      long managed = C.getAddress(cell);
      checkVersion(kind, managed);
      return field.apply(managed + kind.tensor);
    } finally {
      leave();
    }
  }

  static long flagsOf(Kind kind, long managed) {
    return kind == Kind.LEGACY_TENSOR
        ? DlpackConstants.DLPACK_FLAG_BITMASK_READ_ONLY
        : C.getLong(managed + Fields.MANAGED_TENSOR_VERSIONED_FLAGS);
  }

  /** Throws ENOTSUP for a struct with another layout. */
  static void checkVersion(Kind kind, long managed) {
    if (kind == Kind.LEGACY_TENSOR || major(managed) == DlpackConstants.DLPACK_MAJOR_VERSION) {
      return;
    }
    throw FletchingException.unsupported(
        String.format(
            "DLManagedTensorVersioned.version: unknown layout: expected major version %d, got"
                + " %d.%d; hint: pass max_version to the producer",
            DlpackConstants.DLPACK_MAJOR_VERSION, major(managed), minor(managed)));
  }

  /** Checks the version, and throws ENOTSUP for a flag that it does not define. */
  static void checkFlags(Kind kind, long managed) {
    checkVersion(kind, managed);
    long flags = flagsOf(kind, managed);
    // A later minor version may add flags that do not change the meaning of other fields.
    if ((flags & ~KNOWN_FLAGS) != 0 && minor(managed) <= DlpackConstants.DLPACK_MINOR_VERSION) {
      throw FletchingException.unsupported(
          String.format(
              "DLManagedTensorVersioned.flags: unknown bit: expected those of version %d.%d, got"
                  + " %s; hint: fix the producer",
              DlpackConstants.DLPACK_MAJOR_VERSION,
              DlpackConstants.DLPACK_MINOR_VERSION,
              Long.toUnsignedString(flags)));
    }
  }

  private static long major(long managed) {
    return number(managed, Fields.VERSION_MAJOR);
  }

  private static long minor(long managed) {
    return number(managed, Fields.VERSION_MINOR);
  }

  private static long number(long managed, long field) {
    return C.getInt(managed + Fields.MANAGED_TENSOR_VERSIONED_VERSION + field) & 0xFFFF_FFFFL;
  }
}
