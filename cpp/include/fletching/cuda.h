/* SPDX-License-Identifier: Apache-2.0
 *
 * CUDA streams and memory, for an exchange without an ArrowDeviceArray (CUDA Array Interface,
 * "Synchronization"). Errors, threads and contexts as in fletching/events.h. C99 and C++. */
#ifndef FLETCHING_CUDA_H
#define FLETCHING_CUDA_H

#include <stdint.h>

#include "fletching/events.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Creates a non-blocking stream on a device with a context: in the current context, or otherwise
 * in the active primary context. The caller owns it until FletchingCudaStreamDestroy. */
FLETCHING_EXPORT int FletchingCudaStreamCreate(int64_t device_id, struct FletchingStream* stream,
                                               struct FletchingMessage* message);

/** Destroys the stream. Its pending work continues. */
FLETCHING_EXPORT int FletchingCudaStreamDestroy(struct FletchingStream stream,
                                                struct FletchingMessage* message);

/** Binds a default stream to its context, so that it names the same stream later, on every thread
 * and with any current device. The per-thread stream becomes the legacy stream, which waits for it.
 * Other streams do not change. */
FLETCHING_EXPORT int FletchingStreamResolve(struct FletchingStream* stream,
                                            struct FletchingMessage* message);

/** Counts an exchange inherited by a child of fork, in FletchingReleaseCounts.inherited_events. */
FLETCHING_EXPORT void FletchingCountInherited(void);

/** The location of memory, as the driver reports it. */
struct FletchingCudaMemory {
  ArrowDeviceType device_type; /* ARROW_DEVICE_CUDA, _CUDA_HOST or _CUDA_MANAGED */
  int64_t device_id;
  uint64_t address; /* as used on that device */
};

/** Queries the driver for the memory at `address`, in any context. Registered host memory keeps its
 * host address. EIO for an unknown address. */
FLETCHING_EXPORT int FletchingCudaMemoryFind(uint64_t address, struct FletchingCudaMemory* memory,
                                             struct FletchingMessage* message);

#ifdef __cplusplus
}
#endif

#endif /* FLETCHING_CUDA_H */
