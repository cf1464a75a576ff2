// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static io.github.fletching.testing.suite.Releases.assertFails;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import io.github.fletching.DeviceArray;
import io.github.fletching.DeviceStream;
import io.github.fletching.VulkanContext;
import io.github.fletching.testing.GatedProducer;
import io.github.fletching.testing.GatedProducer.Gate;
import io.github.fletching.testing.GatedProducer.Queue;
import io.github.fletching.testing.NativeLibraries;
import io.github.fletching.testing.Producer.Exported;
import org.junit.jupiter.api.Test;

/** Events of Vulkan, which the conformance suite does not play, behind the producer's gate. */
class VulkanEventsTest {
  private static final int ENOENT = 2;
  private static final int ENOTSUP = 95;
  private static final String BACKEND = "vulkan";
  private static final String CASE = "record_batch";

  @Test
  void aCommandBufferWaitsForTheEvent() {
    assumeFalse(GatedProducer.presence(BACKEND)[0].equals("absent"), "there is no such device");
    Child.run(this, "waitBehindTheGate"); // libfletching stays loaded
  }

  void waitBehindTheGate() {
    try (Gate gate = new Gate(BACKEND, true);
        Exported exported = gate.exportArray(CASE);
        DeviceArray array = exported.array;
        Queue queue = new Queue(BACKEND)) {
      VulkanContext context = GatedProducer.vulkan();
      long commandBuffer = queue.handle();
      assertFails(ENOTSUP, array::synchronize, "VulkanContext");
      DeviceStream stream = DeviceStream.of(array.deviceType(), commandBuffer);
      assertFails(ENOTSUP, () -> array.waitOn(stream), "VulkanContext");
      // Without libfletching in the process, waits are refused.
      assertFails(
          ENOENT,
          () -> array.isReady(context),
          "Vulkan events through libfletching: cannot load libfletching.so.0.1, libfletching.so; ");
      NativeLibraries.open("libfletching.so.0.1");

      assertFalse(array.isReady(context));
      VulkanContext withoutQueue = context.onQueue(0, 0, 0);
      assertFails(ENOTSUP, () -> array.waitOn(withoutQueue, commandBuffer));
      array.waitOn(context, commandBuffer);
      queue.read(CASE, array);
      assertFalse(queue.isIdle());
      gate.open();
      assertNotEquals(0, queue.verify(GatedProducer.NEW));
      array.synchronize(context);
      assertTrue(array.isReady(context));
    }
  }
}
