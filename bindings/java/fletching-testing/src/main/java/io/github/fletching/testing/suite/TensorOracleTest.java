// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.jna.Memory;
import com.sun.jna.Pointer;
import io.github.fletching.ArrayBuilder;
import io.github.fletching.ArrayView;
import io.github.fletching.DataType;
import io.github.fletching.DeviceArray;
import io.github.fletching.DlpackExportOptions;
import io.github.fletching.DlpackImportOptions;
import io.github.fletching.FletchingException;
import io.github.fletching.ImportedTensor;
import io.github.fletching.Metadata;
import io.github.fletching.Schema;
import io.github.fletching.SchemaBuilder;
import io.github.fletching.SchemaView;
import io.github.fletching.Tensor;
import io.github.fletching.abi.DataTypeCode;
import io.github.fletching.abi.DeviceType;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Collections;
import java.util.Random;
import java.util.function.BiFunction;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** Random tensors and arrays: Java and libfletching return the same results and errors. */
@ExtendWith(LeakCheck.class)
class TensorOracleTest {
  private static final int ROUNDS = 4000;
  private static final DeviceType[] DEVICES = {
    DeviceType.CPU,
    DeviceType.CPU,
    DeviceType.CPU,
    DeviceType.CUDA_HOST,
    DeviceType.CUDA,
    DeviceType.OPENCL,
    DeviceType.of(9999)
  };
  // Copies use only the first WILD_IN_COPIES values: others would read unmapped memory.
  private static final long[] WILD = {
    0, 1, -1, 3, Long.MAX_VALUE, Long.MIN_VALUE, 1L << 31, 1L << 32, 1L << 61
  };
  private static final int WILD_IN_COPIES = 6;
  private static final int SIZE = 1 << 16;

  private final Random random = new Random(20261129);
  private final Memory values = new Memory(SIZE);
  private final Memory bits = new Memory(1024); // validity bitmaps

  TensorOracleTest() {
    for (int i = 0; i < SIZE; i++) {
      values.setByte(i, (byte) (i * 7));
    }
  }

  private boolean rarely() {
    return random.nextInt(24) == 0;
  }

  private long wild(long usual, boolean isCopied) {
    return rarely() ? WILD[random.nextInt(isCopied ? WILD_IN_COPIES : WILD.length)] : usual;
  }

  private DataType type() {
    int code = random.nextInt(19);
    int[] widths = {8, 8, 16, 32, 64, 128, 4, 6, 1, 0};
    int[] lanes = {1, 1, 1, 1, 2, 4, 3, 0};
    if (code >= 15) {
      widths = code == 17 ? new int[] {4} : new int[] {6, 8};
    } else if (code >= 7) {
      widths = new int[] {8};
    }
    return DataType.of(
        DataTypeCode.of(rarely() ? 99 : code),
        widths[random.nextInt(widths.length)],
        lanes[random.nextInt(lanes.length)]);
  }

  /** Returns a tensor that is usually valid, and usually in an order that Arrow can express. */
  private Supplier<ForeignTensor> tensor(boolean isCopied) {
    int ndim = random.nextInt(5);
    long[] sizes = new long[ndim];
    for (int i = 0; i < ndim; i++) {
      sizes[i] = wild(rarely() ? 0 : 1L + random.nextInt(3), isCopied);
    }
    long[] steps = new long[ndim];
    Integer[] axes = new Integer[Math.max(ndim - 1, 0)];
    Arrays.setAll(axes, i -> i + 1);
    if (random.nextBoolean()) {
      Collections.shuffle(Arrays.asList(axes), random);
    }
    long step = 1;
    for (int i = axes.length - 1; i >= 0; i--) {
      steps[axes[i]] = wild(step, isCopied);
      step *= Math.max(sizes[axes[i]], 1);
    }
    if (ndim > 0) {
      steps[0] = wild(step + (rarely() ? 1 : 0), isCopied);
    }
    boolean hasStrides = random.nextInt(3) > 0;
    DataType type = type();
    long data = rarely() ? 0 : Pointer.nativeValue(values) + SIZE / 2 + (rarely() ? 1 : 0);
    long byteOffset = random.nextInt(3) * 16L;
    byteOffset = isCopied ? byteOffset : wild(byteOffset, false);
    DeviceType device = DEVICES[random.nextInt(DEVICES.length)];
    int id = random.nextInt(3) - 1;
    long flags = random.nextInt(rarely() ? 16 : 8);
    int minor = rarely() ? 99 : 3;
    int major = rarely() ? 2 : 1;
    int count = rarely() ? random.nextInt(200) - 66 : ndim;
    long bytes = byteOffset;
    return () -> {
      ForeignTensor made = ForeignTensor.of(type, data, sizes).byteOffset(bytes);
      if (hasStrides) {
        made.strides(steps);
      }
      made.ndim(count <= ndim || count > 64 ? count : ndim);
      return made.on(device, id).flags(flags).version(major, minor);
    };
  }

