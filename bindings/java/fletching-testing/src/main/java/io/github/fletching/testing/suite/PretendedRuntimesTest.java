// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static io.github.fletching.testing.suite.Releases.assertError;
import static io.github.fletching.testing.suite.Releases.awaited;
import static io.github.fletching.testing.suite.Releases.errorOf;
import static io.github.fletching.testing.suite.StandinEventsTest.onBoth;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.jna.Pointer;
import io.github.fletching.DeviceArray;
import io.github.fletching.DeviceStream;
import io.github.fletching.FletchingException;
import io.github.fletching.OnCapture;
import io.github.fletching.testing.Counting;
import io.github.fletching.testing.Pretending;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** CUDA and HIP on the stand-ins, of which some functions are missing or written in Java. */
@Timeout(120)
class PretendedRuntimesTest {
  private static final int EIO = 5;
  private static final int EINVAL = 22;
  private static final int ENOSYS = 38;
  private static final int ENOTSUP = 95;
  private static final String VERSION = "hipRuntimeGetVersion";

  // --- Missing functions

  @Test
  void anEventNeedsItsFunctions() {
    Copy.run(this, "withoutCreate");
    Copy.run(this, "withoutRecord");
    Copy.run(this, "withoutDestroy");
  }

  void withoutCreate() {
    exportWithout("cuEventCreate", "hipEventCreateWithFlags");
  }

  void withoutRecord() {
    exportWithout("cuEventRecord", "hipEventRecord");
  }

  void withoutDestroy() {
    exportWithout("cuEventDestroy_v2", "hipEventDestroy");
  }

  /** Nothing is made that could not be recorded or destroyed. */
  private static void exportWithout(String ofCuda, String ofHip) {
    Pretending.remove(ofCuda);
    Pretending.remove(ofHip);
    onBoth(
        (gpu, gated) -> {
          String text =
              gpu.isCuda
                  ? "CUDA driver API: libcuda.so.1 has no " + ofCuda
                  : "HIP runtime API: libamdhip64.so.7 has no " + ofHip;
          long made = gpu.calls("cuEventCreate") + gpu.calls("hipEventCreateWithFlags");
          DeviceArray array = new Releases().array(gpu.type);
          assertError(
              ENOSYS,
              text + "; hint: install a newer version",
              () -> array.exportWithEvent(gated.ofProducer()));
          Releases.releaseAfter(gated.ofProducer()); // waits instead
          assertEquals(made, gpu.calls("cuEventCreate") + gpu.calls("hipEventCreateWithFlags"));
          assertEquals(0, array.syncEvent());
          array.close();
          gpu.recordEvent(gated.event, gated.producer);
          try (DeviceArray incoming = awaited(gpu.type, gated.event)) { // the others need none
            incoming.waitOn(gated.ofConsumer());
            incoming.synchronize();
            assertTrue(incoming.isReady());
          }
        });
  }

  @Test
  void aDriverWithoutAnswersCapturesNothing() {
    Copy.run(this, "withoutAnswer");
  }

  void withoutAnswer() {
    Pretending.replace("cuStreamIsCapturing", (a, b, c, d, e) -> 0);
    Pretending.replace("hipStreamIsCapturing", (a, b, c, d, e) -> 0);
    onBoth(
        (gpu, gated) -> {
          gpu.openDevice(1); // what the cell has had before is not 0
          gpu.recordEvent(gated.event, gated.producer);
          try (DeviceArray incoming = awaited(gpu.type, gated.event)) {
            incoming.waitOn(gated.ofConsumer());
          }
          gpu.closeDevice(1);
        });
  }

  // --- External events

  private static void refuseExternal(Gpu gpu, String text) {
    Gpu.Gated gated = gpu.new Gated();
    DeviceArray incoming = awaited(gpu.type, gated.event);
    DeviceArray array = new Releases().array(gpu.type);
    DeviceStream external = gated.ofConsumer().onCapture(OnCapture.EXTERNAL);
    incoming.waitOn(external); // nothing is captured
    gpu.beginCapture(gated.consumer);
    assertError(ENOTSUP, text, () -> incoming.waitOn(external));
    assertError(ENOTSUP, text, () -> array.exportWithEvent(external));
    gpu.destroyGraph(gpu.endCapture(gated.consumer));
    assertEquals(0, array.syncEvent());
    array.close();
    incoming.close();
    gated.end();
  }

  @Test
  void rocmOf7HasExternalEvents() {
    Copy.run(this, "rocmOf7");
    Copy.run(this, "rocmWithoutTheFunction");
  }

