// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.roundtrip;

/** Writes the text that FletchingProducerDescribe defines, from structs that have been checked. */
final class Describe {
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
    long[] sizes = Layout.bufferSizes(arrays, format, array);
    for (int i = 0; i < sizes.length; i++) {
      long address = Foreign.pointerAt(arrays.buffers.of(array), i);
      text.append(begin).append("buffer ").append(i).append(' ');
      text.append(address == 0 ? "-" : sizes[i] + ":" + hex(Foreign.bytes(address, sizes[i])));
      text.append('\n');
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

  private static String hex(byte[] bytes) {
    StringBuilder hex = new StringBuilder();
    for (byte b : bytes) {
      hex.append(Character.forDigit(b >> 4 & 15, 16)).append(Character.forDigit(b & 15, 16));
    }
    return hex.toString();
  }
}
