// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static io.github.fletching.abi.Errno.EINVAL;
import static io.github.fletching.abi.Errno.ENOTSUP;
import static io.github.fletching.testing.suite.Releases.assertFails;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.jna.Memory;
import com.sun.jna.Pointer;
import io.github.fletching.Array;
import io.github.fletching.ArrayView;
import io.github.fletching.DataType;
import io.github.fletching.DeviceArray;
import io.github.fletching.DlpackExportOptions;
import io.github.fletching.DlpackImportOptions;
import io.github.fletching.ImportedTensor;
import io.github.fletching.Owner;
import io.github.fletching.Schema;
import io.github.fletching.SchemaView;
import io.github.fletching.Tensor;
import io.github.fletching.TensorBuilder;
import io.github.fletching.abi.DataTypeCode;
import io.github.fletching.abi.DeviceType;
import java.lang.ref.WeakReference;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** Tensors as device arrays, and the owners of tensors. */
@ExtendWith(LeakCheck.class)
class TensorImportTest {
  private static final ByteOrder OTHER_ORDER =
      ByteOrder.nativeOrder() == ByteOrder.BIG_ENDIAN
          ? ByteOrder.LITTLE_ENDIAN
          : ByteOrder.BIG_ENDIAN;
  private static final DataType INT32 = DataType.of(DataTypeCode.INT, 32);
  private static final DlpackImportOptions PLAIN = DlpackImportOptions.defaults();
  private static final DlpackImportOptions COPIES = PLAIN.copyStrided();

  private final Memory memory = new Memory(256); // the int32 0, 1, 2, ...
  private final long values = Pointer.nativeValue(memory);

  TensorImportTest() {
    for (int i = 0; i < 64; i++) {
      memory.setInt(4L * i, i);
    }
  }

  private ForeignTensor int32(long... shape) {
    return ForeignTensor.of(INT32, values, shape);
  }

  private static ArrayView leaf(DeviceArray array) {
    ArrayView view = array.view();
    while (view.childCount() > 0) {
      view = view.child(0);
    }
    return view;
  }

  private static int[] valuesOf(ImportedTensor imported) {
    ArrayView leaf = leaf(imported.array());
    return new Pointer(leaf.buffers()[1])
        .getIntArray(4 * leaf.offset(), Math.toIntExact(leaf.length()));
  }

  private static String extensionOf(SchemaView schema) {
    return schema.metadata().text("ARROW:extension:name").orElse("")
        + schema.metadata().text("ARROW:extension:metadata").orElse("");
  }

  /** Expects an error, and the tensor to be deleted. */
  private static void assertRefused(
      int code, ForeignTensor tensor, DlpackImportOptions options, String... parts) {
    Tensor owner = tensor.take();
    assertFails(code, () -> owner.toDeviceArray(options).close(), parts);
    assertTrue(owner.isReleased());
    assertEquals(1, tensor.deletions());
  }

  // --- The owner

  @Test
  void accessorsReadStruct() {
    ForeignTensor foreign = int32(2, 3).strides(1, 2).byteOffset(8).flags(3);
    try (Tensor tensor = foreign.on(DeviceType.OPENCL, 5).take()) {
      assertEquals(foreign.address(), tensor.address());
      assertArrayEquals(new long[] {2, 3}, tensor.shape());
      assertArrayEquals(new long[] {1, 2}, tensor.strides());
      assertEquals(INT32, tensor.dtype());
      assertEquals("int of 32 bits", tensor.dtype().toString());
      assertEquals(DeviceType.OPENCL, tensor.deviceType());
      assertEquals(5, tensor.deviceId());
      assertEquals(values, tensor.dataAddress());
      assertEquals(8, tensor.byteOffset());
      assertEquals(3, tensor.flags());
      assertTrue(tensor.isReadOnly() && tensor.isCopied() && !tensor.isLegacy());
    }
    assertEquals(1, foreign.deletions());
    try (Tensor legacy = ForeignTensor.legacy(INT32, values, 2, 3).take()) {
      assertArrayEquals(new long[] {3, 1}, legacy.strides()); // NULL strides: row-major order
      assertTrue(legacy.isReadOnly() && !legacy.isCopied() && legacy.isLegacy());
    }
    try (Tensor malformed = int32(2).ndim(65).take()) {
      assertFails(
          EINVAL, malformed::shape, "DLTensor.ndim: out of range: expected 0 to 64, got 65");
    }
    assertThrows(IllegalArgumentException.class, () -> DataType.of(DataTypeCode.INT, 256));
    for (DataType other :
        List.of(
            DataType.of(DataTypeCode.UINT, 32),
            DataType.of(DataTypeCode.INT, 64),
            DataType.of(DataTypeCode.INT, 32, 2))) {
      assertNotEquals(INT32, other);
    }
    assertEquals(
        "unknown(99) of 8 bits and 4 lanes", DataType.of(DataTypeCode.of(99), 8, 4).toString());
  }