  /** Returns the fields of a whole tree as text, without the addresses of copies. */
  private static String show(SchemaView schema, ArrayView array, boolean hasAddresses) {
    Metadata metadata = schema.metadata();
    StringBuilder text = new StringBuilder(schema.format() + '"' + schema.name() + '"');
    text.append(schema.flags()).append('[');
    for (int i = 0; i < metadata.size(); i++) {
      text.append(new String(metadata.key(i), StandardCharsets.UTF_8)).append('=');
      text.append(new String(metadata.value(i), StandardCharsets.UTF_8)).append(' ');
    }
    text.append("] ").append(array.length()).append('+').append(array.offset());
    text.append('n').append(array.nullCount()).append('b').append(array.buffers().length);
    if (hasAddresses) {
      text.append(Arrays.toString(array.buffers()));
    }
    assertEquals(schema.childCount(), array.childCount());
    for (int i = 0; i < schema.childCount(); i++) {
      text.append(" / ").append(show(schema.child(i), array.child(i), hasAddresses));
    }
    return text.toString();
  }

  private static String show(Schema schema, DeviceArray array, boolean readOnly, boolean copied) {
    return show(schema.view(), array.view(), !copied)
        + (" on " + array.deviceType() + ' ' + array.deviceId() + ' ' + array.syncEvent())
        + (" read-only " + readOnly + " copied " + copied);
  }

  private static String show(Tensor tensor) {
    return tensor.dtype()
        + Arrays.toString(tensor.shape())
        + Arrays.toString(tensor.strides())
        + (" at " + tensor.dataAddress() + '+' + Long.toUnsignedString(tensor.byteOffset()))
        + (" on " + tensor.deviceType() + ' ' + tensor.deviceId() + " flags " + tensor.flags());
  }

  private static String outcome(Supplier<String> operation) {
    try {
      return operation.get();
    } catch (FletchingException e) {
      return e.errno() + ": " + e.getMessage();
    }
  }

  /** Expects the outcome of the core, whose errors do not name the operation. */
  private static void assertOutcome(String expected, String operation, String actual, int round) {
    String of = actual.replaceFirst("^(\\d+): " + operation + ": ", "$1: ");
    boolean isNamed = !of.equals(actual);
    assertEquals(expected.matches("\\d+: .*"), isNamed, "round " + round + ": " + actual);
    assertEquals(expected, of, "round " + round);
  }

  @Test
  void importMatchesCore() {
    int[] counts = new int[3]; // rejected, shared, copied
    for (int round = 0; round < ROUNDS; round++) {
      int bits = random.nextInt(4) == 0 ? CoreTensors.AS_STORAGE : 0;
      bits |= random.nextInt(4) == 0 ? CoreTensors.LISTS : 0;
      bits |= random.nextInt(4) == 0 ? CoreTensors.COPY : 0;
      int options = bits;
      Supplier<ForeignTensor> make = tensor((options & CoreTensors.COPY) != 0);
      ForeignTensor first = make.get();
      ForeignTensor second = make.get();
      byte[][] bytes = new byte[2][];
      String expected =
          outcome(
              () -> {
                try (CoreTensors.Imported imported = CoreTensors.importTensor(first, options)) {
                  boolean copied = (imported.flags & 2) != 0;
                  bytes[0] = values(imported.schema, imported.array, options);
                  return show(imported.schema, imported.array, (imported.flags & 1) != 0, copied);
                }
              });
      String actual =
          outcome(
              () -> {
                try (ImportedTensor imported = second.take().toDeviceArray(options(options))) {
                  bytes[1] = values(imported.schema(), imported.array(), options);
                  return show(
                      imported.schema(),
                      imported.array(),
                      imported.isReadOnly(),
                      imported.isCopied());
                }
              });
      assertOutcome(expected, "toDeviceArray", actual, round);
      assertArrayEquals(bytes[0], bytes[1], "round " + round);
      assertEquals(1, first.deletions());
      assertEquals(1, second.deletions());
      counts[expected.endsWith("copied true") ? 2 : expected.endsWith("copied false") ? 1 : 0]++;
    }
    assertTrue(counts[0] > ROUNDS / 10 && counts[1] > ROUNDS / 10, Arrays.toString(counts));
  }

