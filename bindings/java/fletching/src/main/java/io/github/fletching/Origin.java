// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

/**
 * Where a stream or an event is from. CUDA: its context, and how to know that again. HIP: its
 * device.
 */
class Origin {
  long context;
  long contextId; // 0 where the driver has no cuCtxGetId
  int device;
  boolean isPrimary;
}
