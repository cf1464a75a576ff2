// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import java.util.HashMap;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A parsed format string: the buffers and children that an array of the type must have.
 *
 * <p>See "Data type description - format strings" in the Arrow C data interface and "Buffer listing
 * for each layout" in the Arrow columnar format.
 */
final class Format {
  /** A struct type may have any number of children. */
  static final int ANY_NUMBER = -1;

  enum Layout {
    PLAIN,
    INTEGER,
    OFFSETS,
    VIEW,
    STRUCT,
    MAP,
    FIXED_SIZE_LIST,
    DENSE_UNION,
    SPARSE_UNION,
    RUN_END_ENCODED;

    boolean isUnion() {
      return this == DENSE_UNION || this == SPARSE_UNION;
    }
  }

  private static final Map<String, Format> PLAIN = new HashMap<>();
  private static final Pattern DECIMAL = Pattern.compile("d:(-?\\d+),(-?\\d+)(?:,(-?\\d+))?");
  private static final Pattern SIZED = Pattern.compile("\\+?w:(\\d+)");
  private static final Pattern UNION = Pattern.compile("\\+u[ds]:((\\d+)(,\\d+)*)?");
  private static final Map<Integer, Integer> DIGITS = Map.of(32, 9, 64, 18, 128, 38, 256, 76);

  static {
    addAll(Layout.INTEGER, 8, "c", "C");
    addAll(Layout.INTEGER, 16, "s", "S");
    addAll(Layout.INTEGER, 32, "i", "I");
    addAll(Layout.INTEGER, 64, "l", "L");
    addAll(Layout.PLAIN, 1, "b");
    addAll(Layout.PLAIN, 16, "e");
    addAll(Layout.PLAIN, 32, "f", "tdD", "tts", "ttm", "tiM");
    addAll(Layout.PLAIN, 64, "g", "tdm", "ttu", "ttn", "tDs", "tDm", "tDu", "tDn", "tiD");
    addAll(Layout.PLAIN, 128, "tin");
    addAll(Layout.VIEW, 128, "vu", "vz");
    for (String text : new String[] {"u", "U", "z", "Z"}) {
      long bits = Character.isUpperCase(text.charAt(0)) ? 64 : 32;
      PLAIN.put(text, new Format(Layout.OFFSETS, 0, 0, 1, bits, 0));
    }
    PLAIN.put("n", new Format(Layout.PLAIN, 0, 0));
    PLAIN.put("+l", new Format(Layout.OFFSETS, 1, 0, 1, 32));
    PLAIN.put("+L", new Format(Layout.OFFSETS, 1, 0, 1, 64));
    PLAIN.put("+m", new Format(Layout.MAP, 1, 0, 1, 32));
    PLAIN.put("+vl", new Format(Layout.PLAIN, 1, 0, 1, 32, 32));
    PLAIN.put("+vL", new Format(Layout.PLAIN, 1, 0, 1, 64, 64));
    PLAIN.put("+s", new Format(Layout.STRUCT, ANY_NUMBER, 0, 1));
    PLAIN.put("+r", new Format(Layout.RUN_END_ENCODED, 2, 0));
  }

  final Layout layout;

  /** The required n_children, or {@link #ANY_NUMBER}. */
  final int children;

  /** The number of elements in a fixed-size list. */
  final int size;

  /** The number of bits per value in each buffer; 0 if the structs do not determine it. */
  final long[] bits;

  private Format(Layout layout, int children, int size, long... bits) {
    this.layout = layout;
    this.children = children;
    this.size = size;
    this.bits = bits;
  }

  private static void addAll(Layout layout, long bits, String... texts) {
    for (String text : texts) {
      PLAIN.put(text, new Format(layout, 0, 0, 1, bits));
    }
  }

  /** Whether buffer {@code index} is an offsets buffer, with one entry more than the array. */
  boolean isOffsets(int index) {
    return index == 1 && (layout == Layout.OFFSETS || layout == Layout.MAP);
  }

  /** Whether n_buffers may be the count. Views add variadic buffers and a list of their sizes. */
  boolean hasBuffers(long count) {
    return layout == Layout.VIEW
        ? count > bits.length && count <= Kind.MOST_STRUCTS
        : count == bits.length;
  }

