// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static io.github.fletching.abi.Errno.EINVAL;
import static io.github.fletching.abi.Errno.ENOTSUP;
import static io.github.fletching.abi.Errno.ERANGE;
import static io.github.fletching.testing.suite.Releases.assertFails;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.jna.Memory;
import com.sun.jna.Pointer;
import io.github.fletching.ArrayBuilder;
import io.github.fletching.DataType;
import io.github.fletching.DeviceArray;
import io.github.fletching.DlpackExportOptions;
import io.github.fletching.Metadata;
import io.github.fletching.Schema;
import io.github.fletching.SchemaBuilder;
import io.github.fletching.Tensor;
import io.github.fletching.abi.DataTypeCode;
import io.github.fletching.abi.DeviceType;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** Device arrays as tensors. */
@ExtendWith(LeakCheck.class)
class TensorExportTest {
  private static final DlpackExportOptions PLAIN = DlpackExportOptions.defaults();
  private static final DataType INT32 = DataType.of(DataTypeCode.INT, 32);

  private final Memory memory = new Memory(512);
  private final long values = Pointer.nativeValue(memory);
  private final ForeignStructs foreign = new ForeignStructs();
  private final List<String> closed = new ArrayList<>();

  TensorExportTest() {
    memory.clear();
  }

  private ArrayBuilder array(long length) {
    return new ArrayBuilder(length).buffers(0, values);
  }

  private static SchemaBuilder extended(String format, String name, String parameters) {
    return new SchemaBuilder(format)
        .metadata(
            Metadata.EMPTY
                .with("ARROW:extension:name", name)
                .with("ARROW:extension:metadata", parameters));
  }

  private static SchemaBuilder list(String format, SchemaBuilder child) {
    return new SchemaBuilder(format).child(child);
  }

  private DeviceArray onCpu(ArrayBuilder array) {
    AutoCloseable owner = () -> closed.add("memory");
    return array.buildOn(DeviceType.CPU, -1, 0, owner);
  }

  private Tensor export(SchemaBuilder schema, ArrayBuilder array, DlpackExportOptions options) {
    try (Schema type = schema.build()) {
      return onCpu(array).toDlpack(type, options);
    }
  }

  /** Expects an error that leaves the array with the caller. */
  private void assertRefused(
      int code, SchemaBuilder schema, DeviceArray array, DlpackExportOptions options, String part) {
    try (Schema type = schema.build();
        DeviceArray kept = array) {
      assertFails(code, () -> kept.toDlpack(type, options).close(), part);
      assertFalse(kept.isReleased());
    }
  }

  private void assertRefused(int code, SchemaBuilder schema, ArrayBuilder array, String part) {
    assertRefused(code, schema, onCpu(array), PLAIN, part);
  }

  private static final SchemaBuilder INT = new SchemaBuilder("i");

  @Test
  void tensorSharesMemory() {
    try (Tensor tensor = export(INT, array(6).offset(5), PLAIN)) {
      assertEquals(values + 20, tensor.dataAddress());
      assertEquals(0, tensor.byteOffset());
      assertEquals(INT32, tensor.dtype());
      assertArrayEquals(new long[] {6}, tensor.shape());
      assertArrayEquals(new long[] {1}, tensor.strides());
      assertTrue(tensor.isReadOnly() && !tensor.isCopied());
      assertEquals(List.of(), closed);
      Pointer managed = new Pointer(tensor.address());
      assertArrayEquals(new int[] {1, 3}, managed.getIntArray(0, 2)); // the version
    }
    assertEquals(List.of("memory"), closed);
    try (Tensor empty = export(INT, array(0), PLAIN.writable())) {
      assertEquals(0, empty.dataAddress());
      assertEquals(0, empty.flags());
    }
  }

