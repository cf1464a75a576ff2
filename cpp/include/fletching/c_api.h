// SPDX-License-Identifier: Apache-2.0
//
// The C ABI of libfletching: what a program in C, or in any language that calls C, needs in
// addition to the structs themselves. C99 and C++.
//
// Names: the object, then the verb. Every symbol of the library begins with Fletching, so this
// header can be included together with arrow/c/helpers.h and nanoarrow.h, which both define
// ArrowArrayMove.
//
// Threads: every function may be called from any thread; one struct is used by one thread at a
// time.
//
// Errors: a function that can fail returns 0 or an errno value and writes a FletchingMessage.
// Nothing throws.
#ifndef FLETCHING_C_API_H
#define FLETCHING_C_API_H

#include "fletching/abi.h"
#include "fletching/message.h"
#include "fletching/waiter.h"

#if defined(_WIN32) && defined(FLETCHING_BUILDING_SHARED)
#define FLETCHING_EXPORT __declspec(dllexport)
#elif defined(_WIN32)
#define FLETCHING_EXPORT __declspec(dllimport)
#else
#define FLETCHING_EXPORT __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/// The version of the library that is loaded: "0.1.0". Lives as long as the library.
FLETCHING_EXPORT const char* FletchingVersion(void);

// --- Ownership ---
//
// The same four functions for each of the five structs that have a release callback. The caller
// that holds a struct whose `release` is not NULL owns what it points to, and releases it once (C
// Data Interface, "Memory management"). Children are released by their parent, unless they were
// moved out.
//
// ...Init: writes zero to every byte. The struct is then released, as a slot that a producer fills
// has to be. Nothing that was in it is released or read.
//
// ...Move: copies *source, bit by bit, to *target, and marks *source as released; its other bytes
// stay. *target is overwritten and not released first. Moving a struct to itself does nothing.
// What its pointers point to, the sync event included, stays at its address. To move a child out
// of its parent, *source is the child.
//
// ...Release: marks the struct as released, moves it to the stack and calls the release callback
// there. So the callback may free the memory of the struct, and may forget to mark it. NULL, or a
// struct that is released already: nothing is done.
//
// ...IsReleased: 1 when there is nothing to release, for NULL as well; else 0.

FLETCHING_EXPORT void FletchingSchemaInit(struct ArrowSchema* schema);
FLETCHING_EXPORT void FletchingSchemaMove(struct ArrowSchema* source, struct ArrowSchema* target);
FLETCHING_EXPORT void FletchingSchemaRelease(struct ArrowSchema* schema);
FLETCHING_EXPORT int FletchingSchemaIsReleased(const struct ArrowSchema* schema);

FLETCHING_EXPORT void FletchingArrayInit(struct ArrowArray* array);
FLETCHING_EXPORT void FletchingArrayMove(struct ArrowArray* source, struct ArrowArray* target);
FLETCHING_EXPORT void FletchingArrayRelease(struct ArrowArray* array);
FLETCHING_EXPORT int FletchingArrayIsReleased(const struct ArrowArray* array);

FLETCHING_EXPORT void FletchingDeviceArrayInit(struct ArrowDeviceArray* array);
FLETCHING_EXPORT void FletchingDeviceArrayMove(struct ArrowDeviceArray* source,
                                               struct ArrowDeviceArray* target);
FLETCHING_EXPORT void FletchingDeviceArrayRelease(struct ArrowDeviceArray* array);
FLETCHING_EXPORT int FletchingDeviceArrayIsReleased(const struct ArrowDeviceArray* array);

FLETCHING_EXPORT void FletchingArrayStreamInit(struct ArrowArrayStream* stream);
FLETCHING_EXPORT void FletchingArrayStreamMove(struct ArrowArrayStream* source,
                                               struct ArrowArrayStream* target);
FLETCHING_EXPORT void FletchingArrayStreamRelease(struct ArrowArrayStream* stream);
FLETCHING_EXPORT int FletchingArrayStreamIsReleased(const struct ArrowArrayStream* stream);

FLETCHING_EXPORT void FletchingDeviceArrayStreamInit(struct ArrowDeviceArrayStream* stream);
FLETCHING_EXPORT void FletchingDeviceArrayStreamMove(struct ArrowDeviceArrayStream* source,
                                                     struct ArrowDeviceArrayStream* target);
