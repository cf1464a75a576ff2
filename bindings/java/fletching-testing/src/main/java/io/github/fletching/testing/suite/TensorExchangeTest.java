// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static io.github.fletching.abi.Errno.EINVAL;
import static io.github.fletching.abi.Errno.EIO;
import static io.github.fletching.abi.Errno.ENOMEM;
import static io.github.fletching.abi.Errno.ENOSYS;
import static io.github.fletching.abi.Errno.ENOTSUP;
import static io.github.fletching.testing.suite.Releases.assertFails;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.jna.Callback;
import com.sun.jna.CallbackReference;
import com.sun.jna.Function;
import com.sun.jna.Memory;
import com.sun.jna.Pointer;
import io.github.fletching.ConsumerStream;
import io.github.fletching.DataType;
import io.github.fletching.DlpackExchange;
import io.github.fletching.Ordering;
import io.github.fletching.Tensor;
import io.github.fletching.TensorBuilder;
import io.github.fletching.abi.DataTypeCode;
import io.github.fletching.abi.DeviceType;
import io.github.fletching.testing.NativeLibraries;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** The function table DLPackExchangeAPI: this library's and foreign tables. */
@ExtendWith(LeakCheck.class)
class TensorExchangeTest {
  private static final DataType INT32 = DataType.of(DataTypeCode.INT, 32);
  private static final long ALLOCATOR = 16;
  private static final long WORK_STREAM = 48;
  private static final long SIZE = 56;

  private final List<Object> kept = new ArrayList<>(); // C refers to them by address only

  /** Callback managed_tensor_allocator. */
  interface Allocator extends Callback {
    /** Returns 0 or -1. */
    int call(Pointer prototype, Pointer out, Pointer context, Pointer setError);
  }

  /** Callback set_error. */
  interface SetError extends Callback {
    /** Called once per failure. */
    void call(Pointer context, String kind, String text);
  }

  /** Callback current_work_stream. */
  interface WorkStream extends Callback {
    /** Returns 0 or -1. */
    int call(int deviceType, int deviceId, Pointer out);
  }

  private Memory table(int major, Memory previous) {
    Memory table = new Memory(SIZE);
    table.clear();
    table.setInt(0, major);
    table.setPointer(8, previous);
    kept.add(table);
    return table;
  }

  private DlpackExchange with(long field, Callback function) {
    Memory table = table(1, null);
    kept.add(function);
    table.setPointer(field, CallbackReference.getFunctionPointer(function));
    return DlpackExchange.find(Pointer.nativeValue(table)).orElseThrow();
  }

  private static void callSetError(Pointer function, Pointer context, String kind, String text) {
    Function.getFunction(function).invokeVoid(new Object[] {context, kind, text});
  }

  @Test
  void ruleDlpackExchangeVersionChecked() {
    Memory oldest = table(1, null);
    Memory newest = table(3, table(2, oldest));
    assertEquals(
        Pointer.nativeValue(oldest),
        DlpackExchange.find(Pointer.nativeValue(newest)).orElseThrow().address());
    assertTrue(DlpackExchange.find(Pointer.nativeValue(table(2, null))).isEmpty());
    assertTrue(DlpackExchange.find(0).isEmpty());
  }

  @Test
  void foreignAllocatorMakesTensor() {
    ForeignTensor foreign = ForeignTensor.of(INT32, 0x1000, 2, 3);
    DlpackExchange exchange =
        with(
            ALLOCATOR,
            (Allocator)
                (prototype, out, context, setError) -> {
                  assertEquals(2, prototype.getInt(16)); // ndim
                  assertEquals(3, prototype.getPointer(24).getLong(8));
                  assertEquals(DeviceType.CUDA.value(), prototype.getInt(8));
                  out.setLong(0, foreign.address());
                  return 0;
                });
    TensorBuilder prototype = new TensorBuilder(INT32, 2, 3).on(DeviceType.CUDA, 1);
    try (Tensor tensor = exchange.allocate(prototype)) {
      assertEquals(foreign.address(), tensor.address());
    }
    assertEquals(1, foreign.deletions());
    assertFails(EINVAL, () -> exchange.allocate(new TensorBuilder(INT32, -1)), "negative size");
  }

