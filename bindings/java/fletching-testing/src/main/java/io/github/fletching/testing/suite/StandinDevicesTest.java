// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static io.github.fletching.testing.suite.Releases.awaited;
import static io.github.fletching.testing.suite.Releases.onThread;
import static io.github.fletching.testing.suite.StandinEventsTest.onBoth;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.jna.Pointer;
import io.github.fletching.DeviceArray;
import io.github.fletching.abi.DeviceType;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Arrays on device 0 while device 1 is current, or on a thread without a context: a default stream
 * belongs to the array's device. Covers cases that tests/events does not.
 */
@Timeout(120)
class StandinDevicesTest {
  private static final long[] DEFAULT_STREAMS = {0, 1, 2};

  /** Runs the body while device 1 is current. */
  private static void elsewhere(Gpu gpu, Runnable body) {
    long here = gpu.current();
    gpu.openDevice(1);
    long there = gpu.current();
    body.run();
    assertEquals(there, gpu.current());
    gpu.closeDevice(1);
    assertEquals(here, gpu.current());
  }

  /**
   * Runs the body once per default stream, while that stream waits at the shut gate on device 0.
   */
  private static void onGatedDefaultStreams(GatedBody body) {
    onBoth(
        (gpu, gated) -> {
          for (long handle : DEFAULT_STREAMS) {
            gated.shut();
            gpu.recordEvent(gated.event, gated.producer);
            try (DeviceArray incoming = awaited(gpu.type, gated.event)) {
              incoming.waitOn(gpu.stream(handle));
            }
            assertTrue(gated.isBlocked(handle & 2));
            body.run(gpu, gated, handle);
            gated.open();
            gpu.synchronizeStream(handle & 2);
          }
        });
  }

  private interface GatedBody {
    void run(Gpu gpu, Gpu.Gated gated, long handle);
  }

  /** The device ID of host memory is not a GPU's ID. */
  @Test
  void releaseAfterOfHostMemoryWaitsForCurrentDevice() {
    onGatedDefaultStreams(
        (gpu, gated, handle) -> {
          Releases releases = new Releases();
          DeviceArray array = releases.array(DeviceType.EXT_DEV, 0, 0);
          elsewhere(
              gpu,
              () -> {
                array.releaseAfter(gpu.stream(handle));
                releases.waitFor(1); // device 1 has no gate
              });
        });
  }

  /** A query works without any context, even if the array's device is unknown. */
  @Test
  void isReadyWithoutContextReturnsAnswer() {
    Gpu gpu = Gpu.cuda("standin");
    Gpu.Gated gated = gpu.new Gated();
    long address = Pointer.nativeValue(gated.event);
    try (DeviceArray array = new Releases().array(gpu.type, -1, address)) {
      onThread(() -> assertTrue(array.isReady()));
    }
    gated.end();
  }

  /** The callback may free device memory, as a producer does in its own context. */
  @Test
  void releaseAfterRunsCallbackInContextOfStream() {
    onBoth(
        gpu -> {
          gpu.openDevice(1);
          long context = gpu.current();
          long stream = gpu.makeStream();
          AtomicLong current = new AtomicLong(-1);
          Releases releases = new Releases(() -> current.set(gpu.current()));
          releases.array(gpu.type, 1, 0).releaseAfter(gpu.stream(stream));
          releases.waitFor(1);
          assertEquals(context, current.get());
          gpu.settleReleases();
          gpu.destroyStream(stream);
          gpu.closeDevice(1);
        });
  }
}
