// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.roundtrip;

import java.util.Map;

/** Writes the text that FletchingProducerDescribe defines, from structs that have been checked. */
final class Describe {
  private static final Map<String, Integer> WIDTHS =
      Map.of("c", 1, "C", 1, "s", 2, "S", 2, "i", 4, "I", 4, "f", 4, "l", 8, "L", 8, "g", 8);

  private final Structs structs;
  private final StringBuilder text = new StringBuilder();

  private Describe(Structs structs) {
    this.structs = structs;
  }

  static String describe(Structs structs, long schema, long array) {
    Describe describe = new Describe(structs);
    describe.append(schema, array, "");
    return describe.text.toString();
  }

  private void append(long schema, long array, String path) {
    Structs.Schema schemas = structs.schema;
    Structs.Array arrays = structs.array;
    String begin = (path.isEmpty() ? "/" : path) + " ";
    String format = Foreign.text(schemas.format.of(schema));
    long name = schemas.fieldName.of(schema);
    text.append(begin).append("format=").append(format);
    text.append(" name=").append(name == 0 ? "" : Foreign.text(name));
    text.append(" flags=").append(schemas.flags.of(schema));
    text.append(" metadata=").append(metadata(schemas.metadata.of(schema)));
    text.append(" length=").append(arrays.length.of(array));
    text.append(" null_count=").append(arrays.nullCount.of(array));
    text.append(" offset=").append(arrays.offset.of(array)).append('\n');
    for (int i = 0; i < arrays.bufferCount.of(array); i++) {
      text.append(begin).append("buffer ").append(i).append(' ');
      text.append(buffer(format, array, i)).append('\n');
    }
    for (long i = 0; i < arrays.childCount.of(array); i++) {
      long child = Foreign.pointerAt(arrays.children.of(array), i);
      append(Foreign.pointerAt(schemas.children.of(schema), i), child, path + "/" + i);
    }
    if (arrays.dictionary.of(array) != 0) {
      append(schemas.dictionary.of(schema), arrays.dictionary.of(array), path + "/d");
    }
  }

  private static String metadata(long block) {
    return block == 0 ? "-" : hex(Foreign.bytes(block, metadataSize(block)));
  }

  /** The number of pairs, then each key and value behind its length. */
  private static long metadataSize(long block) {
    long end = block + Integer.BYTES;
    for (int texts = 2 * Foreign.readInt(block); texts > 0; texts--) {
      end += Integer.BYTES + Foreign.readInt(end);
    }
    return end - block;
  }

  private String buffer(String format, long array, int index) {
    long address = Foreign.pointerAt(structs.array.buffers.of(array), index);
    if (address == 0) {
      return "-";
    }
    long size = bufferSize(format, array, index);
    return size + ":" + hex(Foreign.bytes(address, size));
  }

  private long bufferSize(String format, long array, int index) {
    long count = structs.array.length.of(array) + structs.array.offset.of(array);
    long bitmap = (count + 7) / 8;
    if (index == 0) {
      return bitmap; // validity, in every format of the catalogue
    }
    if (index == 1) {
      switch (format) {
        case "b":
          return bitmap;
        case "u":
        case "z":
        case "+l":
          return Integer.BYTES * (count + 1);
        case "U":
        case "Z":
        case "+L":
          return Long.BYTES * (count + 1);
        default:
          if (WIDTHS.containsKey(format)) {
            return WIDTHS.get(format) * count;
          }
      }
    }
    if (index == 2 && (format.equals("u") || format.equals("z"))) {
      return Foreign.readInt(buffers(array, 1) + Integer.BYTES * count);
    }
    if (index == 2 && (format.equals("U") || format.equals("Z"))) {
      return Foreign.readLong(buffers(array, 1) + Long.BYTES * count);
    }
    throw new TransitException(
        TransitException.EINVAL,
        "format '" + format + "': the size of buffer " + index + " is not known here");
  }

  private long buffers(long array, int index) {
    long address = Foreign.pointerAt(structs.array.buffers.of(array), index);
    if (address == 0) {
      throw new TransitException(TransitException.EINVAL, "buffer " + index + " is NULL");
    }
    return address;
  }

  private static String hex(byte[] bytes) {
    StringBuilder hex = new StringBuilder();
    for (byte b : bytes) {
      hex.append(Character.forDigit(b >> 4 & 15, 16)).append(Character.forDigit(b & 15, 16));
    }
    return hex.toString();
  }
}
