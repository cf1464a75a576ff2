// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.arrow;

import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.fletching.Array;
import io.github.fletching.ArrayBuilder;
import io.github.fletching.FletchingException;
import io.github.fletching.Schema;
import io.github.fletching.SchemaBuilder;
import io.github.fletching.abi.Errno;
import io.github.fletching.abi.LayoutClass;
import io.github.fletching.abi.Offsets;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import java.util.Random;
import java.util.function.Supplier;
import org.apache.arrow.c.CDataDictionaryProvider;
import org.apache.arrow.memory.ArrowBuf;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.memory.util.MemoryUtil;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.junit.jupiter.api.Test;

/**
 * Random schemas and arrays, most of them malformed: an import returns a vector or throws an error.
 */
class HostileArraysTest extends ImportFixture {
  private static final int ROUNDS = Integer.getInteger("io.github.fletching.hostileRounds", 500);
  private static final int MEMORY = 1 << 16;
  private static final int LIMIT = 1 << 22; // arrow-java allocates bitmaps of any length

  private static final List<String> LEAVES =
      List.of(
          "n",
          "b",
          "c",
          "S",
          "i",
          "L",
          "e",
          "g",
          "z",
          "U",
          "u",
          "Z",
          "vu",
          "vz",
          "d:9,2",
          "d:5,-3",
          "d:40,1,256",
          "d:9,2,32",
          "w:3",
          "w:0",
          "tdD",
          "ttn",
          "tsu:UTC",
          "tDs",
          "tiM",
          "tiD",
          "tin",
          "w:-1",
          "x",
          "tsn");
  private static final List<String> NESTED =
      List.of("+l", "+L", "+vl", "+vL", "+w:2", "+w:0", "+s", "+m", "+r", "+ud:0,5", "+us:0,5");

  private final Random random = new Random(34);
  private ArrowBuf memory;

  private boolean chance(int oneIn) {
    return random.nextInt(oneIn) == 0;
  }

  private <T> T oneOf(List<T> all) {
    return all.get(random.nextInt(all.size()));
  }

  /** A type and an array of it; a mutation may make the two differ. */
  private final class Pair {
    final SchemaBuilder type;
    final ArrayBuilder array;

    Pair(String format, long rows, int depth) {
      type = new SchemaBuilder(chance(30) ? oneOf(LEAVES) : format).name(chance(5) ? "" : "f");
      long length = chance(25) ? Math.max(rows + random.nextInt(5) - 2, 0) : rows;
      // Not for types with offsets: the import reads the offset at the end of the promised length.
      boolean sized = List.of("u", "U", "z", "Z", "+l", "+L", "+m").contains(format);
      length = !sized && chance(200) ? oneOf(List.of(1L << 31, 1L << 62, (1L << 31) - 1)) : length;
      array = new ArrayBuilder(length).buffers(buffers(bufferCount(format)));
      array.nullCount(chance(10) ? Math.min(length, random.nextInt(3) - 1) : 0);
      if (chance(40)) {
        array.offset(random.nextInt(3));
      }
      if (format.startsWith("+")) {
        addChildren(format, rows, depth);
      } else if ("cSiL".contains(format) && chance(4)) {
        Pair values = pair(rows + 1, depth + 1);
        if (!chance(20)) {
          type.dictionary(values.type);
        }
        if (!chance(20)) {
          array.dictionary(values.array);
        }
      }
      if (chance(60)) {
        array.child(pair(rows, depth + 1).array);
      }
    }

    private void addChildren(String format, long rows, int depth) {
      long below = format.startsWith("+w:") ? rows * (format.charAt(3) - '0') : rows;
      int count = format.startsWith("+u") || format.equals("+r") ? 2 : 1;
      count = format.equals("+s") ? random.nextInt(3) : count;
      for (int i = 0; i < count; i++) {
        Pair child = pair(below, depth + 1);
        if (format.equals("+m") && !chance(20)) {
          child = new Pair("+s", below, depth + 1);
          Pair more = new Pair("i", below, depth + 1);
          child.type.child(more.type);
          child.array.child(more.array);
        } else if (format.equals("+r") && i == 0 && !chance(20)) {
          child = new Pair("i", below, depth + 1);
        }
        if (!chance(40)) {
          type.child(child.type);
        }
        if (!chance(40)) {
          array.child(child.array);
        }
      }
    }
  }

