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

/** The engine, and texts of C. */
final class Native {
  static final Engine C = open();

  /** The size of a pointer. */
  static final int POINTER = C.pointerSize();

  /** Replaces an exception that cannot be allocated. Made here, before memory can be short. */
  static final FletchingException NO_MEMORY = new FletchingException();

  /** More of a foreign text is never printed. */
  private static final int MOST_TEXT = 4096;

  private Native() {}

  /** The application may have the engine where this library is in a loader above its own. */
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

  /** A field of a class that passes its own lookup. */
  static VarHandle field(MethodHandles.Lookup lookup, String name, Class<?> type) {
    try {
      return lookup.findVarHandle(lookup.lookupClass(), name, type);
    } catch (ReflectiveOperationException e) {
      throw new LinkageError(lookup.lookupClass().getName() + "." + name, e);
    }
  }

  /** Zeroed memory of C, to be freed. Errors: ENOMEM, which names the operation. */
  static long allocate(long size, String operation) {
    long address = C.allocate(size);
    if (address == 0) {
      throw FletchingException.noMemory(operation);
    }
    return address;
  }

  /** Bytes up to a NUL, at most {@code most} of them; none for NULL. */
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

  /** A text of C, with U+FFFD for what is not UTF-8; empty for NULL. */
  static String text(long text) {
    return new String(bytes(text, Integer.MAX_VALUE), StandardCharsets.UTF_8);
  }

  /** A text with a NUL, to be freed; 0 without memory. */
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
   * A text of C with every byte that is not UTF-8 and every control character, other than a line
   * feed and a tab, as \xNN. It ends with "..." when it was longer than 4096 bytes.
   */
  static String printable(long text) {
    byte[] bytes = bytes(text, MOST_TEXT + 1);
    boolean cut = bytes.length > MOST_TEXT;
    int length = bytes.length;
    if (cut) {
      // A character that the cut would split is left out.
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
