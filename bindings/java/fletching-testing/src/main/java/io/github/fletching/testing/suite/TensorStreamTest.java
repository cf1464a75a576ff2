// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static io.github.fletching.abi.Errno.EINVAL;
import static io.github.fletching.abi.Errno.EIO;
import static io.github.fletching.abi.Errno.ENOTSUP;
import static io.github.fletching.testing.suite.Releases.assertFails;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.fletching.ArrayBuilder;
import io.github.fletching.ConsumerStream;
import io.github.fletching.DataType;
import io.github.fletching.DeviceArray;
import io.github.fletching.DeviceStream;
import io.github.fletching.DlpackExportOptions;
import io.github.fletching.DlpackImportOptions;
import io.github.fletching.FletchingException;
import io.github.fletching.Ordering;
import io.github.fletching.Schema;
import io.github.fletching.SchemaBuilder;
import io.github.fletching.SyncEvent;
import io.github.fletching.Tensor;
import io.github.fletching.TensorBuilder;
import io.github.fletching.Waiter;
import io.github.fletching.Waiters;
import io.github.fletching.abi.DataTypeCode;
import io.github.fletching.abi.DeviceType;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** The stream argument of __dlpack__, and the ordering of events. */
@ExtendWith(LeakCheck.class)
class TensorStreamTest {
  private static final long EVENT = 0x1230;
  private static final List<DeviceType> WITH_STREAMS =
      List.of(
          DeviceType.CUDA,
          DeviceType.CUDA_HOST,
          DeviceType.CUDA_MANAGED,
          DeviceType.ROCM,
          DeviceType.ROCM_HOST);

  private static void assertStream(DeviceType type, long handle, ConsumerStream read) {
    assertEquals(Ordering.STREAM, read.ordering());
    assertEquals(handle, read.stream().orElseThrow().handle());
    assertEquals(type, read.stream().orElseThrow().deviceType());
  }

  private static void assertRefused(DeviceType type, long... numbers) {
    for (long number : numbers) {
      assertFails(
          EINVAL,
          () -> ConsumerStream.of(type, number),
          "stream: invalid on " + type,
          "got " + number);
    }
  }

  @Test
  void ofAcceptsStreamHandle() {
    for (DeviceType type : WITH_STREAMS) {
      assertStream(type, 3, ConsumerStream.of(type, 3));
      assertStream(type, 0x7f00_1234_5678L, ConsumerStream.of(type, 0x7f00_1234_5678L));
    }
    assertEquals("stream 0x3 of cuda", ConsumerStream.of(DeviceType.CUDA, 3).toString());
    assertEquals("order HOST", ConsumerStream.none(DeviceType.CPU).toString());
  }

  @Test
  void ruleDlpackStreamRange() {
    WITH_STREAMS.forEach(type -> assertRefused(type, -2, Long.MIN_VALUE));
  }

  @Test
  void ruleDlpackStreamMinusOne() {
    for (DeviceType type : WITH_STREAMS) {
      assertEquals(Ordering.NONE, ConsumerStream.of(type, -1).ordering());
    }
  }

  @Test
  void ruleDlpackStreamNoneIsLegacy() {
    assertStream(DeviceType.CUDA, 1, ConsumerStream.none(DeviceType.CUDA));
    assertStream(DeviceType.ROCM, 0, ConsumerStream.none(DeviceType.ROCM));
    for (DeviceType type :
        List.of(DeviceType.CUDA_HOST, DeviceType.ROCM_HOST, DeviceType.CUDA_MANAGED)) {
      assertEquals(Ordering.HOST, ConsumerStream.none(type).ordering());
    }
  }

  @Test
  void ruleDlpackStreamCudaNotZero() {
    assertRefused(DeviceType.CUDA, 0);
    assertRefused(DeviceType.CUDA_HOST, 0);
    assertStream(DeviceType.CUDA, 2, ConsumerStream.of(DeviceType.CUDA, 2));
  }

