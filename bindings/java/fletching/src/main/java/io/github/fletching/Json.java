// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import java.util.Arrays;
import java.util.function.Predicate;

/**
 * Parses the parameters of an extension type. Each method advances past the text that it has read,
 * and returns null or false if the text does not match.
 */
final class Json {
  private static final int MOST_LEVELS = 32; // limits the recursion

  private final String text; // one character per byte
  private int at;

  private Json(String text) {
    this.text = text;
  }

  /** Reads the value of an object member. */
  interface Member {
    boolean read(Json json, String key);
  }

  /** Whether the whole text is an object whose members can all be read. */
  static boolean readObject(String text, Member member) {
    Json json = new Json(text);
    if (!json.take('{')) {
      return false;
    }
    if (!json.take('}')) {
      Predicate<Json> next =
          each -> {
            String key = each.string();
            return key != null && each.take(':') && member.read(each, key);
          };
      if (!json.list(next) || !json.take('}')) {
        return false;
      }
    }
    json.peek();
    return json.at == text.length();
  }

  private boolean list(Predicate<Json> next) {
    do {
      if (!next.test(this)) {
        return false;
      }
    } while (take(','));
    return true;
  }

  /** Skips white space and returns the next character; 0 at the end. */
  char peek() {
    while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) {
      at++;
    }
    return at < text.length() ? text.charAt(at) : 0;
  }

  private boolean take(char expected) {
    if (peek() != expected || at == text.length()) {
      return false;
    }
    at++;
    return true;
  }

  /** Reads a string without decoding its escapes. */
  String string() {
    if (!take('"')) {
      return null;
    }
    int start = at;
    for (; at < text.length(); at++) {
      if (text.charAt(at) == '"') {
        return text.substring(start, at++);
      }
      if (text.charAt(at) == '\\' && at + 1 < text.length()) {
        at++;
      }
    }
    return null;
  }

  /** Reads an array of sizes. Returns at most {@code most} + 1 of them. */
  long[] sizes(int most) {
    long[] sizes = new long[most + 1];
    int[] count = {0};
    if (!take('[')) {
      return null;
    }
    if (take(']')) {
      return new long[0];
    }
    Predicate<Json> next =
        each -> {
          long size = each.size();
          if (size >= 0 && count[0] <= most) {
            sizes[count[0]++] = size;
          }
          return size >= 0;
        };
    return list(next) && take(']') ? Arrays.copyOf(sizes, count[0]) : null;
  }

  /** Reads a nonnegative number; -1 for any other text, and beyond int64_t. */
  private long size() {
    if (!TensorFormat.isDigit(peek())) {
      return -1;
    }
    long value = 0;
    for (; at < text.length() && TensorFormat.isDigit(text.charAt(at)); at++) {
      int digit = text.charAt(at) - '0';
      if (value > (Long.MAX_VALUE - digit) / 10) {
        return -1;
      }
      value = value * 10 + digit;
    }
    return value;
  }

  /** Skips a value of any type. */
  boolean skip() {
    return skip(0);
  }

  private boolean skip(int level) {
    char first = peek();
    if (first == '"') {
      return string() != null;
    }
    if (first == '[' || first == '{') {
      return level < MOST_LEVELS && skipGroup(first, level);
    }
    int start = at;
    while (at < text.length() && ",]} \t\r\n".indexOf(text.charAt(at)) < 0) {
      at++;
    }
    return at > start;
  }

  private boolean skipGroup(char open, int level) {
    char close = open == '[' ? ']' : '}';
    take(open);
    if (take(close)) {
      return true;
    }
    Predicate<Json> next =
        each -> (open == '[' || (each.string() != null && each.take(':'))) && each.skip(level + 1);
    return list(next) && take(close);
  }
}
