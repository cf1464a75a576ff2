// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static io.github.fletching.testing.suite.StandinEventsTest.onBoth;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.fletching.DeviceArray;
import java.util.function.BiConsumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Each operation as the first call to its runtime, on the stand-ins. */
@OnLibraryCopy
@Timeout(120)
class FirstCallsTest {
  private static void first(BiConsumer<DeviceArray, Gpu.Gated> operation) {
    onBoth(
        (gpu, gated) -> {
          gpu.recordEvent(gated.event, gated.producer);
          try (DeviceArray array = Releases.awaited(gpu.type, gated.event)) {
            long initialized = gpu.calls(gpu.initialize);
            operation.accept(array, gated);
            assertTrue(gpu.calls(gpu.initialize) > initialized, "not initialized");
          }
        });
  }

  @Test
  void synchronizeWorksAsFirstCall() {
    first((array, gated) -> array.synchronize());
  }

  @Test
  void waitOnWorksAsFirstCall() {
    first((array, gated) -> array.waitOn(gated.ofConsumer()));
  }

  @Test
  void isReadyWorksAsFirstCall() {
    first((array, gated) -> array.isReady());
  }

  @Test
  void exportWithEventWorksAsFirstCall() {
    first((array, gated) -> Releases.export(gated.ofProducer()));
  }

  @Test
  void releaseAfterWorksAsFirstCall() {
    first((array, gated) -> Releases.releaseAfter(gated.ofProducer()));
  }
}
