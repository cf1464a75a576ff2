// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static io.github.fletching.abi.Errno.EIO;
import static io.github.fletching.abi.Errno.ENOTSUP;
import static io.github.fletching.testing.suite.Releases.assertFails;
import static io.github.fletching.testing.suite.Releases.onThread;
import static io.github.fletching.testing.suite.StandinEventsTest.onBoth;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.fletching.DeviceArray;
import io.github.fletching.DeviceStream;
import io.github.fletching.OnCapture;
import io.github.fletching.abi.DeviceType;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** releaseAfter always takes the array, and never releases it early. */
@Timeout(120)
class StandinReleasesTest {
  private static long leaked() {
    return DeviceArray.pendingReleases().leaked();
  }

  /** Waits until the reaper has checked every array that was deferred earlier. */
  private static void passReaper(Gpu gpu, Gpu.Gated gated) {
    Releases free = new Releases();
    free.array(gpu.type).releaseAfter(gated.ofConsumer());
    free.waitFor(1);
  }

  @Test
  void releaseAfterNullStreamKeepsArray() {
    Releases releases = new Releases();
    try (DeviceArray array = releases.array(DeviceType.CUDA)) {
      assertThrows(NullPointerException.class, () -> array.releaseAfter(null));
      releases.assertCount(0);
    }
    releases.assertCount(1);
  }

  @Test
  void releaseAfterWithoutStreamReleasesAtOnce() {
    long leaks = leaked();
    Releases releases = new Releases();
    releases.array(DeviceType.CPU, -1, 0).releaseAfter(DeviceStream.of(DeviceType.CPU, 0));
    releases.assertCount(1);
    DeviceStream unknown = DeviceStream.of(DeviceType.CPU, 4096);
    assertFails(
        ENOTSUP,
        () -> releases.array(DeviceType.CPU, -1, 0).releaseAfter(unknown),
        "releaseAfter: device type cpu: no runtime that records events");
    releases.assertCount(1);
    assertEquals(leaks + 1, leaked());
  }

  /** C moves the struct while the release is pending, so the struct has another owner. */
  @Test
  void releaseAfterMovedArrayDoesNotRelease() {
    onBoth(
        (gpu, gated) -> {
          gated.shut();
          Releases releases = new Releases();
          DeviceArray array = releases.array(gpu.type);
          Raw struct = Raw.arrayAt(array.address());
          array.releaseAfter(gated.ofProducer());
          Raw there = struct.move(Raw.array());
          gated.open();
          while (DeviceArray.pendingReleases().pending() > 0) {
            Releases.pause();
          }
          gpu.settleReleases();
          releases.assertCount(0);
          there.release();
          releases.assertCount(1);
        });
  }

  // --- Captures

  /** The reaper has no context, another current device, and a different per-thread stream. */
  @Test
  void keptArrayWaitsForDefaultStreamOfItsDevice() {
    onBoth(
        gpu -> {
          Gpu.Gated gated = gpu.new Gated();
          long blocking = gpu.makeStream(true);
          gpu.beginCapture(blocking); // the legacy default stream synchronizes with it
          Releases kept = new Releases();
          DeviceArray array = kept.array(gpu.type);
          DeviceStream stream = gpu.stream(0).onCapture(OnCapture.KEEP);
          gpu.openDevice(1);
          array.releaseAfter(stream);
          gpu.closeDevice(1);
          passReaper(gpu, gated);
          kept.assertCount(0);
          gpu.destroyGraph(gpu.endCapture(blocking));
          kept.waitFor(1);
          gpu.settleReleases();
          gpu.destroyStream(blocking);
          gated.end();
        });
  }

  /** The wait that replaces a deferred release must not invalidate the capture. */
  @Test
  void waitInsteadOfEventRefusesCapturedStream() {
    onBoth(
        (gpu, gated) -> {
          long leaks = leaked();
          Releases releases = new Releases();
          gpu.beginCapture(gated.producer);
          gpu.setFault(gpu.exchangeMode + ":1:" + gpu.error);
          assertFails(
              EIO,
              () -> releases.array(gpu.type).releaseAfter(gated.ofProducer()),
              gpu.exchangeMode + " failed");
          gpu.resetFaults();
          gpu.destroyGraph(gpu.endCapture(gated.producer)); // still valid
          assertEquals(leaks + 1, leaked());
          releases.assertCount(0);
        });
  }