  @Test
  void listsAndTensorsBecomeDimensions() {
    ArrayBuilder lists =
        new ArrayBuilder(3)
            .offset(1)
            .buffers(0)
            .child(new ArrayBuilder(8).buffers(0).child(array(24)));
    try (Tensor tensor = export(list("+w:2", list("+w:3", INT)), lists, PLAIN)) {
      assertArrayEquals(new long[] {3, 2, 3}, tensor.shape());
      assertArrayEquals(new long[] {6, 3, 1}, tensor.strides());
      assertEquals(values + 24, tensor.dataAddress());
    }
    SchemaBuilder permuted =
        extended(
                "+w:6",
                "arrow.fixed_shape_tensor",
                "{\"shape\":[2,3],\"permutation\":[1,0],\"dim_names\":[\"a\",\"\\\"b]\"]}")
            .child(INT);
    ArrayBuilder two = new ArrayBuilder(2).buffers(0).child(array(12));
    try (Tensor tensor = export(permuted, two, PLAIN)) {
      assertArrayEquals(new long[] {2, 3, 2}, tensor.shape());
      assertArrayEquals(new long[] {6, 1, 3}, tensor.strides());
    }
    assertRefused(
        EINVAL,
        extended("+w:6", "arrow.fixed_shape_tensor", "{\"shape\":[2,2]}").child(INT),
        two,
        "differs from its shape: expected the product of the sizes, got 6");
    assertRefused(
        EINVAL,
        extended("+w:6", "arrow.fixed_shape_tensor", "{\"shape\":[2,3],\"permutation\":[0,0]}")
            .child(INT),
        two,
        "wrong permutation");
    assertRefused(EINVAL, list("+w:7", INT), two, "too short");
    SchemaBuilder deep = INT;
    ArrayBuilder array = array(1);
    for (int i = 0; i < 64; i++) {
      deep = list("+w:1", deep);
      array = new ArrayBuilder(1).buffers(0).child(array);
    }
    assertRefused(ENOTSUP, deep, array, "expected at most 64");
  }

  @Test
  void extensionParametersAreParsed() {
    ArrayBuilder one = new ArrayBuilder(1).buffers(0).child(array(2));
    for (String text :
        List.of(
            " { \"x\" : {\"a\":[1,{}]}, \"shape\" : [ 2 , 1 ] } ",
            "{\"shape\":[2,1],\"permutation\":null,\"dim_names\":null}")) {
      SchemaBuilder schema = extended("+w:2", "arrow.fixed_shape_tensor", text).child(INT);
      try (Tensor tensor = export(schema, one, PLAIN)) {
        assertArrayEquals(new long[] {1, 2, 1}, tensor.shape());
      }
    }
    String unread = "\"shape\":[2]";
    for (String text :
        List.of(
            "",
            "{",
            "[]",
            "null",
            "{\"shape\":[2}",
            "{\"shape\":[-1]}",
            "{\"shape\":[2.5]}",
            "{\"shape\":[\"2\"]}",
            "{\"shape\":2}",
            "{" + unread + "} x",
            "{" + unread + ",}",
            "{" + unread + ",\"x\":\"}",
            "{" + unread + ",\"x\\\"",
            "{\"shape\":[99999999999999999999]}",
            "{\"x\":" + "[".repeat(100_000))) {
      SchemaBuilder schema = extended("+w:2", "arrow.fixed_shape_tensor", text).child(INT);
      assertRefused(EINVAL, schema, one, "malformed: expected the form");
    }
    String sizes = "{\"shape\":[1" + ",1".repeat(5000) + "]}";
    SchemaBuilder many = extended("+w:2", "arrow.fixed_shape_tensor", sizes).child(INT);
    assertRefused(ENOTSUP, many, one, "tensor: too many dimensions: expected at most 64");
    SchemaBuilder none = extended("+w:2", "arrow.fixed_shape_tensor", "{}").child(INT);
    assertRefused(EINVAL, none, one, "no shape: expected one size or more, got \"{}\"");
  }

  @Test
  void everyTypeIsExportedOrRejected() {
    Map<String, DataType> stored =
        Map.of(
            "tdm",
            DataType.of(DataTypeCode.INT, 64),
            "tsu:UTC",
            DataType.of(DataTypeCode.INT, 64),
            "tiM",
            INT32,
            "d:9,2,32",
            INT32);
    stored.forEach(
        (format, type) -> {
          SchemaBuilder schema = new SchemaBuilder(format);
          assertRefused(ENOTSUP, schema, array(2), "hint: pass asStorage()");
          try (Tensor tensor = export(schema, array(2), PLAIN.asStorage())) {
            assertEquals(type, tensor.dtype());
          }
        });
    try (Tensor binary = export(new SchemaBuilder("w:3"), array(2), PLAIN.asStorage())) {
      assertArrayEquals(new long[] {2, 3}, binary.shape());
    }
    try (Tensor bool = export(extended("c", "arrow.bool8", ""), array(2), PLAIN)) {
      assertEquals(DataTypeCode.BOOL, bool.dtype().code());
    }
    Map<String, String> refused =
        Map.of(
            "b", "hint: convert to arrow.bool8",
            "u", "the values are not contiguous in one buffer",
            "d:19,10", "DLPack has no integer of this width",
            "+s", "hint: export each column");
    refused.forEach(
        (format, why) -> assertRefused(ENOTSUP, new SchemaBuilder(format), array(2), why));
    assertRefused(EINVAL, new SchemaBuilder("?"), array(2), "unknown: expected a format string");
    assertRefused(ENOTSUP, extended("i", "example.degrees", ""), array(2), "\"example.degrees\"");
    assertRefused(
        ENOTSUP, new SchemaBuilder("i").dictionary(new SchemaBuilder("u")), array(2), "dictionary");
    assertRefused(EINVAL, extended("i", "arrow.bool8", ""), array(2), "expected int8");
    String opaque = "{\"type_name\":\"bfloat16\",\"vendor_name\":\"DLPack\"}";
    assertRefused(
        EINVAL, extended("i", "arrow.opaque", opaque), array(2), "storage of bfloat16 differs");
  }

