// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;
import static java.util.Collections.emptyIterator;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.fletching.abi.LayoutClass;
import io.github.fletching.testing.CapturedLog;
import io.github.fletching.testing.NativeLibraries;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** Calls, memory, libraries and C strings of the engine. */
public abstract class EngineSuite {
  private final long[] given = new long[4];

  private long note(long first, long second, long third, long fourth) {
    System.arraycopy(new long[] {first, second, third, fourth}, 0, given, 0, 4);
    return -6;
  }

  @Test
  void argumentsAndResultsPassThroughC() {
    long big = 1L << 40;
    assertEquals(-6, C.call("lila", C.stub("lila", "lila", 0, this::note), -1, big, 3));
    assertArrayEquals(new long[] {-1, big, 3, 0}, given);
    assertEquals(-6, C.call("iiiii", C.stub("iiiii", "iiiii", 0, this::note), 1, 2, 3, 4));
    assertArrayEquals(new long[] {1, 2, 3, 4}, given);
    assertEquals(-6, C.call("i", C.stub("i", "i", 0, this::note)));
    assertArrayEquals(new long[4], given);
    long same = C.stub("aa", "aa", 0, (a, b, c, d) -> a);
    assertEquals(big, C.call("aa", same, big));
    assertEquals(0, C.call("aa", same, 0));
    long nothing = C.stub("va", "va", 0, this::note);
    assertEquals(0, C.call("va", nothing, 5));
    assertArrayEquals(new long[] {5, 0, 0, 0}, given);
    C.run(nothing, 7);
    assertArrayEquals(new long[] {7, 0, 0, 0}, given);
  }

  @Test
  void throwingCallbackReturnsFailureValue() {
    long stub =
        C.stub(
            "name",
            "ia",
            -7,
            (a, b, c, d) -> {
              throw new IllegalStateException("no");
            });
    CapturedLog log = new CapturedLog();
    try {
      assertEquals(-7, C.call("ia", stub, 0));
      assertEquals(List.of("name: the callback threw: no"), log.take());
    } finally {
      log.close();
    }
  }

  /** Reading address 0 would crash the process. */
  @Test
  void callbackRejectsNull() {
    try (ArrayStream stream = ArrayStream.of(new SchemaBuilder("n").build(), emptyIterator());
        AsyncDeviceStream async = new AsyncDeviceStream()) {
      long handler = async.handlerAddress();
      Map<Callback, Long> callbacks =
          Map.of(
              StreamKind.HOST.getSchema,
              stream.address(),
              StreamKind.HOST.getNext,
              stream.address(),
              Callback.ARRAY_STREAM_RELEASE,
              stream.address(),
              Callback.HANDLER_ON_SCHEMA,
              handler,
              Callback.HANDLER_ON_NEXT_TASK,
              handler,
              Callback.HANDLER_RELEASE,
              handler);
      callbacks.forEach(
          (callback, struct) -> {
            int code = (int) C.call("iaaaa", callback.in(struct), 0, 0, 0, 0); // excess arguments
            boolean isVoid = callback.title().endsWith("release");
            assertTrue(isVoid || code == FletchingException.EINVAL, callback.title());
          });
      for (Callback callback : List.of(StreamKind.HOST.getSchema, StreamKind.HOST.getNext)) {
        assertEquals(FletchingException.EINVAL, (int) callback.call(stream.address(), 0));
      }
      Callback.HANDLER_RELEASE.call(handler);
    }
  }

  @Test
  void targetMatchesPlatform() {
    assertEquals(8, C.pointerSize());
    assertEquals(LayoutClass.of(8, 8), C.target());
  }

  @Test
  void readReturnsWrittenValues() {
    long memory = C.allocate(64);
    assertEquals(0, C.getLong(memory));
    C.putLong(memory, 0x1122334455667788L);
    assertEquals(0x55667788, C.getInt(memory));
    C.putInt(memory + 1, -2); // unaligned access
    assertEquals(-2, C.getInt(memory + 1));
    C.putAddress(memory + 8, memory);
    assertEquals(memory, C.getAddress(memory + 8));
    C.write(memory + 16, new byte[] {1, -2, 3});
    C.copy(memory + 16, memory + 32, 3);
    byte[] read = new byte[4];
    C.read(memory + 32, read);
    assertArrayEquals(new byte[] {1, -2, 3, 0}, read);
    assertEquals(-2, C.getByte(memory + 33));
    C.free(memory);
    ByteBuffer direct = ByteBuffer.allocateDirect(8).put(3, (byte) 9);
    assertEquals(9, C.getByte(C.addressOf(direct) + 3));
  }