  /** The reaper's thread has a different per-thread stream, which is not captured. */
  @Test
  void keptArrayWaitsForPerThreadStreamOfCaller() {
    onBoth(
        (gpu, gated) -> {
          gpu.beginCapture(2);
          Releases kept = new Releases();
          kept.array(gpu.type).releaseAfter(gpu.stream(2).onCapture(OnCapture.KEEP));
          passReaper(gpu, gated);
          kept.assertCount(0);
          gpu.destroyGraph(gpu.endCapture(2));
          kept.waitFor(1);
        });
  }

  /** The reaper's thread has no context, and the stream's context is not a primary context. */
  @Test
  void keptArrayWaitsForDefaultStreamOfCreatedContext() {
    Gpu gpu = Gpu.cuda("standin");
    Gpu.Gated gated = gpu.new Gated();
    long context = gpu.get("cuCtxCreate_v4", 0, 0, 0);
    long blocking = gpu.makeStream(true);
    gpu.beginCapture(blocking);
    Releases kept = new Releases();
    kept.array(gpu.type).releaseAfter(gpu.stream(0).onCapture(OnCapture.KEEP));
    passReaper(gpu, gated);
    kept.assertCount(0);
    gpu.destroyGraph(gpu.endCapture(blocking));
    kept.waitFor(1);
    gpu.settleReleases();
    gpu.destroyStream(blocking);
    gpu.ok("cuCtxDestroy_v2", context);
    gated.end();
  }

  /** A default stream exists as long as its context, whose handle may be reused later. */
  @Test
  void keptArrayOfDestroyedContextIsReleased() {
    Gpu gpu = Gpu.cuda("standin");
    gpu.settleReleases();
    long stale = gpu.staleHandles();
    for (boolean isPrimary : new boolean[] {true, false}) {
      gpu.openDevice(1);
      long context = isPrimary ? 0 : gpu.get("cuCtxCreate_v4", 0, 0, 1);
      gpu.beginCapture(gpu.makeStream(true)); // the capture ends with the context
      Releases kept = new Releases();
      kept.array(gpu.type, 1, 0).releaseAfter(gpu.stream(0).onCapture(OnCapture.KEEP));
      if (!isPrimary) {
        gpu.ok("cuCtxDestroy_v2", context);
      }
      gpu.closeDevice(1);
      kept.waitFor(1);
    }
    assertTrue(gpu.staleHandles() <= stale + 2, "expected queries of the created context at most");
    assertEquals(0, DeviceArray.pendingReleases().refused());
  }

  // --- Streams

  @Test
  void onDeviceNamesDeviceOfDefaultStream() {
    onBoth(
        gpu -> {
          gpu.openDevice(1);
          Gpu.Gated gated = gpu.new Gated(); // device 0 is current
          gated.shut();
          Releases behind = new Releases();
          DeviceStream stream = gpu.stream(0);
          assertEquals(-1, stream.deviceId());
          assertEquals(1, stream.onDevice(1).onCapture(OnCapture.KEEP).deviceId());
          gpu.recordEvent(gated.event, gated.producer);
          try (DeviceArray incoming = Releases.awaited(gpu.type, gated.event)) {
            incoming.waitOn(stream.onDevice(0));
          }
          behind.array(gpu.type, 1, 0).releaseAfter(stream.onDevice(0));
          Releases free = new Releases();
          free.array(gpu.type).releaseAfter(stream.onDevice(1));
          free.waitFor(1);
          behind.assertCount(0);
          gated.open();
          behind.waitFor(1);
          gpu.synchronizeStream(0);
          gated.end();
          gpu.closeDevice(1);
        });
  }

  @Test
  void runningCountsUnfinishedCallbacks() {
    onBoth(
        (gpu, gated) -> {
          CountDownLatch go = new CountDownLatch(1);
          Releases slow =
              new Releases(
                  () -> {
                    try {
                      go.await();
                    } catch (InterruptedException e) {
                      Thread.currentThread().interrupt();
                    }
                  });
          onThread(() -> slow.array(gpu.type).releaseAfter(gated.ofProducer()));
          while (DeviceArray.pendingReleases().pending() > 0) {
            Releases.pause();
          }
          assertEquals(1, DeviceArray.pendingReleases().running());
          go.countDown();
          while (DeviceArray.pendingReleases().running() > 0) {
            Releases.pause();
          }
          slow.assertCount(1);
        });
  }
}
