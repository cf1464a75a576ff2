/* SPDX-License-Identifier: Apache-2.0
 *
 * Events of device arrays in C: wait on an event, export an array with an event, release an array
 * after a stream (Arrow C Device Data Interface, "Synchronization Event Types"). C99 and C++.
 *
 * The device type selects the vendor's runtime. Its library is loaded by the first call that needs
 * it. CUDA, HIP and OpenCL are built in. Vulkan has separate functions. Other device types need a
 * registered waiter.
 *
 * Errors: every function that returns int returns 0 or an errno value, and writes a sentence
 * without the function's name into `message`. `message` may be NULL, and is empty after a success.
 *   ENOENT   the library of the runtime was not found
 *   ENOSYS   the library lacks a function of this operation
 *   ENOTSUP  the runtime does not support the operation
 *   EINVAL   an argument is NULL, the array is released, or a handle is not an event or stream
 *   EBUSY    the stream is being captured into a CUDA or HIP graph; the capture continues
 *   EIO      another error of the runtime, whose name is in the message
 *   ENOMEM, and the error numbers of waiters.
 *
 * Threads: any thread may call every function; use one struct from one thread at a time. While
 * another thread captures a graph, the functions neither fail nor disturb the capture.
 *
 * CUDA contexts: an operation on a stream uses the stream's context. No function creates a context,
 * and each restores the thread's current context, or the thread's HIP device. */
#ifndef FLETCHING_EVENTS_H
#define FLETCHING_EVENTS_H

#include <stdint.h>

#include "fletching/abi.h"
#include "fletching/export.h"
#include "fletching/message.h"
#include "fletching/waiter.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FLETCHING_RUNTIME_NONE 0
#define FLETCHING_RUNTIME_CUDA 1
#define FLETCHING_RUNTIME_HIP 2
#define FLETCHING_RUNTIME_OPENCL 3
#define FLETCHING_RUNTIME_VULKAN 4
#define FLETCHING_RUNTIME_SYCL 5
#define FLETCHING_RUNTIME_METAL 6

/** A stream or queue with its runtime and device. The caller owns the handles. */
struct FletchingStream {
  /** CUstream, cudaStream_t, hipStream_t, cl_command_queue, or the stream of a waiter. CUDA and HIP
   * have default streams: NULL and 1 are the legacy stream, 2 is the per-thread stream. */
  void* handle;
  /** The device of a CUDA or HIP default stream; the driver knows the device of other streams. -1:
   * the array's device, or the current device if the array's device type has no runtime. */
  int64_t device_id;
  /** CUDA: the CUcontext to use as the current one; NULL for the thread's. If it belongs to another
   * device, a default stream is in the primary context of the stream's device, which must be
   * active. */
  void* context;
  /** FLETCHING_RUNTIME_...; NONE: the runtime of the array's device type. */
  int32_t runtime;
};

/** A stream of the device that the array is on. */
static inline struct FletchingStream FletchingStreamOfArray(void* handle) {
  struct FletchingStream stream;
  stream.handle = handle;
  stream.device_id = -1;
  stream.context = 0; /* NOLINT(modernize-use-nullptr): C */
  stream.runtime = FLETCHING_RUNTIME_NONE;
  return stream;
}

/** The event of a device array. It belongs to the producer. */
struct FletchingEvent {
  /** ArrowDeviceArray.sync_event: the address of a handle, or an object. NULL means ready. */
  void* sync_event;
  int64_t device_id;
  /** CUDA: the context for a thread without one; NULL for the device's primary context. */
  void* context;
  ArrowDeviceType device_type;
};

/** The behavior on a stream that is being captured into a CUDA or HIP graph. */
#define FLETCHING_CAPTURE_REFUSE 0 /* EBUSY, before a call that would end the capture */
/** The graph waits for the event, or records it, each time it is launched. It does not keep the
 * event alive: do not release the array before the graph and everything made from it are destroyed.
 * ENOTSUP before CUDA 11.1 and ROCm 7.0. */
#define FLETCHING_CAPTURE_EXTERNAL_EVENT 1
/** For ReleaseAfter and arrays that the graph does not read: keeps the array until the capture has
 * ended and the current work on the stream is done. The stream must live until then. An array that
 * the graph reads must outlive the graph, because the graph may be launched later. */
#define FLETCHING_CAPTURE_KEEP 2

/* --- Waits ---
 *
 * A NULL event is ready. Fails if the library cannot wait on the event; the wait is never skipped.
 * After an error, do not read the buffers. The caller keeps the array. */

/** Blocks the calling thread until the event has completed. Then the host may read host-accessible
 * buffers. */
FLETCHING_EXPORT int FletchingDeviceArraySynchronize(const struct ArrowDeviceArray* array,
                                                     struct FletchingMessage* message);

/** Makes later work on the stream wait for the event. Does not block. OpenCL: the queue must belong
 * to the event's cl_context. */
FLETCHING_EXPORT int FletchingDeviceArrayWaitOn(const struct ArrowDeviceArray* array,
                                                struct FletchingStream stream, int on_capture,
                                                struct FletchingMessage* message);

