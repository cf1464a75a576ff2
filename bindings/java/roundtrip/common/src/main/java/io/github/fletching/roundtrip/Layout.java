// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.roundtrip;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Which buffers a format has, and how large they are. */
final class Layout {
  private enum Kind {
    /** Of {@code width} bits, as many as there are elements. */
    VALUES,
    /** Of {@code width} bytes, one more than there are elements. */
    OFFSETS,
    /** As many bytes as the last offset of the buffer before says. */
    DATA,
    /** The data buffers of a view array, and behind them their sizes. */
    VIEWED
  }

  private static final class Part {
    final Kind kind;
    final long width;

    Part(Kind kind, long width) {
      this.kind = kind;
      this.width = width;
    }
  }

  private static final Part BITMAP = values(1);
  private static final Part INTS = new Part(Kind.OFFSETS, Integer.BYTES);
  private static final Part LONGS = new Part(Kind.OFFSETS, Long.BYTES);
  private static final Part DATA = new Part(Kind.DATA, 0);
  private static final Part VIEWED = new Part(Kind.VIEWED, 0);

  /** Those without parameters, apart from the types of one buffer of values. */
  private static final Map<String, List<Part>> PARTS =
      Map.ofEntries(
          Map.entry("n", List.of()),
          Map.entry("+r", List.of()),
          Map.entry("+s", List.of(BITMAP)),
          Map.entry("+l", List.of(BITMAP, INTS)),
          Map.entry("+m", List.of(BITMAP, INTS)),
          Map.entry("+L", List.of(BITMAP, LONGS)),
          Map.entry("+vl", List.of(BITMAP, values(32), values(32))),
          Map.entry("+vL", List.of(BITMAP, values(64), values(64))),
          Map.entry("u", List.of(BITMAP, INTS, DATA)),
          Map.entry("z", List.of(BITMAP, INTS, DATA)),
          Map.entry("U", List.of(BITMAP, LONGS, DATA)),
          Map.entry("Z", List.of(BITMAP, LONGS, DATA)),
          Map.entry("vu", List.of(BITMAP, values(128), VIEWED)),
          Map.entry("vz", List.of(BITMAP, values(128), VIEWED)));

  /** Bits of a value, by the formats that have them. */
  private static final Map<Integer, List<String>> FORMATS =
      Map.of(
          1, List.of("b"),
          8, List.of("c", "C"),
          16, List.of("s", "S", "e"),
          32, List.of("i", "I", "f", "tdD", "tts", "ttm", "tiM"),
          64, List.of("l", "L", "g", "tdm", "ttu", "ttn", "tiD", "tDs", "tDm", "tDu", "tDn"),
          128, List.of("tin"));

  private static final Pattern TIMESTAMP = Pattern.compile("ts[smun]:.*");
  private static final Pattern BINARY = Pattern.compile("w:([0-9]{1,9})");
  private static final Pattern DECIMAL = Pattern.compile("d:[0-9]+,-?[0-9]+(?:,([0-9]{1,9}))?");

  private Layout() {}

  /** The size of every buffer in bytes; of an array that has been checked. */
  static long[] bufferSizes(Structs.Array access, String format, long array) {
    List<Part> parts = parts(format);
    long count = access.bufferCount.of(array);
    boolean view = parts.contains(VIEWED);
    if (count < parts.size() || count > parts.size() && !view) {
      String expected = parts.size() + (view ? " or more" : "");
      throw refused(format, "n_buffers is " + count + ", expected " + expected);
    }
    long buffers = access.buffers.of(array);
    long end;
    List<Long> sizes = new ArrayList<>();
    try {
      end = Math.addExact(access.length.of(array), access.offset.of(array));
      for (Part part : parts) {
        if (part.kind == Kind.VALUES) {
          sizes.add(Math.addExact(Math.multiplyExact(part.width, end), 7) / 8);
        } else if (part.kind == Kind.OFFSETS) {
          sizes.add(Math.multiplyExact(part.width, Math.addExact(end, 1)));
        } else if (part.kind == Kind.DATA) {
          sizes.add(lastOffset(Foreign.pointerAt(buffers, 1), parts.get(1).width, end));
        } else {
          addViewed(sizes, format, buffers, count);
        }
      }
    } catch (ArithmeticException e) {
      throw refused(format, "length is " + access.length.of(array));
    }
    return sizes.stream().mapToLong(Long::longValue).toArray();
  }

  private static List<Part> parts(String format) {
    if (PARTS.containsKey(format)) {
      return PARTS.get(format);
    } else if (format.startsWith("+w:")) {
      return List.of(BITMAP);
    } else if (format.startsWith("+us:")) {
      return List.of(values(8));
    } else if (format.startsWith("+ud:")) {
      return List.of(values(8), values(32));
    }
    return List.of(BITMAP, values(bits(format)));
  }

  private static long bits(String format) {
    for (Map.Entry<Integer, List<String>> entry : FORMATS.entrySet()) {
      if (entry.getValue().contains(format)) {
        return entry.getKey();
      }
    }
    if (TIMESTAMP.matcher(format).matches()) {
      return Long.SIZE;
    }
    Matcher binary = BINARY.matcher(format);
    if (binary.matches()) {
      return 8 * Long.parseLong(binary.group(1));
    }
    Matcher decimal = DECIMAL.matcher(format);
    if (decimal.matches()) {
      return decimal.group(1) == null ? 128 : Long.parseLong(decimal.group(1));
    }
    throw refused(format, "it is not known here");
  }

  private static Part values(long bits) {
    return new Part(Kind.VALUES, bits);
  }

  private static long lastOffset(long offsets, long width, long index) {
    if (offsets == 0) {
      return 0;
    }
    long address = offsets + width * index;
    return width == Integer.BYTES ? Foreign.readInt(address) : Foreign.readLong(address);
  }

  private static void addViewed(List<Long> sizes, String format, long buffers, long count) {
    long ofData = Foreign.pointerAt(buffers, count - 1);
    for (long i = 0; i < count - 3; i++) {
      if (ofData == 0) {
        throw refused(format, "the sizes of the data buffers are NULL");
      }
      long size = Foreign.readLong(ofData + Long.BYTES * i);
      if (size < 0) {
        throw refused(format, "the size of data buffer " + i + " is " + size);
      }
      sizes.add(size);
    }
    sizes.add(Long.BYTES * (count - 3));
  }

  private static TransitException refused(String format, String problem) {
    return new TransitException(TransitException.EINVAL, "format '" + format + "': " + problem);
  }
}
