// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import io.github.fletching.abi.engine.Engine;
import io.github.fletching.abi.engine.EngineProvider;
import io.github.fletching.abi.engine.Engines;
import java.io.ByteArrayOutputStream;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharsetDecoder;
import java.nio.charset.CoderResult;
import java.nio.charset.CodingErrorAction;
import java.nio.charset.StandardCharsets;
import java.util.ServiceLoader;

/** The engine, and conversions of C strings. */
final class Native {
  static final Engine C = open();

  static final int POINTER = C.pointerSize();

  /** Replaces an exception that cannot be allocated. Created early, while memory is available. */
  static final FletchingException NO_MEMORY = new FletchingException();

  /** The maximum number of bytes printed of a foreign string. */
  private static final int MOST_TEXT = 4096;

  private Native() {}

  /**
   * Also searches the context class loader: a parent loader may have loaded this library, and the
   * application's loader the engine.
   */
  private static Engine open() {
    ClassLoader own = Native.class.getClassLoader();
    ClassLoader application = Thread.currentThread().getContextClassLoader();
    try {
      return open(own);
    } catch (IllegalStateException e) {
      if (application == own) {
        return Engines.missing(e);
      }
    }
    try {
      return open(application);
    } catch (IllegalStateException e) {
      return Engines.missing(e);
    }
  }

  private static Engine open(ClassLoader loader) {
    return Engines.open(
        ServiceLoader.load(EngineProvider.class, loader), System.getProperty(Engines.PROPERTY));
  }

  /** Returns a field of the class to which the lookup belongs. */
  static VarHandle field(MethodHandles.Lookup lookup, String name, Class<?> type) {
    try {
      return lookup.findVarHandle(lookup.lookupClass(), name, type);
    } catch (ReflectiveOperationException e) {
      throw new LinkageError(lookup.lookupClass().getName() + "." + name, e);
    }
  }

  /** Allocates zeroed C memory, which the caller frees. Throws ENOMEM with the operation. */
  static long allocate(long size, String operation) {
    long address = C.allocate(size);
    if (address == 0) {
      throw FletchingException.noMemory(operation);
    }
    return address;
  }

  /** Reads bytes up to a NUL, at most {@code most}; empty for NULL. */
  static byte[] bytes(long text, int most) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    for (long at = text; text != 0 && at < text + most; at++) {
      byte next = C.getByte(at);
      if (next == 0) {
        break;
      }
      bytes.write(next);
    }
    return bytes.toByteArray();
  }

  /** Reads a C string, with U+FFFD for invalid UTF-8; empty for NULL. */
  static String text(long text) {
    return new String(bytes(text, Integer.MAX_VALUE), StandardCharsets.UTF_8);
  }

  /** Allocates a C string, which the caller frees; 0 if memory is exhausted. */
  static long newText(String text) {
    byte[] bytes;
    try {
      bytes = text.replace("\0", "\\x00").getBytes(StandardCharsets.UTF_8);
    } catch (OutOfMemoryError noMemory) {
      return 0;
    }
    long address = C.allocate(bytes.length + 1L);
    if (address != 0) {
      C.write(address, bytes);
    }
    return address;
  }

  /**
   * Reads a C string, with \xNN for invalid UTF-8 and for control characters other than line feed
   * and tab. A string longer than 4096 bytes is cut and ends with "...".
   */
  static String printable(long text) {
    byte[] bytes = bytes(text, MOST_TEXT + 1);
    boolean cut = bytes.length > MOST_TEXT;
    int length = bytes.length;
    if (cut) {
      // Omit a character that the cut would split.
      for (length = MOST_TEXT; length > MOST_TEXT - 4 && (bytes[length] & 0xC0) == 0x80; ) {
        length--;
      }
    }
    return printable(ByteBuffer.wrap(bytes, 0, length)) + (cut ? "..." : "");
  }

  private static String printable(ByteBuffer bytes) {
    CharsetDecoder decoder =
        StandardCharsets.UTF_8.newDecoder().onMalformedInput(CodingErrorAction.REPORT);
    CharBuffer decoded = CharBuffer.allocate(bytes.remaining());
    StringBuilder result = new StringBuilder();
    while (true) {
      CoderResult outcome = decoder.decode(bytes, decoded, true);
      decoded.flip().chars().forEach(c -> append(result, c));
      decoded.clear();
      if (!outcome.isError()) {
        return result.toString();
      }
      for (int i = 0; i < outcome.length(); i++) {
        result.append(String.format("\\x%02x", bytes.get()));
      }
      decoder.reset();
    }
  }

  private static void append(StringBuilder result, int c) {
    boolean control = (c < ' ' && c != '\n' && c != '\t') || c == 0x7F;
    result.append(control ? String.format("\\x%02x", c) : String.valueOf((char) c));
  }
}
