// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

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
import io.github.fletching.testing.FakeLibraryEngine;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * CUDA and HIP behavior that the stand-ins cannot have: a missing required function, an older
 * version, failures without output values, and late reports of earlier errors.
 */
@OnLibraryCopy
@Timeout(120)
class FakeRuntimesTest {
  private static final int EIO = 5;
  private static final int ENOSYS = 38;
  private static final int ENOTSUP = 95;
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
    FakeLibraryEngine.remove(ofCuda);
    FakeLibraryEngine.remove(ofHip);
    onBoth(
        (gpu, gated) -> {
          String text =
              gpu.isCuda
                  ? "CUDA driver API: libcuda.so.1 has no " + ofCuda
                  : "HIP runtime API: libamdhip64.so.7 has no " + ofHip;
          List<Long> alive = gpu.alive();
          DeviceArray array = new Releases().array(gpu.type);
          assertError(
              ENOSYS,
              "exportWithEvent: " + text + "; hint: install a newer version",
              () -> array.exportWithEvent(gated.ofProducer()));
          Releases.releaseAfter(gated.ofProducer()); // waits instead
          assertEquals(alive, gpu.alive());
          array.close();
        });
  }

  /** If the driver does not write the capture state, the stream counts as not captured. */
  @Test
  void recordedEventHasNoTimingAndBlockingSync() {
    AtomicInteger created = new AtomicInteger();
    onBoth(
        (gpu, gated) -> {
          String create = gpu.isCuda ? "cuEventCreate" : "hipEventCreateWithFlags";
          FakeLibraryEngine.replace(
              create,
              (out, flags, c, d, e) -> {
                created.set((int) flags);
                return gpu.call(create, out, flags);
              });
          FakeLibraryEngine.replace(gpu.isCapturing, (stream, b, c, d, e) -> 0);
          gpu.openDevice(1); // so that the memory for the state has been used
          Releases.export(gated.ofProducer());
          assertEquals(3, created.getAndSet(0));
          gpu.closeDevice(1);
        });
  }

  @Test
  void rocmBefore7HasNoExternalEvents() {
    refuseExternalEvents(69_999_999);
  }

  @Test
  void externalEventsRequireRecordWithFlags() {
    FakeLibraryEngine.remove("hipEventRecordWithFlags");
    refuseExternalEvents(80_000_000);
  }

  private static void refuseExternalEvents(int version) {
    FakeLibraryEngine.replace(
        "hipRuntimeGetVersion",
        (out, b, c, d, e) -> {
          new Pointer(out).setInt(0, version);
          return 0;
        });
    Gpu gpu = Gpu.hip("standin");
    Gpu.Gated gated = gpu.new Gated();
    DeviceStream external = gated.ofConsumer().onCapture(OnCapture.EXTERNAL);
    String text = "expected ROCm 7.0 or later, got version " + version;
    DeviceArray array = new Releases().array(gpu.type);
    try (DeviceArray incoming = awaited(gpu.type, gated.event)) {
      gpu.beginCapture(gated.consumer);
      assertFails(ENOTSUP, () -> incoming.waitOn(external), text);
      assertFails(ENOTSUP, () -> array.exportWithEvent(external), text);
      gpu.destroyGraph(gpu.endCapture(gated.consumer));
    }
    array.close();
    gated.end();
  }

  /** An error of earlier work can prevent the context from being popped. */
  @Test
  void failedPopIsRepeated() {
    String pop = "cuCtxPopCurrent_v2";
    AtomicInteger fails = new AtomicInteger(1);
    Gpu gpu = Gpu.cuda("standin");
    FakeLibraryEngine.replace(
        pop, (out, b, c, d, e) -> fails.getAndDecrement() > 0 ? 719 : gpu.call(pop, out));
    Gpu.Gated gated = gpu.new Gated();
    DeviceArray incoming = awaited(gpu.type, gated.event);
    gpu.openDevice(1);
    long other = gpu.current();
    assertFails(EIO, () -> incoming.waitOn(gated.ofConsumer()), pop + " failed with " + gpu.error);
    assertEquals(-1, fails.get());
    assertEquals(other, gpu.current());
    gpu.closeDevice(1);
    incoming.waitOn(gated.ofConsumer()); // pushes and pops no context
    assertEquals(-1, fails.get());
    incoming.close();
    gated.end();
  }

  /** The call that exchanges the mode can report an error of earlier work. */
  @Test
  void modeIsRestoredAfterEarlierError() {
    Deque<Integer> results = new ArrayDeque<>();
    onBoth(
        (gpu, gated) -> {
          FakeLibraryEngine.replace(
              gpu.exchangeMode,
              (mode, b, c, d, e) ->
                  gpu.call(gpu.exchangeMode, mode) + (results.isEmpty() ? 0 : results.pop()));
          try (DeviceArray array = awaited(gpu.type, gated.event)) {
            for (List<Integer> codes : List.of(List.of(719), List.of(0, 719))) {
              results.addAll(codes);
              assertFails(EIO, array::isReady, gpu.exchangeMode + " failed");
              assertEquals(0, mode(gpu));
            }
          }
          assertTrue(results.isEmpty());
        });
  }

  /** A call that only sets the mode can report the loss of another device. */
  @Test
  void onlyEventQueryReportsDeviceLoss() {
    AtomicInteger code = new AtomicInteger();
    AtomicInteger refused = new AtomicInteger();
    onBoth(
        (gpu, gated) -> {
          FakeLibraryEngine.replace(
              gpu.exchangeMode,
              (mode, b, c, d, e) -> {
                if (code.get() == 0 || new Pointer(mode).getInt(0) != RELAXED) {
                  return gpu.call(gpu.exchangeMode, mode);
                }
                refused.incrementAndGet();
                return code.get();
              });
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
        });
  }

  /** Returns the thread's mode and resets it to the default. */
  private static int mode(Gpu gpu) {
    Memory mode = new Memory(4);
    mode.setInt(0, 0);
    gpu.ok(gpu.exchangeMode, Pointer.nativeValue(mode));
    return mode.getInt(0);
  }
}