/** Sets *ready to 1 if the event has completed, and to 0 otherwise or on error. Does not block. */
FLETCHING_EXPORT int FletchingDeviceArrayReady(const struct ArrowDeviceArray* array, int* ready,
                                               struct FletchingMessage* message);

/* The three operations for an event without its array. */
FLETCHING_EXPORT int FletchingEventSynchronize(const struct FletchingEvent* event,
                                               struct FletchingMessage* message);
FLETCHING_EXPORT int FletchingEventWaitOn(const struct FletchingEvent* event,
                                          struct FletchingStream stream, int on_capture,
                                          struct FletchingMessage* message);
FLETCHING_EXPORT int FletchingEventReady(const struct FletchingEvent* event, int* ready,
                                         struct FletchingMessage* message);

/** The Vulkan objects for a wait on a VkEvent, which the producer passes separately. Zero the
 * struct before you fill it, so that members of later versions are zero. A call keeps no pointer to
 * it. The device must outlive the call, and every pending command buffer with the wait. */
struct FletchingVulkanWaitContext {
  void* device;         /* the VkDevice with which the producer created the event */
  void* producer_queue; /* the VkQueue on which the producer sets it. Only WaitOn needs it */
  void* queue;          /* the VkQueue to which the caller submits. Only WaitOn needs it */
  uint32_t set_stages;  /* the VkPipelineStageFlags with which the producer sets it, required by
                           vkCmdWaitEvents; 0 for all commands. Only WaitOn needs it */
  /* The device's vkGetDeviceProcAddr, cast to this type; NULL for the functions of the loader,
     libvulkan.so.1. */
  void (*get_device_proc_addr)(void); /* NOLINT(modernize-redundant-void-arg): it means more in C */
};

/** Blocks the calling thread until the event has completed. Vulkan has no host wait for a VkEvent:
 * this polls with sleeps of up to one millisecond. The event must not be a device-only event.
 * EINVAL also for a context without a device, and for an event of another runtime. */
FLETCHING_EXPORT int FletchingDeviceArraySynchronizeVulkan(
    const struct ArrowDeviceArray* array, const struct FletchingVulkanWaitContext* context,
    struct FletchingMessage* message);

/** Records a wait for the event into `command_buffer`, a VkCommandBuffer in the recording state and
 * outside of a render pass. Later commands see the producer's writes. Does not block. The array
 * must outlive the command buffer's execution. ENOTSUP unless `queue` is `producer_queue`, because
 * a VkEvent orders the commands of one queue. Vulkan requires synchronized access to the command
 * buffer. */
FLETCHING_EXPORT int FletchingDeviceArrayWaitOnVulkan(
    const struct ArrowDeviceArray* array, const struct FletchingVulkanWaitContext* context,
    void* command_buffer, struct FletchingMessage* message);

/** Sets *ready to 1 if the event has completed, and to 0 otherwise or on error. Does not block. */
FLETCHING_EXPORT int FletchingDeviceArrayReadyVulkan(
    const struct ArrowDeviceArray* array, const struct FletchingVulkanWaitContext* context,
    int* ready, struct FletchingMessage* message);

/* The three operations for an event without its array. */
FLETCHING_EXPORT int FletchingEventSynchronizeVulkan(
    const struct FletchingEvent* event, const struct FletchingVulkanWaitContext* context,
    struct FletchingMessage* message);
FLETCHING_EXPORT int FletchingEventWaitOnVulkan(const struct FletchingEvent* event,
                                                const struct FletchingVulkanWaitContext* context,
                                                void* command_buffer,
                                                struct FletchingMessage* message);
FLETCHING_EXPORT int FletchingEventReadyVulkan(const struct FletchingEvent* event,
                                               const struct FletchingVulkanWaitContext* context,
                                               int* ready, struct FletchingMessage* message);

/* --- Exports --- */

/** Sets a sync_event that completes when the current work on the stream is done. CUDA, HIP, OpenCL.
 *
 * The array must be live, with device type and device id, and without an event. The event has no
 * timing, and a host wait for it sleeps. Its address does not change. The release of the array, or
 * of the last child that was moved out, destroys the event on its thread. If the event's context
 * was destroyed before, the release skips that, as far as the driver reports it: reliably for a
 * primary context and CUDA 12.0 or later. A child of fork skips it too, with a warning on stderr.
 *
 * EINVAL also for an array with an event, and for a malformed array: a NULL child, n_children that
 * is negative, above 2^22 or without a list, more than 256 levels. An error leaves the array
 * unchanged. */
FLETCHING_EXPORT int FletchingDeviceArrayExportWithEvent(struct ArrowDeviceArray* array,
                                                         struct FletchingStream stream,
                                                         int on_capture,
                                                         struct FletchingMessage* message);

/** A recorded event, for bindings that attach it to their arrays themselves. */
struct FletchingRecordedEvent;