  @Test
  void memoryHandleKeepsByteOffset() {
    for (DeviceType device : List.of(DeviceType.OPENCL, DeviceType.of(9999))) {
      try (Schema schema = INT.build();
          Tensor tensor = array(4).offset(5).buildOn(device, 3, 0, null).toDlpack(schema)) {
        assertEquals(values, tensor.dataAddress());
        assertEquals(20, tensor.byteOffset());
        assertEquals(device, tensor.deviceType());
        assertEquals(3, tensor.deviceId());
      }
    }
    DeviceArray far = array(1).buildOn(DeviceType.CUDA, 1L << 40, 0, null);
    assertRefused(ERANGE, INT, far, PLAIN, "out of range for DLPack: expected an int32");
  }

  @Test
  void ruleDlpackDataAligned() {
    for (int offset = 0; offset < 20; offset++) {
      try (Tensor tensor = export(INT, array(4).offset(offset), PLAIN.aligned())) {
        assertEquals(0, tensor.dataAddress() % 256);
        assertEquals((values + 4L * offset) % 256, tensor.byteOffset());
        assertEquals(values + 4L * offset, tensor.dataAddress() + tensor.byteOffset());
      }
    }
    ArrayBuilder high = new ArrayBuilder(2).buffers(0, 0xffff_d556_aa66_0010L);
    try (Schema schema = INT.build();
        Tensor tensor =
            high.buildOn(DeviceType.ONEAPI, 0, 0, null).toDlpack(schema, PLAIN.aligned())) {
      assertEquals(0xffff_d556_aa66_0000L, tensor.dataAddress());
      assertEquals(16, tensor.byteOffset());
    }
  }

  @Test
  void exportRejectsNullChildren() {
    try (Schema schema = list("+w:2", INT).build();
        DeviceArray array = onCpu(new ArrayBuilder(1).buffers(0).child(array(2)))) {
      for (Raw raw : List.of(Raw.schemaAt(schema.address()), Raw.arrayAt(array.address()))) {
        long children = raw.get("children");
        raw.set("children", 0);
        assertFails(EINVAL, () -> array.toDlpack(schema), "child of a fixed-size list: NULL");
        raw.set("children", children); // the release uses them
      }
    }
  }

  @Test
  void ruleDlpackManagedCopiedFlag() {
    try (Tensor copied = export(INT, array(1), PLAIN.copied())) {
      assertTrue(copied.isCopied());
    }
  }

  @Test
  void exportRejectsNulls() {
    ArrayBuilder some = new ArrayBuilder(3).buffers(foreign.bytes(5), values);
    assertRefused(ENOTSUP, INT, some.nullCount(1), "has nulls");
    assertRefused(ENOTSUP, INT, some.nullCount(-1), "hint: fill them, or let the export ignore");
    export(INT, some, PLAIN.ignoreNulls()).close();
    ArrayBuilder later = new ArrayBuilder(3).offset(8).nullCount(-1);
    export(INT, later.buffers(foreign.bytes(0, 0xFF), values), PLAIN).close();
    export(INT, new ArrayBuilder(3).nullCount(-1).buffers(0, values), PLAIN).close();
    assertRefused(EINVAL, INT, array(3).nullCount(1), "validity bitmap is NULL");
    // Reading the bitmap would access an invalid address.
    ArrayBuilder elsewhere = new ArrayBuilder(3).nullCount(-1).buffers(16, values);
    DeviceArray onGpu = elsewhere.buildOn(DeviceType.CUDA, 0, 0, null);
    assertRefused(ENOTSUP, INT, onGpu, PLAIN, "may have nulls");
    DeviceArray pending = elsewhere.buildOn(DeviceType.CUDA_HOST, 0, 8, null);
    assertRefused(ENOTSUP, INT, pending, PLAIN.eventHandled(), "may have nulls");
    // In a sliced list, only the elements of the slice count.
    for (int inside = 0; inside < 8; inside++) {
      int bits = 0xFF ^ (1 << inside);
      ArrayBuilder child = new ArrayBuilder(8).nullCount(-1).buffers(foreign.bytes(bits), values);
      ArrayBuilder slice = new ArrayBuilder(2).offset(1).buffers(0).child(child);
      if (inside >= 2 && inside <= 5) {
        assertRefused(ENOTSUP, list("+w:2", INT), slice, "has nulls");
      } else {
        export(list("+w:2", INT), slice, PLAIN).close();
      }
    }
  }

