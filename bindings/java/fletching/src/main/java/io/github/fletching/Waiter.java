// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

/**
 * How to wait on the events of a device type that this library does not call itself: of SYCL, of
 * Metal, of Vulkan, of ext_dev, of device types that are newer than the library. See {@link
 * Waiters}.
 *
 * <p>A method that the runtime does not support keeps its default, which throws ENOTSUP. All may be
 * called on any thread, several at once; what they throw is the caller's.
 *
 * <p>Text: Arrow C device data interface, "Synchronization Events".
 */
public interface Waiter {
  /**
   * Blocks the calling thread until the event has happened.
   *
   * @param event the event
   */
  default void synchronize(SyncEvent event) {
    throw Waiters.notOfWaiter("synchronize", event);
  }

  /**
   * Lets what is enqueued on the stream from now on wait for the event, and returns while it is
   * still pending.
   *
   * @param event the event
   * @param stream the stream
   */
  default void waitOn(SyncEvent event, DeviceStream stream) {
    throw Waiters.notOfWaiter("wait_on", event);
  }

  /**
   * Whether the event has happened. Does not block.
   *
   * @param event the event
   * @return whether the event has happened
   */
  default boolean isReady(SyncEvent event) {
    throw Waiters.notOfWaiter("ready", event);
  }
}
