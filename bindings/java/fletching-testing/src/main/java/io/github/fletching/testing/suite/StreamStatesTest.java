// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static io.github.fletching.abi.Errno.EINVAL;
import static io.github.fletching.abi.Errno.EIO;
import static io.github.fletching.testing.suite.Raw.assertClosed;
import static io.github.fletching.testing.suite.Raw.assertError;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.jna.Memory;
import com.sun.jna.Pointer;
import io.github.fletching.ArrayOwner;
import io.github.fletching.BatchStream;
import io.github.fletching.DeviceArrayStream;
import io.github.fletching.FletchingException;
import io.github.fletching.Warning;
import io.github.fletching.testing.suite.Script.Flavor;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Streams that have failed, ended or are closed within a call, and their error messages. */
@ExtendWith(LeakCheck.class)
class StreamStatesTest {
  private static final String RESERVED =
      "ArrowDeviceArray.reserved: not zero: expected zeros; hint: fix the producer";

  @ParameterizedTest
  @EnumSource(Flavor.class)
  void laterErrorsHaveFirstErrorAsCause(Flavor flavor) {
    Script script = new Script(flavor, 0);
    script.codes.put(1, EIO);
    try (BatchStream<? extends ArrayOwner> stream = script.open()) {
      FletchingException first = assertThrows(FletchingException.class, stream::hasNext);
      assertNull(first.getCause());
      for (int i = 0; i < 3; i++) {
        assertSame(first, assertThrows(FletchingException.class, stream::next).getCause());
        assertSame(first, assertThrows(FletchingException.class, stream::schema).getCause());
      }
    }
    script.assertEnded();
  }

  /** A foreign caller that passes NULL gets an error, and the stream stays usable. */
  @ParameterizedTest
  @EnumSource(Flavor.class)
  void callWithoutOutReturnsEinval(Flavor flavor) {
    Script script = new Script(flavor, 1);
    Raw stream = flavor.export(script.open());
    assertEquals(EINVAL, stream.call("get_schema", null));
    assertEquals(EINVAL, stream.call("get_next", null));
    Raw batch = Raw.deviceArray();
    assertEquals(0, stream.call("get_next", batch));
    batch.release();
    stream.release();
    script.assertEnded();
  }

  /** There is no batch that the close could have released. */
  @ParameterizedTest
  @EnumSource(Flavor.class)
  void closeDuringLastCallEndsStream(Flavor flavor) {
    Script script = new Script(flavor, 0);
    BatchStream<? extends ArrayOwner> stream = script.open();
    script.atEnd =
        () -> {
          stream.close();
          assertEquals(0, script.calls("release"));
        };
    assertFalse(stream.hasNext());
    assertTrue(stream.isReleased());
    script.assertEnded();
    assertEquals(
        "stream: closed or moved: expected a live struct",
        assertThrows(IllegalStateException.class, stream::hasNext).getMessage());
  }

  /** While a call uses the struct, it can be neither released nor moved. */
  @ParameterizedTest
  @EnumSource(Flavor.class)
  void ruleDeviceStreamCallsSerialized(Flavor flavor) {
    Script script = new Script(flavor, 0);
    List<String> found = new ArrayList<>();
    BatchStream<? extends ArrayOwner> stream = script.open();
    script.atEnd =
        () -> {
          found.add(stream.toString());
          found.add(Releases.errorOf(stream::schema).getMessage());
          found.add(Releases.errorOf(stream::address).getMessage());
          Raw room = flavor.room();
          found.add(Releases.errorOf(() -> stream.moveTo(room.address())).getMessage());
        };
    assertFalse(stream.hasNext());
    String name = flavor == Flavor.PLAIN ? "ArrayStream" : "DeviceArrayStream";
    String busy = ": in use: expected one call at a time";
    assertEquals(
        List.of(name + "[live]", "stream" + busy, "address" + busy, "moveTo" + busy), found);
    assertEquals(name + "[live]", stream.toString());
    stream.close();
    assertEquals(name + "[released]", stream.toString());
    script.assertEnded();
  }

  @ParameterizedTest
  @EnumSource(Flavor.class)
  void endedStreamStaysUsable(Flavor flavor) {
    Script script = new Script(flavor, 1);
    try (BatchStream<? extends ArrayOwner> stream = script.open()) {
      assertSame(stream, stream.iterator());
      assertTrue(stream.hasNext());
      stream.next().close();
      for (int i = 0; i < 2; i++) {
        assertFalse(stream.hasNext());
        assertEquals(
            "stream: no batch: expected a call of hasNext before",
            assertThrows(NoSuchElementException.class, stream::next).getMessage());
        stream.schema().close();
      }
      assertFalse(stream.isReleased());
    }
    assertEquals(2, script.calls("get_next"));
    script.assertEnded();
  }

  @ParameterizedTest
  @EnumSource(Flavor.class)
  void rejectsReleasedSchema(Flavor flavor) {
    Script script = new Script(flavor, 1);
    script.hasSchema = false;
    String text = "get_schema: released schema with return value 0: expected a live schema";
    try (BatchStream<? extends ArrayOwner> stream = script.open()) {
      assertError(22, text, stream::schema);
      assertError(22, text, stream::next);
    }
    assertEquals(0, script.calls("get_next"));
    assertEquals(0, script.calls("get_last_error"));
    script.assertEnded();
  }