  @Test
  void exportRejectsMalformedArray() {
    assertRefused(EINVAL, INT, new ArrayBuilder(1).buffers(0, 0), "buffers[1] is NULL");
    assertRefused(EINVAL, INT, new ArrayBuilder(1).buffers(0), "expected at least 2, got 1");
    assertRefused(EINVAL, INT, array(1).offset(Long.MAX_VALUE), "offset plus length out of range");
    assertRefused(EINVAL, INT, array(1).offset(1L << 61), "size out of range");
    assertRefused(
        EINVAL, list("+w:2", INT), new ArrayBuilder(1).buffers(0), "children of a fixed-size list");
    DeviceArray event = array(1).buildOn(DeviceType.CUDA, 1, 8, null);
    assertRefused(EINVAL, INT, event, PLAIN, "ArrowDeviceArray.sync_event: not NULL");
    try (Schema schema = INT.build();
        DeviceArray array = onCpu(array(1))) {
      assertFails(
          EINVAL,
          () -> array.toLegacyDlpack(schema, PLAIN),
          "DLManagedTensor: no flag for read-only memory");
      try (Tensor legacy = array.toLegacyDlpack(schema, PLAIN.writable())) {
        assertTrue(legacy.isLegacy());
        assertEquals(INT32, legacy.dtype());
      }
    }
    assertEquals(List.of("memory"), closed.subList(0, 1));
  }

  @Test
  void exportRejectsReleasedStruct() {
    SchemaBuilder lists = list("+w:2", INT.dictionary(null));
    ArrayBuilder two = new ArrayBuilder(2).buffers(0).child(array(4));
    try (Schema schema = lists.build();
        DeviceArray array = onCpu(two)) {
      array.takeChild(0).close();
      assertFails(EINVAL, () -> array.toDlpack(schema), "ArrowArray.children[0]: released");
    }
    try (Schema schema = lists.build();
        DeviceArray array = onCpu(two)) {
      schema.takeChild(0).close();
      assertFails(EINVAL, () -> array.toDlpack(schema), "ArrowSchema.children[0]: released");
    }
    try (Schema schema = new SchemaBuilder("i").dictionary(new SchemaBuilder("u")).build();
        DeviceArray array = onCpu(array(1).dictionary(new ArrayBuilder(0).buffers(0, 0, 0)))) {
      array.takeDictionary().close();
      assertFails(
          EINVAL,
          () -> array.toDlpack(schema, PLAIN.asStorage()),
          "ArrowArray.dictionary: released: expected a live struct");
    }
    Schema released = INT.build();
    released.close();
    try (DeviceArray array = onCpu(array(1))) {
      assertThrows(IllegalStateException.class, () -> array.toDlpack(released));
      assertFalse(array.isReleased());
    }
    DeviceArray gone = onCpu(array(1));
    gone.close();
    try (Schema schema = INT.build()) {
      assertThrows(IllegalStateException.class, () -> gone.toDlpack(schema));
    }
  }

  @Test
  void exportRejectsNegativeMetadataCount() {
    Raw raw = Raw.schema();
    INT.build().moveTo(raw.address());
    raw.set("metadata", foreign.bytes(0xFF, 0xFF, 0xFF, 0xFF));
    try (Schema schema = raw.give(Schema::wrap);
        DeviceArray array = onCpu(array(1))) {
      assertFails(
          EINVAL,
          () -> array.toDlpack(schema),
          "ArrowSchema.metadata: number of pairs negative: expected 0 or more, got -1");
    }
  }
}
