/* SPDX-License-Identifier: Apache-2.0
 *
 * Events of device arrays in C: waits on them, events for a producer's arrays, and releases that
 * wait for a stream (Arrow C Device Data Interface, "Synchronization Event Types"). C99 and C++.
 *
 * The runtime of an event follows from the device type; its library is loaded by the first call
 * that needs it. CUDA, HIP and OpenCL are known; Vulkan has operations of its own; every other
 * device type needs a waiter.
 *
 * Errors: every function that returns int returns 0 or an errno value, and writes a sentence into
 * `message`, which may be NULL and is empty after a success. ENOENT: the library of the runtime is
 * not found. ENOSYS: it lacks a function that this operation needs. ENOTSUP: the runtime does not
 * support the operation. EINVAL: an argument is NULL, the array is released, or what was passed
 * cannot be an event or stream. EBUSY: the stream is being captured into a CUDA or HIP graph, and
 * the capture continues. EIO: what else the runtime reports, by its own name. ENOMEM. What a waiter
 * returns.
 *
 * Threads: every function may be called from any thread; one struct is used by one thread at a
 * time. While another thread captures a graph, the operations neither fail nor disturb the capture.
 *
 * CUDA contexts: an operation on a stream happens in the stream's own context. Nothing creates a
 * context, and the thread has the one that it had before afterwards. HIP: the same holds for the
 * thread's device. */
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

/** A stream or queue, whose it is, and where it is. Owned by the caller, also what it names. */
struct FletchingStream {
  /** CUstream or cudaStream_t, hipStream_t, cl_command_queue, or what a waiter accepts. CUDA and
   * HIP have default streams: NULL and 1 are the legacy one, 2 the calling thread's. */
  void* handle;
  /** Which device a default stream of CUDA or HIP is of; the driver knows it of the others. -1:
   * that of the array. */
  int64_t device_id;
  /** CUDA: the CUcontext that counts as the current one; NULL for the thread's. Where that is of
   * another device, a default stream is that of the device's primary context, which has to be
   * active. */
  void* context;
  /** FLETCHING_RUNTIME_...; NONE: that of the array's device type. */
  int32_t runtime;
};

/** A stream of the device that the array is on. */
static inline struct FletchingStream FletchingStreamOfArray(void* handle) {
  struct FletchingStream stream;
  stream.handle = handle;
  stream.device_id = -1;
  stream.context = 0;
  stream.runtime = FLETCHING_RUNTIME_NONE;
  return stream;
}

/** An event, as a device array has it. It belongs to the producer. */
struct FletchingEvent {
  /** As the struct has it: the address of a handle, or an object. NULL: nothing to wait for. */
  void* sync_event;
  int64_t device_id;
  /** CUDA: the context for a thread that has none; NULL for the device's primary one. */
  void* context;
  ArrowDeviceType device_type;
};

/** What to do on a stream that is being captured into a CUDA or HIP graph. */
#define FLETCHING_CAPTURE_REFUSE 0 /* EBUSY, before a call that would end the capture */
/** The graph waits for the event, or records it, each time it is launched. It does not keep the
 * event: the array must not be released before the graph and everything made of it are destroyed.
 * ENOTSUP before CUDA 11.1 and ROCm 7.0. */
#define FLETCHING_CAPTURE_EXTERNAL_EVENT 1
/** Of ReleaseAfter: the array is kept until the capture has ended, and the stream has passed. */
#define FLETCHING_CAPTURE_KEEP 2

/* --- Waits ---
 *
 * A NULL event is nothing to wait for; one that there is no way to wait on is an error, never
 * skipped. After an error nothing is known of the buffers: do not read them. The array stays the
 * caller's. */

/** Blocks the calling thread until the event has happened: then the host may read what it can read
 * of the buffers. */
FLETCHING_EXPORT int FletchingDeviceArraySynchronize(const struct ArrowDeviceArray* array,
                                                     struct FletchingMessage* message);

/** Lets what is enqueued on the stream from now on wait for the event, and returns while the event
 * is still pending. OpenCL: the queue has to be of the event's cl_context. */
FLETCHING_EXPORT int FletchingDeviceArrayWaitOn(const struct ArrowDeviceArray* array,
                                                struct FletchingStream stream, int on_capture,
                                                struct FletchingMessage* message);

/** Sets *ready to 1 when the event has happened, else to 0, after an error too. Does not block. */
FLETCHING_EXPORT int FletchingDeviceArrayReady(const struct ArrowDeviceArray* array, int* ready,
                                               struct FletchingMessage* message);

/* The same for an event without its array. */
FLETCHING_EXPORT int FletchingEventSynchronize(const struct FletchingEvent* event,
                                               struct FletchingMessage* message);