FLETCHING_EXPORT void FletchingDeviceArrayStreamRelease(struct ArrowDeviceArrayStream* stream);
FLETCHING_EXPORT int FletchingDeviceArrayStreamIsReleased(
    const struct ArrowDeviceArrayStream* stream);

// --- Events (C Device Data Interface, "Synchronization Event Types") ---
//
// sync_event is the producer's, and the consumer waits on it before it reads a buffer. Whose
// runtime is called follows from the device type; its library is loaded by the first call that
// needs it. CUDA, HIP and OpenCL are known here; Vulkan has operations of its own below; every
// other device type needs a waiter. A NULL event is nothing to wait for; one that there is no way
// to wait on is an error, never skipped.
//
// Errors of all of them: ENOENT when the library of the runtime is not found, ENOSYS when it lacks
// a function, ENOTSUP when the runtime does not support the operation, EINVAL for a NULL or
// released array and for what cannot be an event, EIO for what else the runtime reports, whose own
// name of it is in the message; EBUSY for a stream that is being captured into a CUDA or HIP graph,
// and the capture continues; ENOMEM; what a waiter returns. `message` may be NULL, and is empty
// after a success.
//
// `stream` is the CUstream, cudaStream_t, hipStream_t or cl_command_queue, or what the waiter of
// another device type accepts. CUDA and HIP have default streams: NULL and 1 are the legacy one, 2
// is the calling thread's.

/// Blocks the calling thread until the event has happened. The array stays the caller's.
FLETCHING_EXPORT int FletchingDeviceArraySynchronize(const struct ArrowDeviceArray* array,
                                                     struct FletchingMessage* message);

/// Lets what is enqueued on the stream from now on wait for the event, and returns while the event
/// is still pending. The array stays the caller's.
FLETCHING_EXPORT int FletchingDeviceArrayWaitOn(const struct ArrowDeviceArray* array, void* stream,
                                                struct FletchingMessage* message);

/// Sets *ready to 1 when the event has happened, else to 0, after an error too. Does not block.
FLETCHING_EXPORT int FletchingDeviceArrayReady(const struct ArrowDeviceArray* array, int* ready,
                                               struct FletchingMessage* message);

// The same three for Vulkan, where a VkEvent alone is not enough: the interface does not hand over
// what it belongs to, so the producer has to pass it separately.

/// What a wait on a VkEvent needs. Zero it before it is filled, so that what a later version adds
/// is zero too.
///
/// Ownership: the caller's, and so is what it points to. A call reads it and keeps nothing of it;
/// the device has to live during the call, and as long as a command buffer with the wait is
/// pending.
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

/// Blocks the calling thread until the event has happened. Vulkan has no host wait for a VkEvent:
/// it is asked again and again, with sleeps of up to a millisecond in between. The event must not
/// be one that only the device can use. The array stays the caller's.
///
/// Errors: as above; EINVAL for a NULL context, one without a device, and an array that is not of
/// Vulkan.
FLETCHING_EXPORT int FletchingDeviceArraySynchronizeVulkan(
    const struct ArrowDeviceArray* array, const struct FletchingVulkanWaitContext* context,
    struct FletchingMessage* message);

/// Records a wait for the event into `command_buffer`, a VkCommandBuffer in the recording state and
/// outside of a render pass: commands behind it see what was written before the event. It does not
/// block. The array, and the event with it, has to live until the command buffer is done.
///
/// Errors: as of SynchronizeVulkan; EINVAL for a NULL command buffer; ENOTSUP unless `queue` is
/// `producer_queue`, since a VkEvent orders the commands of one queue only. Vulkan asks that the
/// caller has synchronized access to the command buffer.
FLETCHING_EXPORT int FletchingDeviceArrayWaitOnVulkan(
    const struct ArrowDeviceArray* array, const struct FletchingVulkanWaitContext* context,
    void* command_buffer, struct FletchingMessage* message);

/// Sets *ready to 1 when the event has happened, else to 0, after an error too. Does not block. The
/// event must not be one that only the device can use. Errors: as of SynchronizeVulkan.
FLETCHING_EXPORT int FletchingDeviceArrayReadyVulkan(
    const struct ArrowDeviceArray* array, const struct FletchingVulkanWaitContext* context,
    int* ready, struct FletchingMessage* message);