  /** Returns the first values, if the import may have copied them. */
  private static byte[] values(Schema schema, DeviceArray array, int options) {
    SchemaView type = schema.view();
    ArrayView view = array.view();
    while (view.childCount() > 0) {
      type = type.child(0);
      view = view.child(0);
    }
    boolean isReadable = array.deviceType().equals(DeviceType.CPU) && view.buffers()[1] != 0;
    if ((options & CoreTensors.COPY) == 0 || !isReadable) {
      return new byte[0];
    }
    String format = type.format();
    long width =
        format.startsWith("w") ? 3 : "11222444888".charAt("cCsSeiIflLg".indexOf(format)) - '0';
    long size = Math.min(view.length(), 1000) * width;
    return new Pointer(view.buffers()[1]).getByteArray(0, (int) size);
  }

  private static DlpackImportOptions options(int bits) {
    DlpackImportOptions options = DlpackImportOptions.defaults();
    options = (bits & CoreTensors.AS_STORAGE) != 0 ? options.asStorage() : options;
    options = (bits & CoreTensors.LISTS) != 0 ? options.fixedSizeLists() : options;
    return (bits & CoreTensors.COPY) != 0 ? options.copyStrided() : options;
  }

  // --- Exports

  private String pick(String... texts) {
    return texts[random.nextInt(texts.length)];
  }

  private Metadata extension(long size) {
    if (random.nextInt(3) > 0) {
      return Metadata.EMPTY;
    }
    String name =
        pick("arrow.bool8", "arrow.opaque", "arrow.opaque", "example.\u00e9\"\\", "")
            + pick("", "", "", "x".repeat(70));
    String type = pick("bfloat16", "complex64", "float8_e5m2", "float4_e2m1fn_x2", "other");
    String opaque = "{\"x\":[1,{}],\"type_name\":\"" + type + "\", \"vendor_name\" : ";
    String parameters =
        pick(opaque + "\"DLPack\"}", opaque + "\"DLPack\"}", opaque + "\"a\"}", "{");
    if (random.nextBoolean() && size > 0) {
      name = "arrow.fixed_shape_tensor";
      String shape = "{\"shape\":[" + size + ",1]";
      parameters =
          pick(shape + "}", shape + ",\"permutation\":[1,0]}", shape + ",\"permutation\":null}")
              + pick("", "", "", ",")
              + pick("", "", " ");
      parameters = rarely() ? "{\"shape\":[2,2],\"permutation\":[0,2]}" : parameters;
    }
    return Metadata.EMPTY
        .with("other", "a")
        .with("ARROW:extension:name", name)
        .with("ARROW:extension:metadata", parameters);
  }

  /** A schema with an array of it, which can usually be exported as a tensor. */
  private final class Tree {
    SchemaBuilder schema;
    ArrayBuilder array;

    private void values(long length) {
      String format = pick("c", "C", "S", "i", "f", "g", "e", "f", "C");
      if (random.nextInt(4) == 0) {
        format =
            pick("tdD", "tsu:UTC", "tDs", "d:9,2,32", "d:19,10", "w:3", "b", "u", "+s", "tin", "?")
                + pick("", "", "", "", "x\"\u00e9");
      }
      schema = new SchemaBuilder(format).metadata(extension(0));
      long first = Pointer.nativeValue(values) + SIZE / 2;
      array = array(length, rarely() ? 0 : first, random.nextInt(12) == 0 ? 1 : 2);
      if (rarely()) {
        schema.dictionary(new SchemaBuilder("u"));
        array.dictionary(new ArrayBuilder(0).buffers(0, 0, 0));
      }
    }

    private ArrayBuilder array(long length, long buffer, int buffers) {
      int offset = random.nextInt(4);
      long bitmap = random.nextInt(3) > 0 ? 0 : Pointer.nativeValue(bits);
      long nulls = random.nextInt(3) > 0 ? 0 : random.nextInt(3) - 1;
      ArrayBuilder made = new ArrayBuilder(length);
      made.offset(bitmap == 0 ? wildOffset(offset) : offset); // the bitmap is read
      made.nullCount(Math.min(nulls, length));
      return buffers == 1 ? made.buffers(bitmap) : made.buffers(bitmap, buffer);
    }