/** Records the current work on the stream. The caller owns *recorded; NULL after an error. */
FLETCHING_EXPORT int FletchingStreamRecord(struct FletchingStream stream, int on_capture,
                                           struct FletchingRecordedEvent** recorded,
                                           struct FletchingMessage* message);

/** The value for sync_event. Valid until the event is destroyed. */
FLETCHING_EXPORT void* FletchingRecordedEventAddress(struct FletchingRecordedEvent* recorded);

/** Destroys the event. Any thread may call this; NULL does nothing. */
FLETCHING_EXPORT void FletchingRecordedEventDestroy(struct FletchingRecordedEvent* recorded);

/* --- Releases --- */

/** Releases the array when the current work on the stream is done: for a consumer whose own work
 * still reads the buffers. Takes the array in every case, and never releases it early:
 *
 * - Normally it returns 0 at once. The release callback runs later, on a core thread or where
 * FletchingSetReleaseStarter puts it, and never inside a driver callback. The stream's context is
 * current then, and the callback may free memory while another thread captures. Up to 64 callbacks
 * may block without delaying the others. A child that was moved out before is not included.
 * - Without a thread or memory, it waits for the stream, releases the array and returns 0.
 * - If it cannot wait either, it leaks the array, counts it and returns the reason: EBUSY for a
 *   stream that is being captured (unless FLETCHING_CAPTURE_KEEP), ECHILD in a child of fork.
 * - It releases an array at once if its device type has no runtime and the stream is NULL.
 *
 * A driver error about the event does not show that the work is done: the array stays pending, and
 * the driver is queried again (FletchingPendingReleases). If the driver reports that the device or
 * context is lost, the array is released. Pending arrays are not released when the process exits.
 *
 * The first call keeps the library that contains the core loaded, because its thread runs until the
 * process exits: dlclose does not unload it.
 *
 * EINVAL for NULL and for a released array. */
FLETCHING_EXPORT int FletchingDeviceArrayReleaseAfter(struct ArrowDeviceArray* array,
                                                      struct FletchingStream stream, int on_capture,
                                                      struct FletchingMessage* message);

/** Counts of the arrays that ReleaseAfter took, and of inherited events. */
struct FletchingReleaseCounts {
  int64_t pending;          /* arrays whose stream has not finished the work yet */
  int64_t refused;          /* of these, arrays for which the last driver query failed */
  int64_t running;          /* arrays whose release callback is due, or has not returned */
  int64_t leaked;           /* arrays that could neither be deferred nor waited for */
  int64_t inherited_events; /* events not destroyed by a release in a child of fork */
};

/** Returns the counts of this process. `last_refusal` may be NULL; it receives the driver's last
 * error about an event, or "". Does not start a thread. */
FLETCHING_EXPORT void FletchingPendingReleases(struct FletchingReleaseCounts* counts,
                                               struct FletchingMessage* last_refusal);

/** An array whose release is due. */
struct FletchingRelease;

/** Sets a function that chooses the thread of release callbacks. It is called on a core thread and
 * must not block. It must arrange for one call of FletchingReleaseRun, soon, on another thread, and
 * return 0. If it returns another number, a core thread runs the callback. NULL restores the
 * default. Set it before the first release. */
FLETCHING_EXPORT void FletchingSetReleaseStarter(int (*start)(struct FletchingRelease* release));

/** Destroys the event and calls the release callback of the array. */
FLETCHING_EXPORT void FletchingReleaseRun(struct FletchingRelease* release);

/* --- Streams --- */

/** Blocks until all work on the stream is done. */
FLETCHING_EXPORT int FletchingStreamSynchronize(struct FletchingStream stream,
                                                struct FletchingMessage* message);

/** Makes later work on `stream` wait for the current work on `other`. Does not block. Both streams
 * belong to one runtime. */
FLETCHING_EXPORT int FletchingStreamWaitFor(struct FletchingStream stream,
                                            struct FletchingStream other,
                                            struct FletchingMessage* message);

/** Returns the calling thread's current CUcontext, for FletchingStream.context; NULL if there is
 * none, and for other runtimes. Loads the library. */
FLETCHING_EXPORT void* FletchingCurrentContext(int32_t runtime);

/* --- Waiters --- */

/** Registers a waiter for the events of a device type, for all calls of this core. *waiter is
 * copied; its context must outlive every call. A previous waiter is replaced; calls in progress
 * finish with it. EINVAL for a device type whose events the core waits on itself, and for a waiter
 * without functions. */
FLETCHING_EXPORT int FletchingRegisterWaiter(ArrowDeviceType device_type,
                                             const struct FletchingWaiter* waiter,
                                             struct FletchingMessage* message);

/** Removes the waiter of a device type. Returns 1 if one was registered, else 0. */
FLETCHING_EXPORT int FletchingUnregisterWaiter(ArrowDeviceType device_type);

/** Returns 1 if a waiter is registered for the device type, else 0. */
FLETCHING_EXPORT int FletchingHasWaiter(ArrowDeviceType device_type);

#ifdef __cplusplus
}
#endif

#endif /* FLETCHING_EVENTS_H */
