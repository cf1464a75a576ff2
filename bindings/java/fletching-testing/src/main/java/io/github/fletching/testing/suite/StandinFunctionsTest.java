// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static io.github.fletching.abi.Errno.EIO;
import static io.github.fletching.abi.Errno.ENOSYS;
import static io.github.fletching.abi.Errno.ENOTSUP;
import static io.github.fletching.testing.suite.Releases.assertError;
import static io.github.fletching.testing.suite.Releases.assertFails;
import static io.github.fletching.testing.suite.Releases.awaited;
import static io.github.fletching.testing.suite.StandinEventsTest.onBoth;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.jna.Memory;
import com.sun.jna.Pointer;
import io.github.fletching.DeviceArray;
import io.github.fletching.DeviceStream;
import io.github.fletching.OnCapture;
import io.github.fletching.VendorFunctions;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Events on a stand-in with one function removed or replaced. */
@Timeout(120)
class StandinFunctionsTest {
  private static final int RELAXED = 2; // the relaxed capture mode

  @Test
  void exportWithoutCreateFails() {
    exportWithout("cuEventCreate", "hipEventCreateWithFlags");
  }

  @Test
  void exportWithoutRecordFails() {
    exportWithout("cuEventRecord", "hipEventRecord");
  }

  @Test
  void exportWithoutDestroyFails() {
    exportWithout("cuEventDestroy_v2", "hipEventDestroy");
  }

  private static void exportWithout(String ofCuda, String ofHip) {
    onBoth(
        (gpu, gated) -> {
          String text =
              gpu.isCuda
                  ? "CUDA driver API: libcuda.so.1 has no " + ofCuda
                  : "HIP runtime API: libamdhip64.so.7 has no " + ofHip;
          List<Long> alive = gpu.alive();
          DeviceArray array = new Releases().array(gpu.type);
          VendorFunctions.without(
              gpu.isCuda ? ofCuda : ofHip,
              () -> {
                assertError(
                    ENOSYS,
                    "exportWithEvent: " + text + "; hint: install a newer version",
                    () -> array.exportWithEvent(gated.ofProducer()));
                Releases.releaseAfter(gated.ofProducer()); // waits instead
              });
          assertEquals(alive, gpu.alive());
          array.close();
        });
  }

  @Test
  void synchronizeWithoutPopFails() {
    synchronizeWithout("cuCtxPopCurrent_v2");
  }

  @Test
  void synchronizeWithoutReleaseFails() {
    synchronizeWithout("cuDevicePrimaryCtxRelease_v2");
  }

  /** An operation that cannot be undone must not start. */
  private static void synchronizeWithout(String function) {
    Gpu gpu = Gpu.cuda("standin");
    Gpu.Gated gated = gpu.new Gated(); // the primary context is active
    try (DeviceArray array = awaited(gpu.type, gated.event)) {
      long before = gpu.calls("cuDevicePrimaryCtxRetain");
      Runnable synchronize =
          () -> assertFails(ENOSYS, array::synchronize, "libcuda.so.1 has no " + function);
      VendorFunctions.without(function, () -> Releases.onThread(synchronize));
      assertEquals(before, gpu.calls("cuDevicePrimaryCtxRetain"));
    }
    gated.end();
  }

  @Test
  void recordedEventHasNoTimingAndBlockingSync() {
    onBoth(
        (gpu, gated) -> {
          String create = gpu.isCuda ? "cuEventCreate" : "hipEventCreateWithFlags";
          AtomicInteger created = new AtomicInteger();
          VendorFunctions.replace(
              create,
              (out, flags, c, d) -> {
                created.set((int) flags);
                return gpu.call(create, out, flags);
              },
              () -> Releases.export(gated.ofProducer()));
          assertEquals(3, created.get());
        });
  }

  /** A driver that does not write the capture state. */
  @Test
  void unknownCaptureStateIsNone() {
    onBoth(
        (gpu, gated) -> {
          gpu.openDevice(1); // so that the memory for the state has been used
          VendorFunctions.replace(
              gpu.isCapturing, (stream, out, c, d) -> 0, () -> Releases.export(gated.ofProducer()));
          gpu.closeDevice(1);
        });
  }

  @Test
  void rocmBefore7HasNoExternalEvents() {
    refuseExternalEvents(69_999_999);
  }

  @Test
  void externalEventsRequireRecordWithFlags() {
    Gpu.hip("standin"); // before the tested code loads a library by name
    VendorFunctions.without("hipEventRecordWithFlags", () -> refuseExternalEvents(80_000_000));
  }

