// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

/** The origin of a stream or an event. CUDA: a context and its identity. HIP: a device. */
class Origin {
  long context;
  long contextId; // 0 if the driver lacks cuCtxGetId
  int device;
  boolean isPrimary;
}