  /** The expected count for an error message. */
  String buffersText() {
    return layout == Layout.VIEW ? "at least " + (bits.length + 1) : "" + bits.length;
  }

  /** Whether the first buffer is a validity bitmap. */
  boolean hasValidity() {
    return bits.length > 0 && !layout.isUnion();
  }

  /**
   * Parses a format string.
   *
   * @throws FletchingException EINVAL unless the text is a published format string
   */
  static Format of(String text) {
    Format plain = PLAIN.get(text);
    if (plain != null) {
      return plain;
    }
    if (text.startsWith("d:")) {
      return decimal(text);
    }
    if (text.startsWith("w:") || text.startsWith("+w:")) {
      int size = sized(text);
      return text.startsWith("+")
          ? new Format(Layout.FIXED_SIZE_LIST, 1, size, 1)
          : new Format(Layout.PLAIN, 0, 0, 1, 8L * size);
    }
    if (text.startsWith("ts")) {
      return timestamp(text);
    }
    if (text.startsWith("+ud:") || text.startsWith("+us:")) {
      return union(text);
    }
    throw wrong(
        text,
        text.isEmpty()
            ? "empty: expected a type such as 'i' for int32"
            : "unknown: expected a format string of the C data interface");
  }

  private static FletchingException wrong(String text, String why) {
    return FletchingException.invalid("format: " + why + ", got \"" + text + "\"");
  }

  /** Parses a number. On overflow, returns a number that is invalid in every format. */
  private static int number(String digits) {
    try {
      return Integer.parseInt(digits);
    } catch (NumberFormatException e) {
      return Integer.MIN_VALUE;
    }
  }

  private static Format decimal(String text) {
    Matcher parts = DECIMAL.matcher(text);
    if (!parts.matches() || number(parts.group(2)) == Integer.MIN_VALUE) {
      throw wrong(text, "malformed decimal: expected the form 'd:19,10' or 'd:19,10,256'");
    }
    int width = parts.group(3) == null ? 128 : number(parts.group(3));
    if (!DIGITS.containsKey(width)) {
      throw wrong(text, "unknown width: expected 32, 64, 128 or 256");
    }
    int precision = number(parts.group(1));
    if (precision < 1 || precision > DIGITS.get(width)) {
      throw wrong(text, "precision out of range for the width: expected 1 to " + DIGITS.get(width));
    }
    return new Format(Layout.PLAIN, 0, 0, 1, width);
  }

  private static int sized(String text) {
    Matcher parts = SIZED.matcher(text);
    int size = parts.matches() ? number(parts.group(1)) : -1;
    if (size < 0) {
      throw wrong(text, "malformed size: expected a number from 0 to 2147483647 after the colon");
    }
    return size;
  }

  private static Format timestamp(String text) {
    if (text.length() < 3 || "smun".indexOf(text.charAt(2)) < 0) {
      throw wrong(text, "unknown unit: expected s, m, u or n");
    }
    if (text.length() < 4 || text.charAt(3) != ':') {
      throw wrong(text, "no colon: expected one after the unit, even without a time zone");
    }
    if (text.startsWith("\"", 4) || text.startsWith("'", 4)) {
      throw wrong(text, "time zone in quotes: expected it without");
    }
    return new Format(Layout.PLAIN, 0, 0, 1, 64);
  }

  private static Format union(String text) {
    if (!UNION.matcher(text).matches()) {
      throw wrong(text, "malformed type ids: expected numbers from 0 to 127 separated by commas");
    }
    String[] ids = text.length() == 4 ? new String[0] : text.substring(4).split(",");
    boolean[] seen = new boolean[128];
    for (String each : ids) {
      int id = number(each);
      if (id < 0 || id > 127) {
        throw wrong(text, "malformed type ids: expected numbers from 0 to 127 separated by commas");
      }
      if (seen[id]) {
        throw wrong(text, "duplicate type id: expected each once");
      }
      seen[id] = true;
    }
    return text.startsWith("+ud")
        ? new Format(Layout.DENSE_UNION, ids.length, 0, 8, 32)
        : new Format(Layout.SPARSE_UNION, ids.length, 0, 8);
  }
}