  @Test
  void closeDeletesOnceAndMoveDoesNot() {
    ForeignTensor foreign = int32(2);
    Tensor tensor = foreign.take();
    tensor.close();
    tensor.close();
    assertEquals(1, foreign.deletions());
    assertThrows(IllegalStateException.class, tensor::shape);
    assertThrows(IllegalStateException.class, tensor::toDeviceArray);
    Tensor detached = foreign.take();
    assertEquals(foreign.address(), detached.detach());
    assertThrows(IllegalStateException.class, detached::detach);
    Memory out = new Memory(8);
    Tensor moved = foreign.take();
    moved.moveTo(Pointer.nativeValue(out));
    assertEquals(foreign.address(), out.getLong(0));
    assertTrue(moved.isReleased() && detached.isReleased());
    assertEquals(1, foreign.deletions());
    assertFails(EINVAL, () -> Tensor.wrap(0), "wrap: tensor is NULL: expected an address");
    foreign.withoutDeleter().take().close();
    assertEquals(1, foreign.deletions());
  }

  private static void forget(ForeignTensor foreign, boolean isImported) {
    Tensor tensor = foreign.take();
    if (isImported) {
      tensor.toDeviceArray();
    }
  }

  @Test
  void unreachableTensorIsDeletedOnce() {
    for (boolean isImported : new boolean[] {false, true}) {
      ForeignTensor foreign = int32(2, 3);
      long leaks = Owner.leaks();
      forget(foreign, isImported);
      // Either the tensor leaks, or both the schema and the array.
      while (foreign.deletions() == 0 || Owner.leaks() < leaks + (isImported ? 2 : 1)) {
        System.gc();
      }
      assertEquals(1, foreign.deletions());
    }
  }

  @Test
  void builtTensorKeepsMemory() {
    List<String> closed = new ArrayList<>();
    long[] shape = {2, 0, 3};
    TensorBuilder builder = new TensorBuilder(INT32, shape).data(values).flags(1);
    shape[0] = 9; // shape was copied
    try (Tensor tensor = builder.build(() -> closed.add("memory"))) {
      assertArrayEquals(new long[] {2, 0, 3}, tensor.shape());
      assertArrayEquals(new long[] {3, 3, 1}, tensor.strides());
      assertEquals(1, tensor.flags());
      assertEquals(List.of(), closed);
    }
    assertEquals(List.of("memory"), closed);
    assertFails(
        EINVAL,
        () -> new TensorBuilder(INT32, 2).flags(8).build(null),
        "TensorBuilder: unknown flag: expected those of version 1.3, got 8");
    assertFails(
        EINVAL,
        () -> new TensorBuilder(INT32, 1L << 32, 1L << 31).build(null),
        "DLTensor.shape: out of range: expected fewer than 2^63 elements");
    Tensor again = builder.strides(-1, 5, 7).byteOffset(4).on(DeviceType.CUDA, 2).build(null);
    assertArrayEquals(new long[] {-1, 5, 7}, again.strides());
    assertEquals(4, again.byteOffset());
    assertEquals(2, again.deviceId());
    Tensor.wrap(again.detach()).close(); // as a consumer does
    assertFails(EINVAL, () -> new TensorBuilder(INT32, -1).build(null), "negative size", "got -1");
    assertFails(
        EINVAL, () -> new TensorBuilder(INT32, new long[65]).build(null), "expected 0 to 64 sizes");
    assertFails(
        EINVAL, () -> new TensorBuilder(INT32, 1).strides().build(null), "1 dimensions, got 0");
  }

