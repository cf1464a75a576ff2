// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

import io.github.fletching.abi.DataTypeCode;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Objects;

/**
 * The element type of a tensor. An element has one or more lanes: values that share its bytes.
 * Immutable.
 *
 * <p>See "DLDataType" in DLPack.
 */
public final class DataType {
  private static final int BYTES = 4;

  private final DataTypeCode code;
  private final int bits;
  private final int lanes;

  private DataType(DataTypeCode code, int bits, int lanes) {
    this.code = Objects.requireNonNull(code, "code");
    this.bits = checked("bits", bits, 0xFF);
    this.lanes = checked("lanes", lanes, 0xFFFF);
  }

  private static int checked(String field, int number, int most) {
    if (number < 0 || number > most) {
      throw new IllegalArgumentException(
          field + ": out of range: expected 0 to " + most + ", got " + number);
    }
    return number;
  }

  /**
   * Creates a type of one lane.
   *
   * @param code the family of the type
   * @param bits the width of a value, from 0 to 255
   * @return the type
   * @throws IllegalArgumentException if a number does not fit its field
   */
  public static DataType of(DataTypeCode code, int bits) {
    return new DataType(code, bits, 1);
  }

  /**
   * Creates a type of several lanes.
   *
   * @param code the family of the type
   * @param bits the width of a value, from 0 to 255
   * @param lanes the number of values in an element, from 0 to 65535
   * @return the type
   * @throws IllegalArgumentException if a number does not fit its field
   */
  public static DataType of(DataTypeCode code, int bits, int lanes) {
    return new DataType(code, bits, lanes);
  }

  /** Reads a DLDataType. */
  static DataType at(long address) {
    byte[] bytes = new byte[BYTES];
    C.read(address, bytes);
    ByteBuffer fields = ByteBuffer.wrap(bytes).order(ByteOrder.nativeOrder());
    return new DataType(
        DataTypeCode.of(fields.get((int) Fields.DATA_TYPE_CODE) & 0xFF),
        fields.get((int) Fields.DATA_TYPE_BITS) & 0xFF,
        fields.getShort((int) Fields.DATA_TYPE_LANES) & 0xFFFF);
  }

  /** Writes a DLDataType. */
  void write(long address) {
    ByteBuffer fields = ByteBuffer.allocate(BYTES).order(ByteOrder.nativeOrder());
    fields.put((int) Fields.DATA_TYPE_CODE, (byte) code.value());
    fields.put((int) Fields.DATA_TYPE_BITS, (byte) bits);
    fields.putShort((int) Fields.DATA_TYPE_LANES, (short) lanes);
    C.write(address, fields.array());
  }

  /**
   * The family of the type.
   *
   * @return the family of the type
   */
  public DataTypeCode code() {
    return code;
  }

  /**
   * The width of a value, in bits. It counts both parts of a complex number.
   *
   * @return the width of a value, in bits
   */
  public int bits() {
    return bits;
  }

  /**
   * The number of values in an element.
   *
   * @return the number of values in an element
   */
  public int lanes() {
    return lanes;
  }

  @Override
  public boolean equals(Object other) {
    if (!(other instanceof DataType)) {
      return false;
    }
    DataType type = (DataType) other;
    return code.equals(type.code) && bits == type.bits && lanes == type.lanes;
  }

  @Override
  public int hashCode() {
    return Objects.hash(code, bits, lanes);
  }

  @Override
  public String toString() {
    String type = code + " of " + bits + " bits";
    return lanes == 1 ? type : type + " and " + lanes + " lanes";
  }
}