  private static void refuseExternalEvents(int version) {
    Gpu gpu = Gpu.hip("standin");
    Gpu.Gated gated = gpu.new Gated();
    DeviceStream external = gated.ofConsumer().onCapture(OnCapture.EXTERNAL);
    String text = "expected ROCm 7.0 or later, got version " + version;
    DeviceArray array = new Releases().array(gpu.type);
    DeviceArray incoming = awaited(gpu.type, gated.event);
    gpu.beginCapture(gated.consumer);
    VendorFunctions.replace(
        "hipRuntimeGetVersion",
        (out, b, c, d) -> {
          new Pointer(out).setInt(0, version);
          return 0;
        },
        () -> {
          assertFails(ENOTSUP, () -> incoming.waitOn(external), text);
          assertFails(ENOTSUP, () -> array.exportWithEvent(external), text);
        });
    gpu.destroyGraph(gpu.endCapture(gated.consumer));
    incoming.close();
    array.close();
    gated.end();
  }

  /** An error of earlier work can prevent the context from being popped. */
  @Test
  void failedPopIsRepeated() {
    String pop = "cuCtxPopCurrent_v2";
    AtomicInteger fails = new AtomicInteger(1);
    Gpu gpu = Gpu.cuda("standin");
    Gpu.Gated gated = gpu.new Gated();
    DeviceArray incoming = awaited(gpu.type, gated.event);
    VendorFunctions.replace(
        pop,
        (out, b, c, d) -> fails.getAndDecrement() > 0 ? 719 : gpu.call(pop, out),
        () -> {
          gpu.openDevice(1);
          long other = gpu.current();
          assertFails(
              EIO, () -> incoming.waitOn(gated.ofConsumer()), pop + " failed with " + gpu.error);
          assertEquals(-1, fails.get());
          assertEquals(other, gpu.current());
          gpu.closeDevice(1);
          incoming.waitOn(gated.ofConsumer()); // pushes and pops no context
          assertEquals(-1, fails.get());
        });
    incoming.close();
    gated.end();
  }

  /** The call that exchanges the mode can report an error of earlier work. */
  @Test
  void modeIsRestoredAfterEarlierError() {
    Deque<Integer> results = new ArrayDeque<>();
    onBoth(
        (gpu, gated) -> {
          DeviceArray array = awaited(gpu.type, gated.event);
          VendorFunctions.replace(
              gpu.exchangeMode,
              (mode, b, c, d) ->
                  gpu.call(gpu.exchangeMode, mode) + (results.isEmpty() ? 0 : results.pop()),
              () -> {
                for (List<Integer> codes : List.of(List.of(719), List.of(0, 719))) {
                  results.addAll(codes);
                  assertFails(EIO, array::isReady, gpu.exchangeMode + " failed");
                  assertEquals(0, mode(gpu));
                }
              });
          assertTrue(results.isEmpty());
          array.close();
        });
  }

  /** A call that only sets the mode can report the loss of another device. */
  @Test
  void onlyEventQueryReportsDeviceLoss() {
    AtomicInteger code = new AtomicInteger();
    AtomicInteger refused = new AtomicInteger();
    onBoth(
        (gpu, gated) ->
            VendorFunctions.replace(
                gpu.exchangeMode,
                (mode, b, c, d) -> {
                  if (code.get() == 0 || new Pointer(mode).getInt(0) != RELAXED) {
                    return gpu.call(gpu.exchangeMode, mode);
                  }
                  refused.incrementAndGet();
                  return code.get();
                },
                () -> {
                  gated.shut();
                  Releases releases = new Releases();
                  releases.array(gpu.type).releaseAfter(gated.ofProducer());
                  for (int each : new int[] {304, 700}) {
                    code.set(each);
                    refused.set(0);
                    while (refused.get() < 10) {
                      Releases.pause();
                    }
                    releases.assertCount(0);
                    assertEquals(each == 700 ? 0 : 1, DeviceArray.pendingReleases().refused());
                  }
                  gpu.setFault(gpu.query + ":*:700");
                  releases.waitFor(1);
                  gpu.resetFaults();
                  code.set(0);
                }));
  }

  /** Returns the thread's mode and resets it to the default. */
  private static int mode(Gpu gpu) {
    Memory mode = new Memory(4);
    mode.setInt(0, 0);
    gpu.ok(gpu.exchangeMode, Pointer.nativeValue(mode));
    return mode.getInt(0);
  }
}