  private static ForgottenBuffer ofForgottenBuffer() {
    ByteBuffer buffer = ByteBuffer.allocateDirect(8).order(ByteOrder.nativeOrder());
    Tensor tensor = new TensorBuilder(INT32, 2).data(buffer).build(null);
    return new ForgottenBuffer(tensor, new WeakReference<>(buffer));
  }

  private static final class ForgottenBuffer {
    final Tensor tensor;
    final WeakReference<ByteBuffer> buffer;

    ForgottenBuffer(Tensor tensor, WeakReference<ByteBuffer> buffer) {
      this.tensor = tensor;
      this.buffer = buffer;
    }
  }

  @Test
  void readOnlyBufferMakesReadOnlyTensor() {
    ByteBuffer buffer = ByteBuffer.allocateDirect(8).order(ByteOrder.nativeOrder());
    ByteBuffer readOnly = buffer.asReadOnlyBuffer().order(ByteOrder.nativeOrder());
    TensorBuilder builder = new TensorBuilder(INT32, 2).data(readOnly);
    try (Tensor first = builder.build(null);
        Tensor second = builder.data(buffer).build(null)) {
      assertTrue(first.isReadOnly());
      assertFalse(second.isReadOnly());
    }
  }

  @Test
  void builtTensorKeepsBuffer() {
    ForgottenBuffer made = ofForgottenBuffer();
    try (Tensor tensor = made.tensor) {
      System.gc();
      assertNotNull(made.buffer.get());
      assertNotEquals(0, tensor.dataAddress());
    }
    TensorBuilder builder = new TensorBuilder(INT32, 2);
    ByteBuffer wrongOrder = ByteBuffer.allocateDirect(8);
    assertThrows(IllegalArgumentException.class, () -> builder.data(ByteBuffer.allocate(8)));
    assertThrows(IllegalArgumentException.class, () -> builder.data(wrongOrder.order(OTHER_ORDER)));
  }

  /** Each import keeps the tensor of the previous export alive. */
  @Test
  void longConversionChainIsReleased() {
    List<String> closed = new ArrayList<>();
    Tensor tensor = new TensorBuilder(INT32, 2).data(values).build(() -> closed.add("memory"));
    for (int i = 0; i < 5000; i++) {
      ImportedTensor imported = tensor.toDeviceArray();
      tensor = imported.array().toDlpack(imported.schema());
      imported.close();
    }
    assertEquals(List.of(), closed);
    tensor.close();
    assertEquals(List.of("memory"), closed);
  }

  // --- Imports

  @Test
  void oneDimensionImportsAsArray() {
    ForeignTensor foreign = int32(3);
    try (ImportedTensor imported = foreign.take().toDeviceArray()) {
      assertEquals("i", imported.schema().format());
      assertEquals("", imported.schema().name());
      assertEquals(3, imported.array().length());
      assertEquals(-1, imported.array().deviceId());
      assertArrayEquals(new int[] {0, 1, 2}, valuesOf(imported));
      assertFalse(imported.isReadOnly() || imported.isCopied());
    }
    assertEquals(1, foreign.deletions());
    try (ImportedTensor scalar = int32().take().toDeviceArray()) {
      assertEquals(1, scalar.array().length());
    }
    try (ImportedTensor legacy = ForeignTensor.legacy(INT32, values, 1).take().toDeviceArray()) {
      assertTrue(legacy.isReadOnly());
    }
  }

  @Test
  void dimensionsImportAsTensorOrLists() {
    try (ImportedTensor imported = int32(2, 3, 4).take().toDeviceArray()) {
      assertEquals("+w:12", imported.schema().format());
      assertEquals(
          "arrow.fixed_shape_tensor{\"shape\":[3,4]}", extensionOf(imported.schema().view()));
      assertEquals("item", imported.schema().child(0).name());
      assertEquals(24, imported.array().child(0).length());
    }
    try (ImportedTensor lists = int32(2, 3, 4).take().toDeviceArray(PLAIN.fixedSizeLists())) {
      assertEquals("+w:3", lists.schema().format());
      assertEquals("", extensionOf(lists.schema().view()));
      assertEquals("+w:4", lists.schema().child(0).format());
      assertEquals(6, lists.array().child(0).length());
    }
    ForeignTensor permuted = int32(1, 2, 4, 3).strides(24, 3, 6, 1);
    try (ImportedTensor imported = permuted.take().toDeviceArray()) {
      assertEquals(
          "arrow.fixed_shape_tensor{\"shape\":[4,2,3],\"permutation\":[1,0,2]}",
          extensionOf(imported.schema().view()));
    }
    assertRefused(ENOTSUP, int32(1, 2, 2).strides(4, 1, 2), PLAIN.fixedSizeLists(), "copy");
  }

