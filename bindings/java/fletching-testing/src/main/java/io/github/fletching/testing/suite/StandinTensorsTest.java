// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static io.github.fletching.abi.Errno.EBUSY;
import static io.github.fletching.abi.Errno.EIO;
import static io.github.fletching.abi.Errno.ENOTSUP;
import static io.github.fletching.testing.suite.Releases.assertFails;
import static io.github.fletching.testing.suite.StandinEventsTest.onBoth;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.jna.Memory;
import com.sun.jna.Pointer;
import io.github.fletching.ArrayBuilder;
import io.github.fletching.ConsumerStream;
import io.github.fletching.DataType;
import io.github.fletching.DeviceArray;
import io.github.fletching.DlpackExportOptions;
import io.github.fletching.DlpackImportOptions;
import io.github.fletching.ImportedTensor;
import io.github.fletching.Schema;
import io.github.fletching.SchemaBuilder;
import io.github.fletching.Tensor;
import io.github.fletching.TensorBuilder;
import io.github.fletching.abi.DataTypeCode;
import io.github.fletching.abi.DeviceType;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;

/** Tensors with CUDA and HIP streams, on the stand-ins. */
@Timeout(120)
@ExtendWith(LeakCheck.class)
class StandinTensorsTest {
  private static final DataType INT32 = DataType.of(DataTypeCode.INT, 32);

  private static DeviceType host(Gpu gpu) {
    return gpu.isCuda ? DeviceType.CUDA_HOST : DeviceType.ROCM_HOST;
  }

  @Test
  void ruleDlpackStreamProducerSynchronizes() {
    onBoth(
        (gpu, gated) -> {
          gated.shut();
          DeviceArray array = new ArrayBuilder(2).buffers(0, 0x1000).buildOn(gpu.type, 0, 0, null);
          array.exportWithEvent(gated.ofProducer());
          DlpackExportOptions options =
              DlpackExportOptions.defaults().stream(ConsumerStream.of(gpu.type, gated.consumer));
          try (Schema schema = new SchemaBuilder("i").build();
              Tensor tensor = array.toDlpack(schema, options)) {
            assertTrue(gated.isBlocked(gated.consumer));
            gated.open();
            gpu.synchronizeStream(gated.consumer);
            assertEquals(gpu.type, tensor.deviceType());
          }
        });
  }

  /** The host may read the bitmap only after the wait. */
  @Test
  void nullsAreCountedAfterWait() {
    onBoth(
        (gpu, gated) -> {
          Memory bits = new Memory(8);
          bits.setMemory(0, 8, (byte) 0xFF);
          ArrayBuilder two =
              new ArrayBuilder(2).nullCount(-1).buffers(Pointer.nativeValue(bits), 0x1000);
          gpu.recordEvent(gated.event, gated.producer);
          long event = Pointer.nativeValue(gated.event);
          ConsumerStream stream = ConsumerStream.of(host(gpu), gated.consumer);
          DlpackExportOptions plain = DlpackExportOptions.defaults();
          try (Schema schema = new SchemaBuilder("i").build();
              DeviceArray array = two.buildOn(host(gpu), 0, event, null)) {
            for (DlpackExportOptions options :
                List.of(plain.eventHandled(), plain.stream(stream))) {
              assertFails(ENOTSUP, () -> array.toDlpack(schema, options), "may have nulls");
            }
            array.toDlpack(schema, plain.stream(ConsumerStream.none(host(gpu)))).close();
          }
          gpu.synchronizeStream(gated.consumer);
        });
  }

  @Test
  void importRecordsEvent() {
    onBoth(
        (gpu, gated) -> {
          gated.shut();
          Tensor tensor = new TensorBuilder(INT32, 2).data(0x1000).on(gpu.type, 0).build(null);
          DlpackImportOptions options =
              DlpackImportOptions.defaults().stream(ConsumerStream.of(gpu.type, gated.producer));
          try (ImportedTensor imported = tensor.toDeviceArray(options)) {
            assertNotEquals(0, imported.array().syncEvent());
            assertFalse(imported.array().isReady());
            gated.open();
            imported.array().synchronize();
          }
        });
  }

  /** Device 0 of pinned memory names no GPU; only the second GPU is in use. */
  @Test
  void pinnedMemoryUsesCurrentDevice() {
    onBoth(
        gpu -> {
          Memory memory = new Memory(16);
          DlpackImportOptions options =
              DlpackImportOptions.defaults().copyStrided().stream(
                  ConsumerStream.of(host(gpu), gpu.isCuda ? 1 : 0));
          TensorBuilder pinned =
              new TensorBuilder(INT32, 2).data(Pointer.nativeValue(memory)).on(host(gpu), 0);
          gpu.openDevice(1);
          for (long stride : new long[] {1, 2}) { // shared and copied
            pinned.strides(stride).build(null).toDeviceArray(options).close();
          }
          gpu.closeDevice(1);
        });
  }

  /** Otherwise another device would be mistaken for the current one. */
  @Test
  void failedContextQueryThrows() {
    Gpu gpu = Gpu.cuda("standin");
    DlpackImportOptions options =
        DlpackImportOptions.defaults().stream(ConsumerStream.of(DeviceType.CUDA_HOST, 1));
    Tensor pinned =
        new TensorBuilder(INT32, 2).data(0x1000).on(DeviceType.CUDA_HOST, 0).build(null);
    gpu.setFault("cuCtxGetCurrent:1:" + gpu.error);
    assertFails(
        EIO,
        () -> pinned.toDeviceArray(options),
        "cuCtxGetCurrent failed with CUDA_ERROR_LAUNCH_FAILED (719): launch failed");
    gpu.resetFaults();
  }

  @Test
  void copyWaitsForStream() {
    onBoth(
        (gpu, gated) -> {
          Memory memory = new Memory(16);
          memory.clear();
          TensorBuilder every2nd =
              new TensorBuilder(INT32, 2)
                  .strides(2)
                  .data(Pointer.nativeValue(memory))
                  .on(host(gpu), 0);
          DlpackImportOptions options =
              DlpackImportOptions.defaults().copyStrided().stream(
                  ConsumerStream.of(gpu.type, gated.producer));
          gated.shut();
          Thread opening =
              new Thread(
                  () -> {
                    memory.setInt(8, 7); // the producer's work
                    gated.open();
                  });
          opening.start();
          try (ImportedTensor imported = every2nd.build(null).toDeviceArray(options)) {
            assertTrue(gpu.isIdle(gated.producer));
            assertTrue(imported.isCopied());
            assertEquals(0, imported.array().syncEvent());
            assertEquals(7, imported.array().hostBuffer(1, 4, 4).getInt());
          }
          gpu.beginCapture(gated.consumer);
          Tensor captured = every2nd.build(null);
          DlpackImportOptions capturing =
              options.stream(ConsumerStream.of(gpu.type, gated.consumer));
          assertFails(
              EBUSY,
              () -> captured.toDeviceArray(capturing),
              "toDeviceArray: ",
              "hint: copy before the capture begins");
          gpu.destroyGraph(gpu.endCapture(gated.consumer));
        });
  }
}
