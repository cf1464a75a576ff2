// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.jna.Memory;
import com.sun.jna.Pointer;
import io.github.fletching.FletchingException;
import io.github.fletching.Metadata;
import io.github.fletching.Schema;
import io.github.fletching.SchemaBuilder;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.NotEmpty;
import net.jqwik.api.constraints.Size;

/** Metadata and text with arbitrary content. */
class MetadataTest {
  private static Metadata of(List<byte[]> texts) {
    Metadata metadata = Metadata.EMPTY;
    for (int i = 0; i + 1 < texts.size(); i += 2) {
      metadata = metadata.with(texts.get(i), texts.get(i + 1));
    }
    return metadata;
  }

  @Property
  void schemaKeepsMetadataPairs(@ForAll @Size(max = 12) List<byte[]> texts) {
    Metadata metadata = of(texts);
    assertEquals(metadata, Metadata.decode(metadata.encode()));
    try (Schema schema = new SchemaBuilder("i").metadata(metadata).build()) {
      assertEquals(metadata, schema.metadata());
      assertEquals(texts.size() / 2, schema.metadata().size());
      for (int i = 0; i < metadata.size(); i++) {
        assertArrayEquals(texts.get(2 * i), schema.metadata().key(i));
        assertArrayEquals(texts.get(2 * i + 1), schema.metadata().value(i));
      }
    }
  }

  /** At any cut position. Bytes after a block are not read. */
  @Property
  void decodeRejectsTruncatedBlock(
      @ForAll @Size(min = 2, max = 6) List<byte[]> texts, @ForAll int at) {
    byte[] block = of(texts).encode();
    byte[] longer = Arrays.copyOf(block, block.length + 3);
    assertEquals(of(texts), Metadata.decode(longer));
    byte[] cut = Arrays.copyOf(block, Math.floorMod(at, block.length));
    String text = assertThrows(FletchingException.class, () -> Metadata.decode(cut)).getMessage();
    assertTrue(text.startsWith("metadata: "), text);
  }

  @Property
  void decodeReadsOrRejectsAnyBytes(@ForAll byte[] block) {
    try {
      Metadata metadata = Metadata.decode(block);
      byte[] again = metadata.encode();
      assertArrayEquals(Arrays.copyOf(block, again.length), again);
    } catch (FletchingException e) {
      assertEquals(22, e.errno());
    }
  }

  @Property
  void schemaKeepsNameAndFormat(@ForAll String name, @ForAll @NotEmpty String format) {
    if (Stream.of(name, format).flatMapToInt(String::codePoints).anyMatch(MetadataTest::isBad)) {
      assertThrows(FletchingException.class, () -> new SchemaBuilder(format).name(name).build());
      return;
    }
    try (Schema schema = new SchemaBuilder(format).name(name).build()) {
      assertEquals(name, schema.name());
      assertEquals(format, schema.format());
    }
  }

  /** Returns true for NUL and for a lone surrogate; a surrogate pair is a single code point. */
  private static boolean isBad(int codePoint) {
    return codePoint == 0 || Character.getType(codePoint) == Character.SURROGATE;
  }

  private static void assertMalformed(String text, int... numbers) {
    ByteBuffer block = ByteBuffer.allocate(4 * numbers.length).order(ByteOrder.nativeOrder());
    for (int number : numbers) {
      block.putInt(number);
    }
    Raw.assertInvalid(text, () -> Metadata.decode(block.array()));
  }

  @Example
  void textReturnsFirstValueOfKey() {
    Metadata metadata = Metadata.EMPTY.with("a", "b").with("c", "1").with("c", "2").with("d", "");
    assertEquals("b", metadata.text("a").orElseThrow());
    assertEquals("1", metadata.text("c").orElseThrow());
    assertEquals("", metadata.text("d").orElseThrow());
    assertTrue(metadata.text("b").isEmpty()); // "b" is a value, not a key
    assertTrue(metadata.text("").isEmpty());
    assertTrue(Metadata.EMPTY.get("a").isEmpty());
    assertEquals("4 pairs", metadata.toString());
  }

  @Example
  void getReturnsNonUtf8Value() {
    byte[] bytes = {(byte) 0xFF, (byte) 0xFE};
    Metadata metadata = Metadata.EMPTY.with("k".getBytes(StandardCharsets.UTF_8), bytes);
    byte[] found = metadata.get("k").orElseThrow();
    assertArrayEquals(bytes, found);
    found[0] = 0; // found is a copy
    assertArrayEquals(bytes, metadata.get("k").orElseThrow());
    Raw.assertInvalid("metadata: value of \"k\": expected UTF-8", () -> metadata.text("k"));
  }