FLETCHING_EXPORT int FletchingEventWaitOn(const struct FletchingEvent* event,
                                          struct FletchingStream stream, int on_capture,
                                          struct FletchingMessage* message);
FLETCHING_EXPORT int FletchingEventReady(const struct FletchingEvent* event, int* ready,
                                         struct FletchingMessage* message);

/** What a wait on a VkEvent needs, and the interface does not hand over: the producer passes it
 * separately. Zero it before it is filled, so that what a later version adds is zero too. A call
 * keeps nothing of it; the device has to live during the call, and as long as a command buffer with
 * the wait is pending. */
struct FletchingVulkanWaitContext {
  void* device;         /* the VkDevice with which the producer created the event */
  void* producer_queue; /* the VkQueue on which the producer sets it. Only WaitOn needs it */
  void* queue;          /* the VkQueue to which the caller submits. Only WaitOn needs it */
  uint32_t set_stages;  /* the VkPipelineStageFlags with which the producer sets it, and with which
                           vkCmdWaitEvents has to wait; 0 for all commands. Only WaitOn needs it */
  /* The vkGetDeviceProcAddr of the device, cast to this type; NULL for the functions of the loader,
     libvulkan.so.1. */
  void (*get_device_proc_addr)(void); /* NOLINT(modernize-redundant-void-arg): it means more in C */
};

/** Blocks the calling thread until the event has happened. Vulkan has no host wait for a VkEvent:
 * it is asked again and again, with sleeps of up to a millisecond in between. The event must not be
 * one that only the device can use. EINVAL also for a context without a device, and an event that
 * is not of Vulkan. */
FLETCHING_EXPORT int FletchingDeviceArraySynchronizeVulkan(
    const struct ArrowDeviceArray* array, const struct FletchingVulkanWaitContext* context,
    struct FletchingMessage* message);

/** Records a wait for the event into `command_buffer`, a VkCommandBuffer in the recording state and
 * outside of a render pass: commands behind it see what was written before the event. It does not
 * block. The array has to live until the command buffer is done. ENOTSUP unless `queue` is
 * `producer_queue`: a VkEvent orders the commands of one queue only. Vulkan asks that the caller
 * has synchronized access to the command buffer. */
FLETCHING_EXPORT int FletchingDeviceArrayWaitOnVulkan(
    const struct ArrowDeviceArray* array, const struct FletchingVulkanWaitContext* context,
    void* command_buffer, struct FletchingMessage* message);

/** Sets *ready to 1 when the event has happened, else to 0, after an error too. Does not block. */
FLETCHING_EXPORT int FletchingDeviceArrayReadyVulkan(
    const struct ArrowDeviceArray* array, const struct FletchingVulkanWaitContext* context,
    int* ready, struct FletchingMessage* message);

/* The same for an event without its array. */
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

/* --- A producer's events --- */

/** Sets a sync_event that happens when everything is done that is on the stream now. CUDA, HIP and
 * OpenCL.
 *
 * The array is alive, has its device type and device id, and no event. The event has no timing, and
 * a host wait for it sleeps. It lives at one address until the array is released and the last child
 * that was moved out of it too; the last of these releases destroys it, on whatever thread. One
 * whose context was destroyed is gone already, and left alone, as far as the driver reports this:
 * reliably with a primary context and CUDA 12.0 or later. In a child of fork it is left alone too,
 * with a warning on stderr.
 *
 * EINVAL also when the array has an event, and when it or an array below it is malformed: a child
 * that is NULL, n_children negative, above 2^22 or without a list, nested deeper than 256 levels.
 * After an error the array is as it was. */
FLETCHING_EXPORT int FletchingDeviceArrayExportWithEvent(struct ArrowDeviceArray* array,
                                                         struct FletchingStream stream,
                                                         int on_capture,
                                                         struct FletchingMessage* message);

/** An event that was recorded on a stream, for those who tie it to their arrays themselves. */
struct FletchingRecordedEvent;

/** Records what is on the stream now. *recorded is the caller's, and NULL after an error. */
FLETCHING_EXPORT int FletchingStreamRecord(struct FletchingStream stream, int on_capture,
                                           struct FletchingRecordedEvent** recorded,
                                           struct FletchingMessage* message);

/** What sync_event is to be set to: valid until the event is destroyed. */
FLETCHING_EXPORT void* FletchingRecordedEventAddress(struct FletchingRecordedEvent* recorded);

/** Destroys the event, on whatever thread. Does nothing for NULL. */
FLETCHING_EXPORT void FletchingRecordedEventDestroy(struct FletchingRecordedEvent* recorded);

/* --- A consumer's releases --- */