  void rocmOf7() {
    AtomicInteger version = new AtomicInteger();
    AtomicInteger code = new AtomicInteger();
    Pretending.replace(
        VERSION,
        (out, b, c, d, e) -> {
          new Pointer(out).setInt(0, version.get());
          return code.get();
        });
    Gpu gpu = Gpu.hip("standin");
    for (int old : new int[] {60_443_483, 69_999_999}) {
      version.set(old);
      refuseExternal(gpu, noExternalEvents(old));
    }
    int live = Counting.live();
    for (int enough : new int[] {70_000_000, 70_151_831}) {
      version.set(enough);
      captureExternal(gpu);
    }
    code.set(719);
    Gpu.Gated gated = gpu.new Gated();
    try (DeviceArray array = new Releases().array(gpu.type)) {
      gpu.beginCapture(gated.consumer);
      String error = gpu.error + " (719): ";
      FletchingException got =
          errorOf(() -> array.exportWithEvent(gated.ofConsumer().onCapture(OnCapture.EXTERNAL)));
      assertTrue(
          got.getMessage().startsWith("HIP runtime API: " + VERSION + " failed with " + error),
          got.getMessage());
      assertEquals(EIO, got.errno());
      gpu.destroyGraph(gpu.endCapture(gated.consumer));
    }
    gated.end();
    assertEquals(live, Counting.live());
  }

  void rocmWithoutTheFunction() {
    Pretending.remove("hipEventRecordWithFlags");
    Pretending.replace(
        VERSION,
        (out, b, c, d, e) -> {
          new Pointer(out).setInt(0, 80_000_000);
          return 0;
        });
    refuseExternal(Gpu.hip("standin"), noExternalEvents(80_000_000));
  }

  private static String noExternalEvents(int version) {
    return "HIP runtime API: no external events of graphs: expected ROCm 7.0 or later, got version "
        + version;
  }

  private static void captureExternal(Gpu gpu) {
    Gpu.Gated gated = gpu.new Gated();
    DeviceArray incoming = awaited(gpu.type, gated.event);
    DeviceArray array = new Releases().array(gpu.type);
    DeviceStream external = gated.ofConsumer().onCapture(OnCapture.EXTERNAL);
    gpu.beginCapture(gated.consumer);
    incoming.waitOn(external);
    long records = gpu.calls("hipEventRecordWithFlags");
    array.exportWithEvent(external);
    assertEquals(records + 1, gpu.calls("hipEventRecordWithFlags"));
    gpu.destroyGraph(gpu.endCapture(gated.consumer));
    array.close();
    incoming.close();
    gated.end();
  }

  // --- Streams

  @Test
  void theDefaultStreamsHaveNoDeviceOfTheirOwn() {
    Copy.run(this, "defaultStreams");
  }

  void defaultStreams() {
    List<String> waits = new ArrayList<>();
    AtomicInteger asked = new AtomicInteger();
    AtomicLong device = new AtomicLong();
    for (String name : List.of("cuStreamWaitEvent", "hipStreamWaitEvent")) {
      Pretending.replace(
          name,
          (stream, event, flags, d, e) -> {
            waits.add(Long.toHexString(stream) + " " + (int) flags);
            return 0;
          });
    }
    for (String name : List.of("cuStreamIsCapturing", "hipStreamIsCapturing")) {
      Pretending.replace(name, (stream, b, c, d, e) -> 0);
    }
    Pretending.replace(
        "cuStreamGetCtx",
        (stream, out, c, d, e) -> {
          asked.incrementAndGet();
          new Pointer(out).setLong(0, Gpu.cuda("standin").current());
          return 0;
        });
    Pretending.replace(
        "hipGetStreamDeviceId",
        (stream, b, c, d, e) -> {
          asked.incrementAndGet();
          return device.get();
        });
    onBoth(
        (gpu, gated) -> {
          try (DeviceArray incoming = awaited(gpu.type, gated.event)) {
            waits.clear();
            asked.set(0);
            for (long handle = 0; handle < 3; handle++) {
              incoming.waitOn(gpu.stream(handle));
            }
            assertEquals(0, asked.get());
            incoming.waitOn(gpu.stream(3));
            incoming.waitOn(gpu.stream(1L << 63)); // an address, however high
            assertEquals(2, asked.get());
            String first = gpu.isCuda ? "1 0" : "0 0"; // the legacy default stream
            assertEquals(List.of("0 0", first, "2 0", "3 0", "8000000000000000 0"), waits);
            if (!gpu.isCuda) {
              device.set(-3);
              assertError(
                  EINVAL,
                  "HIP runtime API: hipGetStreamDeviceId failed with -3; hint: check that the"
                      + " stream is alive",
                  () -> incoming.waitOn(gated.ofConsumer()));
            }
          }
        });
  }
}