  // --- Error messages, which may contain any bytes

  private static String textOf(int code, byte[] bytes) {
    Script script = new Script(Flavor.PLAIN, 0);
    script.codes.put(1, code);
    script.text = new Memory(bytes.length + 1L);
    script.text.write(0, bytes, 0, bytes.length);
    script.text.setByte(bytes.length, (byte) 0);
    try (BatchStream<? extends ArrayOwner> stream = script.open()) {
      FletchingException error = assertThrows(FletchingException.class, stream::hasNext);
      assertEquals(Math.max(code, 0) == 0 ? EIO : code, error.errno());
      return error.getMessage();
    } finally {
      script.assertEnded();
    }
  }

  private static String textOf(String text) {
    return textOf(EIO, text.getBytes(StandardCharsets.UTF_8));
  }

  private static String textOf(int... bytes) {
    byte[] text = new byte[bytes.length];
    for (int i = 0; i < bytes.length; i++) {
      text[i] = (byte) bytes[i];
    }
    return textOf(EIO, text);
  }

  @Test
  void controlCharactersAreEscaped() {
    assertEquals("a\nb\tc d~", textOf("a\nb\tc d~"));
    assertEquals("\\x01\\x1f \\x7f\\x0d", textOf("\u0001\u001f \u007f\r"));
    assertEquals("\u0080\u20ac\ud83d\ude00", textOf("\u0080\u20ac\ud83d\ude00"));
  }

  @Test
  void nonUtf8BytesAreEscaped() {
    assertEquals("a\\xffb", textOf('a', 0xFF, 'b'));
    assertEquals("\\xe2\\x82c\\xc3", textOf(0xE2, 0x82, 'c', 0xC3));
    assertEquals("\\xc0\\x80\u00e9\\x9f", textOf(0xC0, 0x80, 0xC3, 0xA9, 0x9F));
  }

  @Test
  void errorTextIsLimitedTo4096Bytes() {
    String most = "x".repeat(4096);
    assertEquals(most, textOf(most));
    assertEquals(most + "...", textOf(most + "y"));
    assertEquals(most + "...", textOf(most + "\u00e9"));
    // A 4-byte character is printed completely or not at all.
    String grin = "\ud83d\ude00";
    assertEquals("x".repeat(4092) + grin + "...", textOf("x".repeat(4092) + grin + grin));
    for (int length = 4093; length < 4096; length++) {
      String text = "x".repeat(length);
      assertEquals(text + "...", textOf(text + grin + grin), length + " bytes before it");
    }
    byte[] wrong = new byte[5000]; // continuation bytes without a start byte
    java.util.Arrays.fill(wrong, (byte) 0x80);
    assertEquals("\\x80".repeat(4092) + "...", textOf(EIO, wrong));
  }

  @Test
  void nonpositiveCodeIsInText() {
    byte[] text = "text".getBytes(StandardCharsets.UTF_8);
    Map.of(
            1,
            "text",
            28,
            "text",
            -1,
            "text (code -1)",
            Integer.MIN_VALUE,
            "text (code -2147483648)")
        .forEach((code, expected) -> assertEquals(expected, textOf(code, text)));
    assertEquals("errno 1", textOf(1, new byte[0]));
    assertEquals("(code -7)", textOf(-7, new byte[0]));
  }

  // --- Warnings

  private static List<String> warnings(Script script) {
    List<String> texts = new ArrayList<>();
    try (DeviceArrayStream stream = (DeviceArrayStream) script.open()) {
      assertSame(stream, stream.onWarning((Warning each) -> texts.add(each.toString())));
      stream.next().close();
    }
    assertClosed(script.foreign.log, "batch");
    script.assertEnded();
    return texts;
  }

  private static Script with(int word, long value) {
    Script script = new Script(Flavor.DEVICE, 1);
    script.adjust =
        batch -> {
          batch.device().set("sync_event", 0x1000).set("device_id", -1);
          new Pointer(batch.device().address("reserved")).setLong(8L * word, value);
        };
    return script;
  }

  /** Each of the 24 reserved bytes is checked, and no other byte. */
  @Test
  void nonzeroReservedBytesWarn() {
    assertEquals(List.of(), warnings(with(0, 0)));
    for (int word = 0; word < 3; word++) {
      for (long value : new long[] {1, 1L << 63}) {
        assertEquals(
            List.of(RESERVED + " (rule device-array.reserved-zero)"), warnings(with(word, value)));
      }
    }
    Script script = with(1, 1);
    try (DeviceArrayStream stream = (DeviceArrayStream) script.open()) {
      assertSame(stream, stream.strict());
      assertError(22, RESERVED + " (rule device-array.reserved-zero)", stream::hasNext);
    }
    assertClosed(script.foreign.log, "batch");
    script.assertEnded();
  }

  /** By default warnings are dropped. */
  @Test
  void oneBatchMayWarnTwice() {
    Script script = with(2, 5);
    script.found = 3;
    assertEquals(
        List.of(
            "batch: device_type differs from the stream's: expected cuda, got cuda_host (rule"
                + " device-stream.one-device-type)",
            RESERVED + " (rule device-array.reserved-zero)"),
        warnings(script));
    Script silent = with(2, 5);
    silent.found = 3;
    try (DeviceArrayStream stream = (DeviceArrayStream) silent.open()) {
      stream.next().close();
    }
    silent.assertEnded();
  }
}
