/* SPDX-License-Identifier: Apache-2.0
 *
 * What an exchange of CUDA memory without an ArrowDeviceArray needs: streams of one's own, and
 * where memory is (CUDA Array Interface, "Synchronization"). By the driver API; errors, threads and
 * contexts as in fletching/events.h. C99 and C++. */
#ifndef FLETCHING_CUDA_H
#define FLETCHING_CUDA_H

#include <stdint.h>

#include "fletching/events.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A stream that the legacy default stream does not hold up, on a device with a context: the
 * current one, else the primary one, if it is active. The caller's, until
 * FletchingCudaStreamDestroy. */
FLETCHING_EXPORT int FletchingCudaStreamCreate(int64_t device_id, struct FletchingStream* stream,
                                               struct FletchingMessage* message);

/** Destroys the stream. The work that is on it continues. */
FLETCHING_EXPORT int FletchingCudaStreamDestroy(struct FletchingStream stream,
                                                struct FletchingMessage* message);

/** Makes a default stream name the same one on every thread and with any device current: one that
 * work has been put on by this thread, and that is used when something is destroyed elsewhere. The
 * per-thread stream becomes the legacy one, which waits for it. Other streams stay as they are. */
FLETCHING_EXPORT int FletchingStreamResolve(struct FletchingStream* stream,
                                            struct FletchingMessage* message);

/** Counts an exchange that a child of fork has inherited and left alone, as events are:
 * FletchingReleaseCounts.inherited_events. */
FLETCHING_EXPORT void FletchingCountInherited(void);

/** Where memory is, as the driver says. */
struct FletchingCudaMemory {
  ArrowDeviceType device_type; /* ARROW_DEVICE_CUDA, _CUDA_HOST or _CUDA_MANAGED */
  int64_t device_id;
  uint64_t address; /* as that device uses it */
};

/** Asks for the memory at `address`, from whatever context the thread has. Host memory that was
 * registered keeps the address of the host. EINVAL for memory that CUDA does not know. */
FLETCHING_EXPORT int FletchingCudaMemoryFind(uint64_t address, struct FletchingCudaMemory* memory,
                                             struct FletchingMessage* message);

#ifdef __cplusplus
}
#endif

#endif /* FLETCHING_CUDA_H */