  @Test
  void allocatedTensorIsValidated() {
    String library = NativeLibraries.folder().resolve("libfletching.so").toString();
    String output =
        Child.run(
            this,
            "deleteAllocatedTensorTwice",
            Map.of("FLETCHING_VALIDATE", "log", "FLETCHING_LIBRARY", library));
    if (!"here".equals(System.getenv("FLETCHING_TEST_CHILDREN"))) { // else without the variable
      assertTrue(output.contains("fletching: import: tensor: the deleter was called"), output);
    }
  }

  /** Called in a child. */
  void deleteAllocatedTensorTwice() {
    ForeignTensor foreign = ForeignTensor.of(INT32, 0x1000, 1);
    Allocator allocator =
        (prototype, out, context, setError) -> {
          out.setLong(0, foreign.address());
          return 0;
        };
    long address = with(ALLOCATOR, allocator).allocate(new TensorBuilder(INT32, 1)).detach();
    Tensor.wrap(address).close();
    Tensor.wrap(address).close();
  }

  @Test
  void foreignErrorsAreReported() {
    for (String kind : List.of("MemoryError", "ValueError")) {
      DlpackExchange exchange =
          with(
              ALLOCATOR,
              (Allocator)
                  (prototype, out, context, setError) -> {
                    callSetError(setError, context, kind, "no\nroom\u0001");
                    callSetError(setError, context, "RuntimeError", "later");
                    return -1;
                  });
      assertFails(
          kind.equals("MemoryError") ? ENOMEM : EIO,
          () -> exchange.allocate(new TensorBuilder(INT32, 1)),
          "managed_tensor_allocator: " + kind + ": no room\\x01");
    }
    ForeignTensor foreign = ForeignTensor.of(INT32, 0x1000, 1);
    DlpackExchange confused =
        with(
            ALLOCATOR,
            (Allocator)
                (prototype, out, context, setError) -> {
                  out.setLong(0, foreign.address());
                  callSetError(setError, context, "ValueError", "an error and a tensor");
                  return 0;
                });
    assertFails(EIO, () -> confused.allocate(new TensorBuilder(INT32, 1)), "an error and a tensor");
    foreign.assertDeletedOnce();
    DlpackExchange silent = with(ALLOCATOR, (Allocator) (a, b, c, d) -> 0);
    assertFails(
        EIO,
        () -> silent.allocate(new TensorBuilder(INT32, 1)),
        "expected a tensor, got the result 0");
    assertFails(
        ENOSYS,
        () -> silent.currentWorkStream(DeviceType.CUDA, 0),
        "exchange: the table lacks current_work_stream");
    DlpackExchange failing = with(WORK_STREAM, (WorkStream) (type, id, out) -> -1);
    assertFails(EIO, () -> failing.currentWorkStream(DeviceType.CUDA, 0), "got the result -1");
    assertFails(
        ENOTSUP,
        () -> failing.currentWorkStream(DeviceType.OPENCL, 0),
        "currentWorkStream: current_work_stream: not supported on opencl: expected CUDA or ROCm");
    assertFails(
        ENOSYS, () -> failing.allocate(new TensorBuilder(INT32)), "managed_tensor_allocator");
  }

  @Test
  void ruleDlpackExchangeCpuStreamNull() {
    DlpackExchange exchange =
        with(
            WORK_STREAM,
            (WorkStream)
                (type, id, out) -> {
                  out.setLong(0, 0x5678);
                  return type == DeviceType.CUDA.value() && id == 1 ? 0 : -1;
                });
    ConsumerStream stream = exchange.currentWorkStream(DeviceType.CUDA, 1);
    assertEquals(0x5678, stream.stream().orElseThrow().handle());
    assertEquals(1, stream.stream().orElseThrow().deviceId());
    // The CPU has no streams: the function is not called.
    assertEquals(Ordering.NONE, exchange.currentWorkStream(DeviceType.CPU, 0).ordering());
  }

  // --- This library's table