  /** Each type of spec/tensor-types.yaml survives a round trip unchanged. */
  @Test
  void nonArrowTypesRoundTrip() {
    Object[][] rows = {
      {DataTypeCode.BOOL, 8, 1, 0, "c", "arrow.bool8"},
      {DataTypeCode.BFLOAT, 16, 1, 0, "S", "bfloat16"},
      {DataTypeCode.COMPLEX, 64, 1, 0, "+w:2 f", "complex64"},
      {DataTypeCode.FLOAT8_E4M3FN, 8, 1, 0, "C", "float8_e4m3fn"},
      {DataTypeCode.FLOAT6_E2M3FN, 6, 1, 4, "C", "float6_e2m3fn"},
      {DataTypeCode.FLOAT6_E2M3FN, 6, 4, 0, "w:3", "float6_e2m3fn_x4"},
      {DataTypeCode.FLOAT4_E2M1FN, 4, 2, 0, "C", "float4_e2m1fn_x2"},
    };
    for (Object[] row : rows) {
      DataType type = DataType.of((DataTypeCode) row[0], (int) row[1], (int) row[2]);
      ForeignTensor foreign = ForeignTensor.of(type, values, 2, 3).flags((int) row[3]);
      try (ImportedTensor imported = foreign.take().toDeviceArray()) {
        SchemaView value = imported.schema().child(0);
        String format = value.format();
        format += value.childCount() > 0 ? " " + value.child(0).format() : "";
        assertEquals(row[4], format);
        String name = (String) row[5];
        assertEquals(
            name.startsWith("arrow.")
                ? name
                : "arrow.opaque{\"type_name\":\"" + name + "\",\"vendor_name\":\"DLPack\"}",
            extensionOf(value));
        try (Tensor again = imported.array().toDlpack(imported.schema())) {
          assertEquals(type, again.dtype());
          assertArrayEquals(new long[] {2, 3}, again.shape());
          assertEquals((int) row[3] | 1, again.flags());
        }
      }
      assertEquals(1, foreign.deletions());
    }
    DataType complex = DataType.of(DataTypeCode.COMPLEX, 64);
    ForeignTensor parts = ForeignTensor.of(complex, values, 2);
    try (ImportedTensor imported = parts.take().toDeviceArray(PLAIN.asStorage())) {
      assertEquals("+w:2", imported.schema().format());
      assertEquals("", extensionOf(imported.schema().child(0)));
    }
    try (ImportedTensor lanes =
        ForeignTensor.of(DataType.of(DataTypeCode.INT, 32, 4), values, 3).take().toDeviceArray()) {
      assertEquals(12, lanes.array().child(0).length());
    }
  }

  @Test
  void importErrorShowsUnknownTypeCode() {
    DataType unknown = DataType.of(DataTypeCode.of(99), 8);
    assertRefused(
        ENOTSUP,
        ForeignTensor.of(unknown, values, 2),
        PLAIN,
        "DLTensor.dtype: no Arrow type for unknown(99) of 8 bits: expected a type that Arrow can"
            + " store");
    for (int lanes : new int[] {0, 3}) {
      DataType int4 = DataType.of(DataTypeCode.INT, lanes == 0 ? 32 : 4, lanes);
      assertRefused(ENOTSUP, ForeignTensor.of(int4, values, 2), PLAIN, "expected");
    }
  }

  @Test
  void ruleDlpackTypePackedUnlessFlagged() {
    for (int flags : new int[] {0, 3, 4}) {
      ForeignTensor narrow = ForeignTensor.of(DataType.of(DataTypeCode.UINT, 1), values, 2);
      assertRefused(
          ENOTSUP, narrow.flags(flags), PLAIN.asStorage(), flags == 4 ? "padded" : "packed");
    }
    try (ImportedTensor whole = int32(2).flags(4).take().toDeviceArray()) {
      assertArrayEquals(new int[] {0, 1}, valuesOf(whole)); // wide values have no padding
    }
  }

