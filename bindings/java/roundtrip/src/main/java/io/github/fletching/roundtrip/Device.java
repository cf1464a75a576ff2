// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.roundtrip;

import static io.github.fletching.roundtrip.Rooms.C;

import io.github.fletching.DeviceArray;
import io.github.fletching.DeviceStream;
import io.github.fletching.FletchingException;
import io.github.fletching.SyncEvent;
import io.github.fletching.VulkanContext;
import io.github.fletching.Waiter;
import io.github.fletching.Waiters;
import io.github.fletching.abi.DeviceType;
import io.github.fletching.testing.GatedProducer;

/** One backend of the producer, and the three operations on its events. */
final class Device {
  final String backend;
  final String status; // as a cell has it
  final String description; // the device's name and version, or why it is absent
  private final VulkanContext vulkan; // null for another

  /** Registers the waiter of ext_dev for that backend. */
  Device(String backend) {
    this.backend = backend;
    String[] presence = GatedProducer.presence(backend);
    status = presence[0];
    description = presence[1];
    vulkan = backend.equals("vulkan") && !isAbsent() ? GatedProducer.vulkan() : null;
    if (backend.equals("ext_dev")) {
      Waiters.register(DeviceType.EXT_DEV, new ExtDevWaiter());
    }
  }

  boolean isAbsent() {
    return status.equals("absent");
  }

  /** False for cpu alone, which has no event and no gate. */
  boolean hasQueues() {
    return !backend.equals("cpu");
  }

  boolean isReady(DeviceArray array) {
    return vulkan != null ? array.isReady(vulkan) : array.isReady();
  }

  void synchronize(DeviceArray array) {
    if (vulkan != null) {
      array.synchronize(vulkan);
    } else {
      array.synchronize();
    }
  }

  /** Waits on a queue of the producer, by its handle. */
  void waitOn(DeviceArray array, long handle) {
    if (vulkan != null) {
      array.waitOn(vulkan, handle);
    } else {
      array.waitOn(DeviceStream.of(array.deviceType(), handle));
    }
  }

  /** What a consumer of ext_dev registers: the functions of cpp/producer/ext_dev.h. */
  private static final class ExtDevWaiter implements Waiter {
    private static long function(SyncEvent event, int index) {
      return C.getAddress(event.address() + (long) index * C.pointerSize());
    }

    @Override
    public boolean isReady(SyncEvent event) {
      return C.call("ia", function(event, 0), event.address()) != 0;
    }

    @Override
    public void synchronize(SyncEvent event) {
      C.call("va", function(event, 1), event.address());
    }

    @Override
    public void waitOn(SyncEvent event, DeviceStream stream) {
      int code = (int) C.call("iaa", function(event, 2), event.address(), stream.handle());
      if (code != 0) {
        throw new FletchingException(code, "ext_dev: wait_on failed");
      }
    }
  }
}
