// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.abi;

/** How {@code ArrowDeviceArray.sync_event} points to the event of a device type. */
public enum EventPointer {
  /** {@code sync_event} is always NULL. */
  NONE,
  /** {@code sync_event} is the address of a handle. */
  ADDRESS_OF_HANDLE,
  /** {@code sync_event} is the address of the event object itself. */
  OBJECT,
  /** The producer documents the meaning of {@code sync_event}. */
  PRODUCER_DEFINED
}