  @Test
  void importKeepsUnknownDevice() {
    ForeignTensor foreign = int32(2, 3).on(DeviceType.of(9999), 4).byteOffset(8);
    try (ImportedTensor imported = foreign.take().toDeviceArray()) {
      assertEquals(DeviceType.of(9999), imported.array().deviceType());
      assertEquals(4, imported.array().deviceId());
      assertEquals(2, leaf(imported.array()).offset()); // a handle: byte_offset becomes offset
      assertEquals(values, leaf(imported.array()).buffers()[1]);
      try (Tensor again = imported.array().toDlpack(imported.schema())) {
        assertEquals(9999, again.deviceType().value());
        assertEquals(values, again.dataAddress());
        assertEquals(8, again.byteOffset());
      }
    }
    assertRefused(
        ENOTSUP,
        int32(2).on(DeviceType.OPENCL, 0).byteOffset(6),
        PLAIN,
        "byte_offset: not aligned");
  }

  @Test
  void ruleDlpackImportSameDevice() {
    for (DeviceType device : DeviceType.known()) {
      try (ImportedTensor imported = int32(2).on(device, 1).take().toDeviceArray()) {
        assertEquals(device, imported.array().deviceType());
      }
    }
  }

  @Test
  void ruleDlpackImportZeroCopy() {
    try (ImportedTensor imported = int32(2, 3).take().toDeviceArray(COPIES)) {
      assertEquals(values, leaf(imported.array()).buffers()[1]);
      assertFalse(imported.isCopied());
    }
  }

  @Test
  void ruleDlpackImportCopyFalse() {
    for (long stride : new long[] {2, -1, 0, Long.MIN_VALUE}) {
      assertRefused(ENOTSUP, int32(3).strides(stride), PLAIN, "hint: copy the tensor");
    }
    ForeignTensor unaligned = ForeignTensor.of(INT32, values + 1, 3);
    assertRefused(
        ENOTSUP, unaligned, PLAIN, "DLTensor.data: not aligned: expected a multiple of 4");
    assertRefused(ENOTSUP, int32(3).strides(2).on(DeviceType.CUDA, 0), COPIES, "contiguous");
  }

  @Test
  void ruleDlpackImportCopyNone() {
    ForeignTensor backwards = ForeignTensor.of(INT32, values + 16, 3).strides(-2).flags(1);
    try (ImportedTensor copy = backwards.on(DeviceType.CUDA_HOST, 3).take().toDeviceArray(COPIES)) {
      assertEquals(1, backwards.deletions()); // immediately
      assertTrue(copy.isCopied() && !copy.isReadOnly());
      assertEquals(DeviceType.CPU, copy.array().deviceType());
      assertEquals(-1, copy.array().deviceId());
      assertArrayEquals(new int[] {4, 2, 0}, valuesOf(copy));
    }
    ForeignTensor columns = int32(2, 3).strides(1, 2);
    try (ImportedTensor copy = columns.take().toDeviceArray(COPIES.fixedSizeLists())) {
      assertArrayEquals(new int[] {0, 2, 4, 1, 3, 5}, valuesOf(copy));
      assertEquals("+w:3", copy.schema().format());
    }
    ForeignTensor rows = int32(2, 2, 2).strides(8, 2, 1); // groups of 4 adjacent values
    try (ImportedTensor copy = rows.take().toDeviceArray(COPIES)) {
      assertArrayEquals(new int[] {0, 1, 2, 3, 8, 9, 10, 11}, valuesOf(copy));
    }
    ForeignTensor unaligned = ForeignTensor.of(INT32, values + 1, 3);
    try (ImportedTensor copy = unaligned.take().toDeviceArray(COPIES)) {
      assertEquals(memory.getInt(1), valuesOf(copy)[0]);
      assertNotEquals(values + 1, leaf(copy.array()).buffers()[1]);
    }
    assertRefused(EINVAL, int32(3).strides(Long.MAX_VALUE), COPIES, "address space");
  }

