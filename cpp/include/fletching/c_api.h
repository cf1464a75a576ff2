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
#include "fletching/events.h"
#include "fletching/export.h"
#include "fletching/layout.h"
#include "fletching/message.h"
#include "fletching/structs.h"
#include "fletching/waiter.h"

#ifdef __cplusplus
extern "C" {
#endif

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