  @Test
  void allocatorAlignsMemory() {
    for (int round = 0; round < 20; round++) {
      try (Tensor tensor = DlpackExchange.ofJava().allocate(new TensorBuilder(INT32, 3, 2))) {
        assertEquals(0, tensor.dataAddress() % 256);
        assertNotEquals(0, tensor.dataAddress());
        assertArrayEquals(new long[] {3, 2}, tensor.shape());
        assertArrayEquals(new long[] {2, 1}, tensor.strides());
        assertEquals(0, tensor.flags());
        new Pointer(tensor.dataAddress()).setMemory(0, 24, (byte) 1);
      }
    }
    try (Tensor empty = DlpackExchange.ofJava().allocate(new TensorBuilder(INT32, 0, 2))) {
      assertEquals(0, empty.dataAddress());
    }
    DataType nothing = DataType.of(DataTypeCode.INT, 0);
    DlpackExchange.ofJava().allocate(new TensorBuilder(nothing)).close();
    DataType packed = DataType.of(DataTypeCode.FLOAT4_E2M1FN, 4);
    DlpackExchange.ofJava().allocate(new TensorBuilder(packed, 3)).close();
    assertEquals(
        Ordering.NONE, DlpackExchange.ofJava().currentWorkStream(DeviceType.CPU, 0).ordering());
  }

  @Test
  void ruleDlpackExchangeFunctionsSet() {
    Pointer table = new Pointer(DlpackExchange.ofJava().address());
    for (long field : new long[] {16, 24, 32, 48}) {
      assertNotEquals(0, table.getLong(field));
    }
    Memory out = new Memory(8);
    Function work = Function.getFunction(table.getPointer(WORK_STREAM));
    assertEquals(0, work.invokeInt(new Object[] {DeviceType.CPU.value(), 0, out}));
    assertEquals(0, out.getLong(0));
    assertEquals(-1, work.invokeInt(new Object[] {DeviceType.CUDA.value(), 0, out}));
    Function fromPython = Function.getFunction(table.getPointer(24));
    assertEquals(-1, fromPython.invokeInt(new Object[] {null, out}));
  }

  @Test
  void ruleDlpackExchangePrevApiNull() {
    Pointer table = new Pointer(DlpackExchange.ofJava().address());
    assertEquals(1, table.getInt(0));
    assertEquals(3, table.getInt(4));
    assertEquals(0, table.getLong(8));
  }

  @Test
  void ruleDlpackExchangeLivesForever() {
    assertSame(DlpackExchange.ofJava(), DlpackExchange.ofJava());
  }

  @Test
  void ruleDlpackExchangeSetErrorOnFailure() {
    Pointer table = new Pointer(DlpackExchange.ofJava().address());
    Function allocate = Function.getFunction(table.getPointer(ALLOCATOR));
    List<String> errors = new ArrayList<>();
    SetError setError =
        (context, kind, text) -> errors.add(Pointer.nativeValue(context) + kind + ": " + text);
    Memory prototype = new Memory(48);
    Memory shape = new Memory(16);
    Memory out = new Memory(8);
    prototype.clear();
    prototype.setInt(8, DeviceType.CUDA.value());
    prototype.setInt(16, 2);
    prototype.setInt(20, 0x1_20_00); // kDLInt, 32 bits, 1 lane
    prototype.setPointer(24, shape);
    shape.setLong(0, 1L << 40);
    shape.setLong(8, 1L << 18);
    Object[] arguments = {prototype, out, new Pointer(7), setError};
    assertEquals(-1, allocate.invokeInt(arguments));
    prototype.setInt(8, DeviceType.CPU.value());
    for (int bits : new int[] {40, 20, 18}) {
      shape.setLong(8, 1L << bits);
      assertEquals(-1, allocate.invokeInt(arguments));
    }
    prototype.setInt(16, 65);
    assertEquals(-1, allocate.invokeInt(arguments));
    assertEquals(
        List.of(
            "7BufferError: DLTensor.device: not supported: expected the CPU, got cuda",
            "7BufferError: DLTensor.shape: out of range: expected fewer than 2^63 elements",
            "7BufferError: DLTensor.shape: size out of range: expected less than 2^64 bits",
            "7MemoryError: tensor: no memory",
            "7BufferError: DLTensor.shape: invalid: expected 0 to 64 sizes"),
        errors);
    assertEquals(-1, allocate.invokeInt(new Object[] {prototype, out, null, null}));
    assertEquals(0, out.getLong(0));
    prototype.setInt(16, 1);
    shape.setLong(0, 3);
    assertEquals(0, allocate.invokeInt(arguments));
    Tensor.wrap(out.getLong(0)).close();
    assertEquals(5, errors.size());
  }
}