  @Test
  void ruleDlpackStreamRocmNotOneOrTwo() {
    assertRefused(DeviceType.ROCM, 1, 2);
    assertStream(DeviceType.ROCM_HOST, 0, ConsumerStream.of(DeviceType.ROCM_HOST, 0));
  }

  @Test
  void ruleDlpackStreamNoneElsewhere() {
    for (DeviceType type :
        List.of(DeviceType.CPU, DeviceType.OPENCL, DeviceType.ONEAPI, DeviceType.of(9999))) {
      assertRefused(type, -1, 0, 1, 99);
      assertEquals(Ordering.HOST, ConsumerStream.none(type).ordering());
      assertTrue(ConsumerStream.none(type).stream().isEmpty());
    }
  }

  /** Counts waits; can make the last wait fail. */
  private static final class CountingWaiter implements Waiter {
    final List<Long> waits = new ArrayList<>();
    boolean isFailing;

    @Override
    public void synchronize(SyncEvent event) {
      waits.add(event.address());
      if (isFailing) {
        throw new FletchingException(EIO, "lost");
      }
    }

    @Override
    public void waitOn(SyncEvent event, DeviceStream stream) {
      waits.add(-1L);
    }

    @Override
    public boolean isReady(SyncEvent event) {
      return false;
    }
  }

  private static DeviceArray array(DeviceType type) {
    return new ArrayBuilder(2).buffers(0, 0x1000).buildOn(type, 0, EVENT, null);
  }

  /** An event is either waited on or reported as an error, never skipped. */
  @Test
  void exportWaitsForEventWithoutStream() {
    for (DeviceType type : List.of(DeviceType.EXT_DEV, DeviceType.of(9999))) {
      CountingWaiter waiter = new CountingWaiter();
      DlpackExportOptions options =
          DlpackExportOptions.defaults().stream(ConsumerStream.none(type));
      try (Schema schema = new SchemaBuilder("i").build();
          DeviceArray array = array(type)) {
        assertFails(ENOTSUP, () -> array.toDlpack(schema, options), "toDlpack: no way to wait");
        Waiters.register(type, waiter);
        waiter.isFailing = true;
        assertFails(EIO, () -> array.toDlpack(schema, options), "lost");
        assertFalse(array.isReleased());
        waiter.isFailing = false;
        array.toDlpack(schema, options).close();
      } finally {
        Waiters.unregister(type);
      }
      assertEquals(List.of(EVENT, EVENT), waiter.waits);
    }
  }

  @Test
  void exportRejectsStreamOfOtherRuntime() {
    ConsumerStream cuda = ConsumerStream.of(DeviceType.CUDA, 0x1000);
    try (Schema schema = new SchemaBuilder("i").build();
        DeviceArray array = array(DeviceType.ROCM)) {
      assertFails(
          EINVAL,
          () -> array.toDlpack(schema, DlpackExportOptions.defaults().stream(cuda)),
          "toDlpack: stream of another runtime: expected one of rocm, got one of cuda");
    }
    DataType int8 = DataType.of(DataTypeCode.INT, 8);
    List<String> closed = new ArrayList<>();
    TensorBuilder tensor = new TensorBuilder(int8, 2).data(0x1000).on(DeviceType.ROCM_HOST, 0);
    for (long stride : new long[] {1, 2}) { // shared and copied
      Tensor foreign = tensor.strides(stride).build(() -> closed.add("memory"));
      assertFails(
          EINVAL,
          () -> foreign.toDeviceArray(DlpackImportOptions.defaults().copyStrided().stream(cuda)),
          "toDeviceArray: stream of another runtime");
    }
    assertEquals(List.of("memory", "memory"), closed);
    Tensor onCpu = new TensorBuilder(int8, 1).data(0x1000).build(null);
    assertFails(
        ENOTSUP,
        () -> onCpu.toDeviceArray(DlpackImportOptions.defaults().stream(cuda)),
        "toDeviceArray: device type cpu: no runtime that records events");
  }
}
