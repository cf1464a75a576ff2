// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import io.github.fletching.abi.DataTypeCode;

/** A row of {@link TensorTypes}: a DLPack type and its Arrow storage. */
final class TensorType {
  final DataTypeCode code;
  final int bits; // width of a value
  final int lanes; // values per element of the storage
  final boolean isPadded; // a value narrower than a byte occupies a byte
  final String format; // storage format
  final int partBytes; // size of one value of the format
  final int parts; // 2 if the storage is a list of two
  final String extension; // null for an Arrow type
  final String typeName; // type name in arrow.opaque, or null

  TensorType(
      DataTypeCode code,
      int bits,
      int lanes,
      boolean isPadded,
      String format,
      int partBytes,
      int parts,
      String extension,
      String typeName) {
    this.code = code;
    this.bits = bits;
    this.lanes = lanes;
    this.isPadded = isPadded;
    this.format = format;
    this.partBytes = partBytes;
    this.parts = parts;
    this.extension = extension;
    this.typeName = typeName;
  }

  DataType dataType() {
    return DataType.of(code, bits, lanes);
  }

  /**
   * Finds the row of a DLPack type. The element may have a multiple of the row's lanes. Values
   * narrower than a byte are never imported as their storage, which does not record their width.
   *
   * @throws FletchingException ENOTSUP with the reason
   */
  static TensorType of(DataType type, boolean isPadded, boolean asStorage) {
    boolean isNarrow = type.bits() % 8 != 0;
    if (type.lanes() == 0) {
      throw noArrowType(type, "expected 1 lane or more, got 0");
    }
    if (type.bits() == 0) {
      throw noArrowType(type, "expected elements of whole bytes, got 0 bits");
    }
    boolean isKnown = false;
    for (TensorType row : TensorTypes.TYPES) {
      if (!row.code.equals(type.code()) || row.bits != type.bits()) {
        continue;
      }
      isKnown = true;
      if (!(isNarrow && asStorage)
          && type.lanes() % row.lanes == 0
          && row.isPadded == (isNarrow && isPadded)) {
        return row;
      }
    }
    if (!isNarrow) {
      throw noArrowType(type, "expected a type that Arrow can store");
    }
    String why =
        "expected elements of whole bytes, got " + (isPadded ? "padded" : "packed") + " ones";
    throw noArrowType(type, isKnown ? why + hint(isPadded, asStorage) : why);
  }

  private static String hint(boolean isPadded, boolean asStorage) {
    if (!asStorage) {
      return "; hint: export padded ones, or lanes of whole bytes";
    }
    return isPadded
        ? "; hint: import without asStorage()"
        : "; hint: import padded ones, or lanes of whole bytes, without asStorage()";
  }

  private static FletchingException noArrowType(DataType type, String why) {
    return FletchingException.unsupported("DLTensor.dtype: no Arrow type for " + type + ": " + why);
  }

  /** Finds the row by its type name in arrow.opaque; null for an unknown name. */
  static TensorType named(String name) {
    for (TensorType row : TensorTypes.TYPES) {
      if (name.equals(row.typeName)) {
        return row;
      }
    }
    return null;
  }
}