  @Test
  void allocateZeroesReusedMemory() {
    byte[] ones = new byte[64];
    Arrays.fill(ones, (byte) -1);
    long used = C.allocate(64);
    C.write(used, ones);
    C.free(used);
    long memory = C.allocate(64); // most allocators return the same block
    C.read(memory, ones);
    assertArrayEquals(new byte[64], ones);
    C.free(memory);
    long empty = C.allocate(0);
    assertNotEquals(0, empty);
    C.free(empty);
    assertEquals(0, C.allocate(Long.MAX_VALUE));
  }

  /** A block of this size is mapped separately. Another thread may map the same addresses again. */
  @Test
  void freeUnmapsLargeBlock() throws IOException {
    boolean isMapped = true;
    for (int attempt = 0; isMapped && attempt < 3; attempt++) {
      long block = C.allocate(33L << 20);
      assertTrue(isMapped(block));
      C.free(block);
      isMapped = isMapped(block);
    }
    assertFalse(isMapped);
  }

  private static boolean isMapped(long address) throws IOException {
    try (Stream<String> ranges = Files.lines(Path.of("/proc/self/maps"))) {
      return ranges
          .map(range -> range.split("[- ]"))
          .anyMatch(ends -> hex(ends[0]) <= address && address < hex(ends[1]));
    }
  }

  private static long hex(String digits) {
    return Long.parseUnsignedLong(digits, 16);
  }

  @Test
  void callPassesSixteenArguments() {
    long text = C.allocate(512);
    long format = Native.newText("%ld ".repeat(13));
    long[] arguments = new long[16];
    StringBuilder expected = new StringBuilder();
    for (int i = 3; i < 16; i++) {
      arguments[i] = -(i + ((long) i << 40));
      expected.append(arguments[i]).append(' ');
    }
    arguments[0] = text;
    arguments[1] = 512;
    arguments[2] = format;
    String signature = "iala" + "l".repeat(13);
    assertEquals(
        expected.length(), C.call(signature, C.symbol(0, "snprintf"), arguments), signature);
    assertEquals(expected.toString(), Native.text(text));
    C.free(format);
    C.free(text);
  }

  @Test
  void symbolSearchesOnlyItsLibrary() {
    long standard = C.load("libc.so.6"); // by name
    assertEquals(C.symbol(0, "malloc"), C.symbol(standard, "malloc"));
    long oracle = C.load(libraryOf("oracle"));
    long hostile = C.load(libraryOf("hostile"));
    assertNotEquals(0, C.symbol(hostile, "FletchingHostileCaseCount"));
    assertEquals(0, C.symbol(oracle, "FletchingHostileCaseCount"));
  }

  @Test
  void missingLibraryOrSymbolIsZero() {
    assertNotEquals(0, C.symbol(0, "malloc"));
    assertEquals(0, C.symbol(0, "fletching_has_no_such_symbol"));
    assertEquals(0, C.load("/no/such/library.so"));
    assertEquals(0, C.load("libfletching_no_such_library.so"));
    long oracle = C.load(libraryOf("oracle"));
    assertNotEquals(0, oracle);
    assertEquals(0, C.symbol(oracle, "fletching_has_no_such_symbol"));
    assertNotEquals(0, C.symbol(oracle, "FletchingOracleAlign"));
  }

  private static String libraryOf(String name) {
    return NativeLibraries.folder().resolve("libfletching_" + name + ".so").toString();
  }

  private static String printable(byte[] text) {
    long memory = C.allocate(text.length + 1L);
    C.write(memory, text);
    String found = Native.printable(memory);
    C.free(memory);
    return found;
  }

  /** C text as an error message shows it. */
  @Test
  void printableEscapesAndTruncates() {
    assertEquals("", Native.printable(0));
    byte[] mixed = "a\u00e9\t\n\u0007\u007fb".getBytes(StandardCharsets.UTF_8);
    assertEquals("a\u00e9\t\n\\x07\\x7fb", printable(mixed));
    assertEquals("a\\xff\\xc3b\\xe2\\x82", printable(bytes('a', 0xff, 0xc3, 'b', 0xe2, 0x82)));
    byte[] odd = new byte[5000];
    Arrays.fill(odd, (byte) 0x80);
    assertEquals("\\x80".repeat(4092) + "...", printable(odd));
    Arrays.fill(odd, (byte) 'x');
    assertEquals("x".repeat(4096), printable(Arrays.copyOf(odd, 4096)));
    assertEquals("x".repeat(4096) + "...", printable(odd));
  }

  private static byte[] bytes(int... values) {
    byte[] bytes = new byte[values.length];
    for (int i = 0; i < bytes.length; i++) {
      bytes[i] = (byte) values[i];
    }
    return bytes;
  }
}
