// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;

/**
 * Key-value pairs of bytes, in order. Keys may repeat. Immutable.
 *
 * <p>See "ArrowSchema.metadata" in the Arrow C data interface.
 */
public final class Metadata {
  /** Metadata without pairs. */
  public static final Metadata EMPTY = new Metadata(List.of());

  private final List<byte[]> texts; // key, value, key, ...

  private Metadata(List<byte[]> texts) {
    this.texts = texts;
  }

  /**
   * Copies the metadata and appends a pair, encoded as UTF-8.
   *
   * @param key the key to append
   * @param value the value to append
   * @return the new metadata
   * @throws FletchingException EINVAL for a lone surrogate
   */
  public Metadata with(String key, String value) {
    if (!isUnicode(key) || !isUnicode(value)) {
      throw FletchingException.invalid("metadata: lone surrogate: expected Unicode text");
    }
    return with(key.getBytes(StandardCharsets.UTF_8), value.getBytes(StandardCharsets.UTF_8));
  }

  /** Whether the text can be encoded as UTF-8: it has no lone surrogate. */
  static boolean isUnicode(String text) {
    return StandardCharsets.UTF_8.newEncoder().canEncode(text);
  }

  /**
   * Copies the metadata and appends a copy of a pair of arbitrary bytes.
   *
   * @param key the key to append
   * @param value the value to append
   * @return the new metadata
   */
  public Metadata with(byte[] key, byte[] value) {
    List<byte[]> more = new ArrayList<>(texts);
    more.add(key.clone());
    more.add(value.clone());
    return new Metadata(more);
  }

  /**
   * The number of pairs.
   *
   * @return the number of pairs
   */
  public int size() {
    return texts.size() / 2;
  }

  /**
   * A copy of a key.
   *
   * @param pair the index of the pair, from 0
   * @return the key
   */
  public byte[] key(int pair) {
    return texts.get(2 * pair).clone();
  }

  /**
   * A copy of a value.
   *
   * @param pair the index of the pair, from 0
   * @return the value
   */
  public byte[] value(int pair) {
    return texts.get(2 * pair + 1).clone();
  }

  /**
   * A copy of the first value with this key.
   *
   * @param key the key to find
   * @return the value; empty if no pair has the key
   */
  public Optional<byte[]> get(String key) {
    byte[] wanted = key.getBytes(StandardCharsets.UTF_8);
    return IntStream.range(0, isUnicode(key) ? size() : 0)
        .filter(pair -> Arrays.equals(texts.get(2 * pair), wanted))
        .mapToObj(this::value)
        .findFirst();
  }

  /**
   * The first value with this key, as text.
   *
   * @param key the key to find
   * @return the value; empty if no pair has the key
   * @throws FletchingException EINVAL if the value is not UTF-8
   */
  public Optional<String> text(String key) {
    return get(key).map(value -> strict(value, "metadata: value of \"" + key + "\""));
  }

  static String strict(byte[] bytes, String what) {
    try {
      return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes)).toString();
    } catch (CharacterCodingException e) {
      throw FletchingException.invalid(what + ": expected UTF-8");
    }
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Metadata
        && Arrays.deepEquals(texts.toArray(), ((Metadata) other).texts.toArray());
  }

  @Override
  public int hashCode() {
    return Arrays.deepHashCode(texts.toArray());
  }

  @Override
  public String toString() {
    return size() + " pairs";
  }

  /**
   * Encodes the block for ArrowSchema.metadata. Metadata without pairs is encoded as a 4-byte 0; a
   * schema without metadata has NULL instead.
   *
   * @return the block
   * @throws FletchingException EINVAL for more than 2^31-1 bytes
   */
  public byte[] encode() {
    long size = 4;
    for (byte[] text : texts) {
      size += 4L + text.length;
    }
    if (size > Integer.MAX_VALUE) {
      throw FletchingException.invalid(
          "metadata: too large: expected at most " + Integer.MAX_VALUE + " bytes, got " + size);
    }
    ByteBuffer block = ByteBuffer.allocate((int) size).order(ByteOrder.nativeOrder());
    block.putInt(size());
    texts.forEach(text -> block.putInt(text.length).put(text));
    return block.array();
  }

  /**
   * Decodes a block, which may be followed by other bytes.
   *
   * @param block the bytes
   * @return the metadata
   * @throws FletchingException EINVAL for a negative count or length, and for a block that does not
   *     end within the bytes
   * @throws NullPointerException if the block is null
   */
  public static Metadata decode(byte[] block) {
    Decoder.Source source =
        (position, into) -> System.arraycopy(block, position, into, 0, into.length);
    return new Decoder(block.length, source).pairs();
  }

  /**
   * Decodes the block at a C address. A block with wrong lengths is read beyond its end, but never
   * beyond the largest size that {@link #encode} writes. Throws EINVAL or ENOMEM.
   */
  static Metadata at(long address) {
    if (address == 0) {
      return EMPTY;
    }
    try {
      return new Decoder(Integer.MAX_VALUE, (position, into) -> C.read(address + position, into))
          .pairs();
    } catch (OutOfMemoryError e) { // usually because of a wrong length
      throw FletchingException.noMemory("metadata");
    }
  }

  private static final class Decoder {
    private static final int MOST_PAIRS = (Integer.MAX_VALUE - 4) / 8;

    /** Reads from a position until the array is full. */
    interface Source {
      void read(int position, byte[] into);
    }

    private final int size; // upper limit for the block size
    private final Source source;
    private int position;

    Decoder(int size, Source source) {
      this.size = size;
      this.source = source;
    }

    Metadata pairs() {
      int count = number("number of pairs");
      if (count > MOST_PAIRS) {
        throw tooLarge("number of pairs", MOST_PAIRS, count);
      }
      List<byte[]> texts = new ArrayList<>(); // no initial capacity, because the count may be wrong
      for (int pair = 0; pair < count; pair++) {
        texts.add(text("length of key " + pair));
        texts.add(text("length of value " + pair));
      }
      return new Metadata(texts);
    }

    private int number(String what) {
      if (size - position < 4) {
        throw malformed(what, "truncated: expected 4 bytes");
      }
      int value = ByteBuffer.wrap(take(4)).order(ByteOrder.nativeOrder()).getInt();
      if (value < 0) {
        position -= 4;
        throw malformed(what, "negative: expected 0 or more, got " + value);
      }
      return value;
    }

    private byte[] text(String what) {
      int length = number(what);
      if (length > size - position) {
        throw tooLarge(what, size - position, length);
      }
      return take(length);
    }

    private byte[] take(int length) {
      byte[] bytes = new byte[length];
      source.read(position, bytes);
      position += length;
      return bytes;
    }

    private FletchingException tooLarge(String what, int most, int found) {
      position -= 4;
      return malformed(what, "too large: expected at most " + most + ", got " + found);
    }

    private FletchingException malformed(String what, String why) {
      return FletchingException.invalid("metadata: " + what + " at byte " + position + ": " + why);
    }
  }
}