  @Test
  void importRejectsMalformedTensor() {
    assertRefused(EINVAL, int32(2).ndim(-1), COPIES, "DLTensor.ndim: out of range", "got -1");
    assertRefused(EINVAL, int32(2).shape(null), COPIES, "DLTensor.shape: NULL");
    assertRefused(EINVAL, int32(2, -1), COPIES, "DLTensor.shape: negative size", "got -1");
    assertRefused(EINVAL, int32(1L << 32, 1L << 32), COPIES, "DLTensor.shape: size out of range");
    assertRefused(EINVAL, int32(1).data(0), COPIES, "DLTensor.data: NULL");
    assertRefused(EINVAL, int32(1).byteOffset(-4), COPIES, "DLTensor.byte_offset");
    DataType lanes = DataType.of(DataTypeCode.INT, 32, 4);
    ForeignTensor wild = ForeignTensor.of(lanes, values, 3).strides(Long.MIN_VALUE);
    assertRefused(EINVAL, wild, COPIES, "DLTensor.strides: out of range");
    DataType int8 = DataType.of(DataTypeCode.INT, 8);
    ForeignTensor wide = ForeignTensor.of(int8, values, 1, 65536, 65536);
    assertRefused(ENOTSUP, wide, PLAIN, "too large for a fixed-size list");
    assertRefused(ENOTSUP, int32(2).version(2, 0), PLAIN, "expected major version 1, got 2.0");
    assertRefused(ENOTSUP, int32(2).flags(8), PLAIN, "unknown bit", "got 8");
    int32(2).flags(8).version(1, 99).take().toDeviceArray().close();
    try (Tensor other = int32(2).version(2, 0).take()) {
      assertFails(ENOTSUP, other::shape, "expected major version 1");
    }
  }

  @Test
  void takenChildrenKeepMemory() {
    ForeignTensor foreign = int32(2, 3);
    ImportedTensor imported = foreign.take().toDeviceArray();
    Schema item = imported.schema().takeChild(0);
    DeviceArray child = imported.array().takeChild(0);
    imported.close();
    assertEquals("i", item.format());
    assertEquals(0, foreign.deletions());
    try (Array values = child.toHost()) {
      assertEquals(5, values.hostBuffer(1, 20, 4).getInt());
    }
    assertEquals(1, foreign.deletions());
    item.close();
  }

  /** Returns the elements in row-major order. */
  private static int[] elements(Tensor tensor) {
    long[] shape = tensor.shape();
    long[] strides = tensor.strides();
    int count = (int) Arrays.stream(shape).reduce(1, (a, b) -> a * b);
    Pointer first = new Pointer(tensor.dataAddress() + tensor.byteOffset());
    return IntStream.range(0, count)
        .map(
            index -> {
              long at = 0;
              int rest = index;
              for (int i = shape.length - 1; i >= 0; i--) {
                at += rest % shape[i] * strides[i];
                rest /= (int) shape[i];
              }
              return first.getInt(4 * at);
            })
        .toArray();
  }

  @Test
  void importAndExportKeepElements() {
    Random random = new Random(11);
    for (int round = 0; round < 300; round++) {
      int ndim = 1 + random.nextInt(4);
      long[] shape = random.longs(ndim, 1, 3).toArray();
      List<Integer> axes = new ArrayList<>();
      for (int i = 0; i < ndim; i++) {
        axes.add(i);
      }
      Collections.shuffle(axes, random);
      long[] strides = new long[ndim];
      long step = 1;
      for (int axis : axes) {
        strides[axis] = random.nextInt(8) == 0 ? step + 1 : step;
        step = strides[axis] * shape[axis];
      }
      int flip = random.nextInt(ndim);
      long first = random.nextInt(4) * 4L;
      if (random.nextInt(4) == 0) {
        first += 4 * strides[flip] * (shape[flip] - 1);
        strides[flip] = -strides[flip];
      }
      TensorBuilder builder =
          new TensorBuilder(INT32, shape).strides(strides).data(values).byteOffset(first);
      int[] expected;
      try (Tensor tensor = builder.build(null)) {
        expected = elements(tensor);
      }
      DlpackImportOptions options = random.nextBoolean() ? COPIES : COPIES.fixedSizeLists();
      try (ImportedTensor imported = builder.build(null).toDeviceArray(options)) {
        DlpackExportOptions export = DlpackExportOptions.defaults();
        export = random.nextBoolean() ? export : export.aligned();
        try (Tensor again = imported.array().toDlpack(imported.schema(), export)) {
          assertArrayEquals(shape, again.shape());
          assertArrayEquals(expected, elements(again), "round " + round);
        }
      }
    }
  }
}
