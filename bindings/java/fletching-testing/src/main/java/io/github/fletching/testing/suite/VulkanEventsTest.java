// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static io.github.fletching.abi.Errno.ENOENT;
import static io.github.fletching.abi.Errno.ENOTSUP;
import static io.github.fletching.testing.suite.Releases.assertFails;

import com.sun.jna.Memory;
import com.sun.jna.Pointer;
import io.github.fletching.ArrayBuilder;
import io.github.fletching.DeviceArray;
import io.github.fletching.DeviceStream;
import io.github.fletching.Validation;
import io.github.fletching.VulkanContext;
import io.github.fletching.abi.DeviceType;
import io.github.fletching.testing.NativeLibraries;
import org.junit.jupiter.api.Test;

/** Waits on a Vulkan event with missing prerequisites; the conformance suite covers the others. */
class VulkanEventsTest {
  @Test
  void waitRequiresContextAndLibfletching() {
    Child.run(this, "waitWithoutPrerequisites"); // libfletching stays loaded
  }

  void waitWithoutPrerequisites() {
    VulkanContext context = VulkanContext.of(1, 1).onQueue(2, 2, 4);
    try (Memory event = new Memory(8);
        DeviceArray array =
            new ArrayBuilder(0).buildOn(DeviceType.VULKAN, 0, Pointer.nativeValue(event), null)) {
      event.setLong(0, 1);
      assertFails(ENOTSUP, array::synchronize, "hint: pass a Vulkan context");
      DeviceStream stream = DeviceStream.of(array.deviceType(), 0x10);
      assertFails(ENOTSUP, () -> array.waitOn(stream), "hint: pass a Vulkan context");
      assertFails(
          ENOENT,
          () -> array.isReady(context),
          "Vulkan events through libfletching: cannot load libfletching.so.0.1, libfletching.so; ");
      assertFails(
          ENOENT,
          Validation::reportLive,
          "validation through libfletching: cannot load libfletching.so.0.1, libfletching.so; hint");
      NativeLibraries.open("libfletching.so.0.1");
      assertFails(ENOTSUP, () -> array.waitOn(context.onQueue(0, 0, 0), 0x10));
    }
  }
}