  @Example
  void withRejectsLoneSurrogate() {
    for (String[] pair : new String[][] {{"\ud800", ""}, {"", "a\udc00"}}) {
      String text = "metadata: lone surrogate: expected Unicode text";
      assertEquals(
          text,
          assertThrows(FletchingException.class, () -> Metadata.EMPTY.with(pair[0], pair[1]))
              .getMessage());
    }
    assertEquals("\ud83d\ude80", Metadata.EMPTY.with("", "\ud83d\ude80").text("").orElseThrow());
    assertTrue(Metadata.EMPTY.with("?", "").get("\ud800").isEmpty());
  }

  @Example
  void equalsComparesPairs() {
    Metadata metadata = Metadata.EMPTY.with("a", "b");
    assertEquals(metadata, Metadata.EMPTY.with("a", "b"));
    assertEquals(metadata.hashCode(), Metadata.EMPTY.with("a", "b").hashCode());
    assertNotEquals(metadata.hashCode(), Metadata.EMPTY.with("a", "c").hashCode());
    assertNotEquals(metadata, Metadata.EMPTY.with("a", "c"));
    assertNotEquals(metadata, Metadata.EMPTY);
    assertNotEquals(metadata, (Object) "1 pairs");
    assertNotEquals(metadata, null);
  }

  @Example
  void metadataIsImmutable() {
    byte[] bytes = {1};
    Metadata metadata = Metadata.EMPTY.with(bytes, bytes);
    bytes[0] = 2;
    metadata.key(0)[0] = 3;
    metadata.value(0)[0] = 4;
    assertArrayEquals(new byte[] {1}, metadata.key(0));
    assertArrayEquals(new byte[] {1}, metadata.value(0));
    metadata.with("a", "b");
    assertEquals(1, metadata.size());
    assertEquals(0, Metadata.EMPTY.size());
  }

  @Example
  void encodeEmptyMetadataReturnsFourBytes() {
    assertArrayEquals(new byte[4], Metadata.EMPTY.encode());
    assertEquals(Metadata.EMPTY, Metadata.decode(new byte[4]));
    assertMalformed("metadata: length of key 0 at byte 4: truncated: expected 4 bytes", 1);
    assertMalformed("metadata: length of value 0 at byte 8: truncated: expected 4 bytes", 1, 0);
    assertMalformed("metadata: length of key 1 at byte 12: truncated: expected 4 bytes", 2, 0, 0);
  }

  @Example
  void errorsNameByteOffset() {
    assertMalformed("metadata: number of pairs at byte 0: truncated: expected 4 bytes");
    assertMalformed(
        "metadata: number of pairs at byte 0: negative: expected 0 or more, got -1", -1);
    assertMalformed(
        "metadata: length of key 0 at byte 4: too large: expected at most 0, got 9", 1, 9);
    assertMalformed(
        "metadata: length of value 0 at byte 8: negative: expected 0 or more, got -2", 1, 0, -2);
  }

  @Example
  void decodeRejectsNull() {
    assertThrows(NullPointerException.class, () -> Metadata.decode(null));
  }

  /** A foreign block with lengths that no encoder writes. */
  @Example
  void metadataRejectsLengthsAboveLimit() {
    assertForeignMalformed(
        "metadata: length of key 0 at byte 4: too large: expected at most 2147483639, got"
            + " 2147483647",
        1,
        Integer.MAX_VALUE);
    assertForeignMalformed(
        "metadata: number of pairs at byte 0: too large: expected at most 268435455, got"
            + " 2147483647",
        Integer.MAX_VALUE);
  }

  private static void assertForeignMalformed(String text, int... numbers) {
    try (Schema schema = foreignMetadata(numbers)) {
      Raw.assertInvalid(text, schema::metadata);
    }
  }

  private static Schema foreignMetadata(int... numbers) {
    Memory block = new Memory(4L * numbers.length);
    block.write(0, numbers, 0, numbers.length);
    Schema schema = new SchemaBuilder("i").build();
    Raw.schemaAt(schema.address()).set("metadata", Pointer.nativeValue(block));
    schema.attach(block);
    return schema;
  }
}