    private long wildOffset(long usual) {
      return random.nextInt(40) > 0 ? usual : pickLong(Long.MAX_VALUE, 1L << 61, 1L << 60);
    }

    private long pickLong(long... numbers) {
      return numbers[random.nextInt(numbers.length)];
    }

    /** Nests the values in {@code lists} lists. */
    Tree(int lists) {
      long length = 1L + random.nextInt(3);
      long[] sizes = new long[lists];
      Arrays.setAll(sizes, i -> rarely() ? 0 : 1L + random.nextInt(3));
      long count = (length + 3) * Arrays.stream(sizes).reduce(1, (a, b) -> a * b);
      values(Math.max(count + 3L * lists - (rarely() ? 9 : 0), 0));
      for (int i = lists - 1; i >= 0; i--) {
        SchemaBuilder below = schema;
        ArrayBuilder child = array;
        schema = new SchemaBuilder("+w:" + sizes[i] + pick("", "", "", "", "", "", "", "x"));
        schema.metadata(extension(sizes[i])).child(below);
        count = sizes[i] == 0 ? length + 3 : count / sizes[i];
        array = array(Math.max(count - (i == 0 ? 3 : 0), 0), 0, 1).child(child);
      }
    }
  }

  @Test
  void exportMatchesCore() {
    int exported = 0;
    int empty = 0;
    for (int round = 0; round < ROUNDS; round++) {
      for (int i = 0; i < bits.size(); i++) {
        bits.setByte(i, (byte) (random.nextInt(8) == 0 ? 0xF7 : 0xFF));
      }
      Tree tree = new Tree(random.nextInt(4));
      DeviceType device = DEVICES[random.nextInt(DEVICES.length)];
      long id = rarely() ? 1L << 40 : random.nextInt(3) - 1;
      int options = random.nextInt(3) == 0 ? CoreTensors.AS_STORAGE : 0;
      options |= random.nextInt(3) == 0 ? CoreTensors.IGNORE_NULLS : 0;
      options |= random.nextInt(3) == 0 ? CoreTensors.ALIGNED : 0;
      options |= random.nextInt(3) == 0 ? CoreTensors.WRITABLE : 0;
      int chosen = options;
      int released = rarely() ? 1 + random.nextInt(2) : 0;
      int[] closes = {0, 0};
      String expected =
          export(tree, device, id, released, closes, 0, (s, a) -> CoreTensors.export(s, a, chosen));
      String actual =
          export(
              tree,
              device,
              id,
              released,
              closes,
              1,
              (s, a) -> a.toDlpack(s, exportOptions(chosen)));
      assertOutcome(expected, "toDlpack", actual, round);
      assertArrayEquals(new int[] {1, 1}, closes);
      exported += expected.contains(" flags ") ? 1 : 0;
      empty += expected.contains("at 0+") ? 1 : 0;
    }
    assertTrue(exported > ROUNDS / 5 && exported < ROUNDS * 4 / 5, exported + " exported");
    assertTrue(empty > 0);
  }

  private static String export(
      Tree tree,
      DeviceType device,
      long id,
      int released,
      int[] closes,
      int index,
      BiFunction<Schema, DeviceArray, Tensor> export) {
    AutoCloseable owner = () -> closes[index]++;
    try (Schema schema = tree.schema.build();
        DeviceArray array = tree.array.buildOn(device, id, 0, owner)) {
      if (released == 1 && schema.childCount() > 0) {
        schema.takeChild(0).close();
      }
      if (released == 2 && array.childCount() > 0) {
        array.takeChild(0).close();
      }
      return outcome(
          () -> {
            try (Tensor tensor = export.apply(schema, array)) {
              assertTrue(array.isReleased());
              return show(tensor);
            }
          });
    }
  }

  private static DlpackExportOptions exportOptions(int bits) {
    DlpackExportOptions options = DlpackExportOptions.defaults();
    options = (bits & CoreTensors.AS_STORAGE) != 0 ? options.asStorage() : options;
    options = (bits & CoreTensors.IGNORE_NULLS) != 0 ? options.ignoreNulls() : options;
    options = (bits & CoreTensors.ALIGNED) != 0 ? options.aligned() : options;
    return (bits & CoreTensors.WRITABLE) != 0 ? options.writable() : options;
  }
}
