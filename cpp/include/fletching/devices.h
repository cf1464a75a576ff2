/* SPDX-License-Identifier: Apache-2.0
 *
 * Device discovery. C99 and C++.
 *
 * A report has one entry for each known device type (docs/reference/devices.md), sorted by number.
 * Creating it loads the CUDA, HIP, OpenCL and Vulkan libraries, as the event operations do, and
 * queries them for their devices. It creates no context and opens no device. It creates a Vulkan
 * instance and destroys it.
 *
 * Threads: any thread may call every function; several threads may read a report. */
#ifndef FLETCHING_DEVICES_H
#define FLETCHING_DEVICES_H

#include <stdint.h>

#include "fletching/abi.h"
#include "fletching/export.h"
#include "fletching/message.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FLETCHING_PRESENCE_ABSENT 0
#define FLETCHING_PRESENCE_REAL 1
#define FLETCHING_PRESENCE_UNKNOWN 2 /* no library could be queried */

struct FletchingFoundDevice {
  /** CUDA and HIP: the device_id of an array. OpenCL and Vulkan: the index in the driver's list of
   * devices; the producer defines the meaning of device_id. */
  int64_t id;
  const char* name; /* the vendor's, UTF-8 */
};

/** The devices of one device type. Text fields are never NULL: "" means none. */
struct FletchingDeviceReportEntry {
  ArrowDeviceType device_type;
  int32_t presence;    /* FLETCHING_PRESENCE_... */
  const char* name;    /* "cuda_host" */
  const char* runtime; /* "CUDA driver API" */
  const char* library; /* the name under which the library was loaded, "libcuda.so.1" */
  const char* version; /* of the runtime, "CUDA 13.0" */
  const char* reason;  /* why it is absent or unknown, with library and error text */
  int64_t n_devices;   /* 0 unless present */
  const struct FletchingFoundDevice* devices;
};

struct FletchingDeviceReport;

/** Queries the devices. The caller owns *report until FletchingDeviceReportDestroy; NULL after an
 * error: EINVAL for a NULL `report`, ENOMEM. An absent device is not an error. */
FLETCHING_EXPORT int FletchingDeviceReportCreate(struct FletchingDeviceReport** report,
                                                 struct FletchingMessage* message);

/** The number of entries; 0 for NULL. */
FLETCHING_EXPORT int64_t FletchingDeviceReportCount(const struct FletchingDeviceReport* report);

/** Returns an entry, valid until the report is destroyed; NULL if the index is out of range. */
FLETCHING_EXPORT const struct FletchingDeviceReportEntry* FletchingDeviceReportGet(
    const struct FletchingDeviceReport* report, int64_t index);

/** Destroys the report. NULL does nothing. */
FLETCHING_EXPORT void FletchingDeviceReportDestroy(struct FletchingDeviceReport* report);

#ifdef __cplusplus
}
#endif

#endif /* FLETCHING_DEVICES_H */