  private Pair pair(long rows, int depth) {
    return new Pair(oneOf(depth < 3 && chance(2) ? NESTED : LEAVES), rows, depth);
  }

  private static int bufferCount(String format) {
    switch (format.substring(0, Math.min(2, format.length()))) {
      case "n":
      case "+r":
        return 0;
      case "+s":
      case "+w":
        return 1;
      case "z":
      case "Z":
      case "u":
      case "U":
      case "vu":
      case "vz":
      case "+v":
        return 3;
      case "+u":
        return format.startsWith("+us") ? 1 : 2;
      default:
        return 2;
    }
  }

  private long[] buffers(int count) {
    int number = chance(20) ? random.nextInt(6) : count;
    long[] buffers = new long[number];
    for (int i = 0; i < number; i++) {
      buffers[i] = chance(i == 0 ? 2 : 15) ? 0 : memory.memoryAddress();
    }
    return buffers;
  }

  /** Overwrites a field that the release does not read. */
  private void mutate(Array array) {
    LayoutClass target = LayoutClass.of(8, 8);
    ByteBuffer struct =
        MemoryUtil.directBuffer(array.address(), Offsets.ARROW_ARRAY.size(target))
            .order(ByteOrder.nativeOrder());
    String field = oneOf(List.of("length", "null_count", "offset", "n_buffers", "buffers"));
    List<Long> values = List.of(-1L, Long.MIN_VALUE, Long.MAX_VALUE, 1L << 32, 0L, 7L);
    long value = field.equals("buffers") ? 0 : oneOf(values);
    struct.putLong(Offsets.ARROW_ARRAY.offset(target, field), value);
  }

  /** arrow-java may throw for values that contradict the null counts. */
  private static String read(int rows, Supplier<String> text) {
    try {
      return "read " + (rows > 100 ? rows : text.get().length());
    } catch (RuntimeException e) {
      return "read until " + e;
    }
  }

  private String importOne(Pair pair, boolean batch, boolean reads) {
    releases.set(0);
    String outcome;
    int least = 1;
    try (BufferAllocator small = new RootAllocator(LIMIT);
        CDataDictionaryProvider provider = new CDataDictionaryProvider();
        Schema schema = pair.type.build()) {
      Array array = pair.array.build(counted());
      if (chance(15)) {
        mutate(array);
      }
      if (batch) {
        try (VectorSchemaRoot root =
            ArrowData.importVectorSchemaRoot(small, array, schema, provider)) {
          outcome = reads ? read(root.getRowCount(), root::contentToTSVString) : "read";
        }
      } else {
        try (FieldVector vector = ArrowData.importVector(small, array, schema, provider)) {
          outcome = reads ? read(vector.getValueCount(), vector::toString) : "read";
        }
      }
    } catch (FletchingException e) {
      assertTrue(List.of(EINVAL, ENOMEM, Errno.ENOSYS).contains(e.errno()), e::toString);
      outcome = e.getMessage();
      least = e.errno() == ENOMEM ? 0 : 1; // arrow-java leaks the array at the limit
    }
    assertTrue(releases.get() <= 1 && releases.get() >= least, outcome);
    return outcome;
  }

  @Test
  void importHostileArrayReturnsVectorOrThrows() {
    int read = 0;
    try (ArrowBuf shared = allocator.buffer(MEMORY)) {
      memory = shared;
      shared.setZero(0, MEMORY);
      for (int i = 0; i < ROUNDS; i++) {
        boolean zeros = i % 2 == 0;
        for (int at = 0; at < 1 << 10; at += 8) { // nonzero values are only imported, not read
          shared.setLong(at, zeros ? 0 : random.nextLong());
        }
        boolean batch = chance(4);
        Pair pair = batch ? new Pair("+s", 2, 0) : pair(random.nextInt(4), 0);
        int round = i;
        String outcome;
        try {
          outcome = importOne(pair, batch, zeros);
        } catch (RuntimeException | Error e) {
          throw new AssertionError("round " + round + ": " + e, e);
        }
        read += outcome.startsWith("read") ? 1 : 0;
      }
    }
    assertTrue(read > ROUNDS / 20 && read < ROUNDS, "read " + read);
  }
}