/** Releases the array when everything is done that is on the stream now: for a consumer whose own
 * work still reads the buffers. It takes the array in every case, and never releases it early:
 *
 * - It returns 0 and the release callback runs later, on a thread of the core or where
 *   FletchingSetReleaseStarter says, never within a callback of a driver. A slow callback delays no
 *   other release. It runs with the stream's context current, and may free memory while another
 *   thread captures. A child that was moved out before is not waited for.
 * - Where the release cannot be deferred, it waits for the stream, releases the array and
 *   returns 0.
 * - Where it cannot wait either, the array is leaked and counted, and the error says why: EBUSY for
 *   a stream that is being captured (unless FLETCHING_CAPTURE_KEEP), ECHILD in a child of fork.
 * - An array of a device type without a runtime, and no stream: it is released at once.
 *
 * An event whose state the driver does not report does not count for passed, however often it is
 * asked: see FletchingPendingReleases. When the driver says that the device or the context is lost,
 * nothing reads the array any more. When the process exits, what is still pending is left alone.
 *
 * The library that this is compiled into stays loaded from the first call on, because a thread of
 * it runs: dlclose does nothing then.
 *
 * EINVAL for NULL and for a released array, of which there is nothing to take. */
FLETCHING_EXPORT int FletchingDeviceArrayReleaseAfter(struct ArrowDeviceArray* array,
                                                      struct FletchingStream stream, int on_capture,
                                                      struct FletchingMessage* message);

/** Counts of the arrays that ReleaseAfter has taken, and of events in a child of fork. */
struct FletchingReleaseCounts {
  int64_t pending;          /* arrays whose stream has not reached their point yet */
  int64_t refused;          /* of these, those that the driver last said nothing about */
  int64_t running;          /* arrays whose release callback is due, or has not returned */
  int64_t leaked;           /* arrays that could neither be deferred nor waited for */
  int64_t inherited_events; /* left alone by a release in a child of fork */
};

/** As of now, in this process. `last_refusal`, which may be NULL, becomes the driver's newest error
 * about an event; empty when there was none. Starts no thread. */
FLETCHING_EXPORT void FletchingPendingReleases(struct FletchingReleaseCounts* counts,
                                               struct FletchingMessage* last_refusal);

/** An array whose stream has passed. */
struct FletchingRelease;

/** Lets `start` say where release callbacks run: it is called on a thread of the core, must not
 * block, and lets FletchingReleaseRun be called once, soon, on another thread. It returns 0, or
 * another number when it cannot: then a thread of the core runs it. NULL: as it was at first. Set
 * it before the first release. */
FLETCHING_EXPORT void FletchingSetReleaseStarter(int (*start)(struct FletchingRelease* release));

/** Destroys the event and calls the release callback. */
FLETCHING_EXPORT void FletchingReleaseRun(struct FletchingRelease* release);

/* --- Streams --- */

/** Blocks until the stream has nothing left to do. */
FLETCHING_EXPORT int FletchingStreamSynchronize(struct FletchingStream stream,
                                                struct FletchingMessage* message);

/** Lets `stream` wait for what is on `other` now, and returns while that is pending. Both are of
 * one runtime. */
FLETCHING_EXPORT int FletchingStreamWaitFor(struct FletchingStream stream,
                                            struct FletchingStream other,
                                            struct FletchingMessage* message);

/** The context or device that is current for the calling thread, for FletchingStream.context: of
 * CUDA the CUcontext; NULL for none, and where that does not matter. Loads the library. */
FLETCHING_EXPORT void* FletchingCurrentContext(int32_t runtime);

/** The runtime of a device type, FLETCHING_RUNTIME_NONE where there is none. */
FLETCHING_EXPORT int32_t FletchingRuntimeOf(ArrowDeviceType device_type);

/* --- Waiters --- */

/** Registers how to wait on the events of a device type, for every call of this core. *waiter is
 * copied; its context has to outlive every call. One that was there is replaced; calls that have
 * begun finish with it. EINVAL for a device type whose events the core waits on itself, and for a
 * waiter without any function. */
FLETCHING_EXPORT int FletchingRegisterWaiter(ArrowDeviceType device_type,
                                             const struct FletchingWaiter* waiter,
                                             struct FletchingMessage* message);

/** Removes the waiter of a device type. 1 when there was one, else 0. */
FLETCHING_EXPORT int FletchingUnregisterWaiter(ArrowDeviceType device_type);

/** Whether a waiter is registered for the device type: 1 or 0. */
FLETCHING_EXPORT int FletchingHasWaiter(ArrowDeviceType device_type);

#ifdef __cplusplus
}
#endif

#endif /* FLETCHING_EVENTS_H */