// What a producer does, and a consumer that still reads.

/// For a producer: sets a sync_event that happens when everything is done that is on the stream
/// now. CUDA, HIP and OpenCL.
///
/// The array is alive, has its device type and device id, and no event. The event lives at one
/// address until the array, and the last child that was moved out of it, is released. EBUSY for a
/// stream that is being captured into a CUDA or HIP graph. After an error the array is as it was.
FLETCHING_EXPORT int FletchingDeviceArrayExportWithEvent(struct ArrowDeviceArray* array,
                                                         void* stream,
                                                         struct FletchingMessage* message);

/// For a consumer whose own work still reads the buffers: releases the array when everything is
/// done that is on the stream now. CUDA, HIP and OpenCL.
///
/// Returns at once, and the array is released for the caller; its release callback runs later, on
/// a thread of this library. What is pending when the process exits is not released. EBUSY for a
/// stream that is being captured, ECHILD in a child of fork. After an error the array is as it was,
/// and the caller releases it after a wait for the stream.
FLETCHING_EXPORT int FletchingDeviceArrayReleaseAfter(struct ArrowDeviceArray* array, void* stream,
                                                      struct FletchingMessage* message);

/// Registers how to wait on the events of a device type, for every call of this library in the
/// process. *waiter is copied; its context has to outlive every call. One that was there is
/// replaced. EINVAL for a device type that is known here, and for a waiter without any function.
///
/// A program that also uses the C++ headers has a registry of its own in there.
FLETCHING_EXPORT int FletchingRegisterWaiter(ArrowDeviceType device_type,
                                             const struct FletchingWaiter* waiter,
                                             struct FletchingMessage* message);

/// Removes the waiter of a device type. 1 when there was one, else 0.
FLETCHING_EXPORT int FletchingUnregisterWaiter(ArrowDeviceType device_type);

// --- Which devices are there ---
//
// A report has one entry for each device type that is known (docs/reference/devices.md), by number.
// To make it, the libraries of CUDA, HIP, OpenCL and Vulkan are loaded as the operations above load
// them, and asked for their devices. No context is created, and no device is opened; a Vulkan
// instance is, and is destroyed again.

#define FLETCHING_PRESENCE_ABSENT 0
#define FLETCHING_PRESENCE_REAL 1
#define FLETCHING_PRESENCE_UNKNOWN 2 /* there is no library that could be asked */

struct FletchingFoundDevice {
  int64_t id;       /* CUDA and HIP: the device_id of an array. OpenCL and Vulkan: the number in
                       the list of the drivers; what device_id counts there is the producer's */
  const char* name; /* the vendor's, UTF-8 */
};

// The devices of one device type. No text is NULL: "" means none.
struct FletchingDeviceReportEntry {
  ArrowDeviceType device_type;
  int32_t presence;    /* FLETCHING_PRESENCE_... */
  const char* name;    /* "cuda_host" */
  const char* runtime; /* "CUDA driver API" */
  const char* library; /* the name under which the library was loaded, "libcuda.so.1" */
  const char* version; /* of the runtime, "CUDA 13.0" */
  const char* reason;  /* why it is absent or unknown, by library name and error text */
  int64_t n_devices;   /* 0 unless it is there */
  const struct FletchingFoundDevice* devices;
};

struct FletchingDeviceReport;

/// Looks what is there now. *report is the caller's until FletchingDeviceReportDestroy, and NULL
/// after an error: EINVAL for a NULL `report`, ENOMEM. That a device is absent is none.
FLETCHING_EXPORT int FletchingDeviceReportCreate(struct FletchingDeviceReport** report,
                                                 struct FletchingMessage* message);

/// How many entries there are; 0 for NULL.
FLETCHING_EXPORT int64_t FletchingDeviceReportCount(const struct FletchingDeviceReport* report);

/// One entry, which lives as long as the report, and all that it points to. NULL for an index that
/// is not below the count.
FLETCHING_EXPORT const struct FletchingDeviceReportEntry* FletchingDeviceReportGet(
    const struct FletchingDeviceReport* report, int64_t index);

/// NULL does nothing.
FLETCHING_EXPORT void FletchingDeviceReportDestroy(struct FletchingDeviceReport* report);

#ifdef __cplusplus
}
#endif

#endif  // FLETCHING_C_API_H
