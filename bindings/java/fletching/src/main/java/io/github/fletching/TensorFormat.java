// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import io.github.fletching.abi.DataTypeCode;
import java.nio.charset.StandardCharsets;

/** The DLPack type for a format string. */
final class TensorFormat {
  private static final int MOST_QUOTED = 64; // bytes
  private static final int[][] DECIMALS = {{32, 9}, {64, 18}, {128, 38}, {256, 76}};

  final String text;
  boolean isList;
  boolean isBinary; // `size` bytes per value, as an additional dimension
  long size = 1; // elements of a list or bytes of a binary value
  DataType type;
  String lost; // the information that the storage lacks, or null

  private TensorFormat(String text) {
    this.text = text;
  }

  /**
   * Parses the format string at an address.
   *
   * @throws FletchingException EINVAL for a malformed format, ENOTSUP for a format without a DLPack
   *     type
   */
  static TensorFormat at(long address) {
    if (address == 0) {
      throw FletchingException.invalid("ArrowSchema.format: NULL: expected a format string");
    }
    byte[] bytes = Native.bytes(address, Integer.MAX_VALUE);
    return new TensorFormat(new String(bytes, StandardCharsets.ISO_8859_1)).read();
  }

  /** Quotes a string as printable ASCII, and cuts long ones. Each character is a byte. */
  static String quote(String bytes) {
    StringBuilder quoted = new StringBuilder("\"");
    for (int i = 0; i < Math.min(bytes.length(), MOST_QUOTED); i++) {
      char next = bytes.charAt(i);
      if (next == '"' || next == '\\') {
        quoted.append('\\');
      }
      if (next >= 0x20 && next < 0x7F) {
        quoted.append(next);
      } else {
        quoted.append(String.format("\\x%02x", (int) next));
      }
    }
    return quoted.append(bytes.length() > MOST_QUOTED ? "...\"" : "\"").toString();
  }

  FletchingException noTensorType(String why, String hint) {
    return FletchingException.unsupported(
        "ArrowSchema.format: no DLPack type for " + quote(text) + ": " + why + hint);
  }

  private FletchingException malformed(String what) {
    return FletchingException.invalid("ArrowSchema.format: " + what + ", got " + quote(text));
  }

  private TensorFormat read() {
    for (TensorType row : TensorTypes.TYPES) {
      if (row.extension == null && row.format.equals(text)) {
        type = row.dataType();
        return this;
      }
    }
    for (TensorTypes.Stored row : TensorTypes.STORED) {
      if (is(row.format)) {
        type = DataType.of(DataTypeCode.INT, row.bits);
        lost = row.lost;
        return this;
      }
    }
    if (text.startsWith("d:")) {
      return readDecimal();
    }
    isList = text.startsWith("+w:");
    isBinary = text.startsWith("w:");
    if (!isList && !isBinary) {
      throw refusal();
    }
    type = DataType.of(DataTypeCode.UINT, 8);
    lost = isBinary ? TensorTypes.LOST_MEANING : null;
    Numbers numbers = new Numbers(text.indexOf(':') + 1);
    if (!numbers.take() || !numbers.isAtEnd() || numbers.value < 0) {
      throw malformed("malformed size: expected one number from 0 to 2147483647 after the colon");
    }
    size = numbers.value;
    return this;
  }

  /** Whether the text is a known format, or one with parameters after the colon. */
  private boolean is(String known) {
    return known.endsWith(":") ? text.startsWith(known) : text.equals(known);
  }

  private FletchingException refusal() {
    for (TensorTypes.Refused row : TensorTypes.REFUSED) {
      if (is(row.format)) {
        return noTensorType(row.why, "");
      }
    }
    return malformed("unknown: expected a format string of the C Data Interface");
  }

  private TensorFormat readDecimal() {
    Numbers numbers = new Numbers(2);
    boolean isRead = numbers.take();
    int precision = numbers.value;
    isRead = isRead && numbers.skip(',') && numbers.take();
    int bits = 128;
    if (isRead && numbers.skip(',')) {
      isRead = numbers.take();
      bits = numbers.value;
    }
    if (!isRead || !numbers.isAtEnd()) {
      throw malformed("malformed decimal: expected the form 'd:19,10' or 'd:9,2,32'");
    }
    for (int[] width : DECIMALS) {
      if (width[0] != bits) {
        continue;
      }
      if (precision < 1 || precision > width[1]) {
        throw malformed("precision out of range for the width");
      }
      if (bits > 64) {
        throw noTensorType(TensorTypes.WIDE_DECIMAL, "");
      }
      type = DataType.of(DataTypeCode.INT, bits);
      lost = TensorTypes.LOST_SCALE;
      return this;
    }
    throw malformed("unknown width: expected 32, 64, 128 or 256");
  }

  /** Parses the numbers in the text. */
  private final class Numbers {
    private int at;
    int value;

    Numbers(int at) {
      this.at = at;
    }

    boolean isAtEnd() {
      return at == text.length();
    }

    boolean skip(char expected) {
      boolean isThere = !isAtEnd() && text.charAt(at) == expected;
      at += isThere ? 1 : 0;
      return isThere;
    }

    /** Parses an int32_t; returns false for any other text. */
    boolean take() {
      boolean isNegative = skip('-');
      int start = at;
      long number = 0;
      for (; !isAtEnd() && isDigit(text.charAt(at)); at++) {
        number = number * 10 + (text.charAt(at) - '0');
        if (number > Integer.MAX_VALUE) {
          return false;
        }
      }
      value = (int) (isNegative ? -number : number);
      return at > start;
    }
  }

  static boolean isDigit(char character) {
    return character >= '0' && character <= '9';
  }
}
