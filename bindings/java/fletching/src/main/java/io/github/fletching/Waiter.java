// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

/**
 * Waits on events of a device type that this library does not support itself: SYCL, Metal, Vulkan,
 * ext_dev, and device types newer than the library. See {@link Waiters}.
 *
 * <p>Implement the methods that the runtime supports; the defaults throw ENOTSUP. All methods may
 * be called concurrently on any thread. The caller receives their exceptions.
 *
 * <p>See "Synchronization Events" in the Arrow C device data interface.
 */
public interface Waiter {
  /**
   * Blocks the calling thread until the event has completed.
   *
   * @param event the event to wait for
   */
  default void synchronize(SyncEvent event) {
    throw Waiters.notOfWaiter("synchronize", event);
  }

  /**
   * Makes later work on the stream wait for the event, and returns without waiting.
   *
   * @param event the event to wait for
   * @param stream the stream that must wait
   */
  default void waitOn(SyncEvent event, DeviceStream stream) {
    throw Waiters.notOfWaiter("waitOn", event);
  }

  /**
   * Whether the event has completed. Does not block.
   *
   * @param event the event to query
   * @return whether the event has completed
   */
  default boolean isReady(SyncEvent event) {
    throw Waiters.notOfWaiter("isReady", event);
  }
}
