// SPDX-License-Identifier: Apache-2.0
//
// Lists the OpenCL devices of all drivers.
#ifndef FLETCHING_CORE_DEVICES_OPENCL_H
#define FLETCHING_CORE_DEVICES_OPENCL_H

#include "../opencl.h"
#include "found.h"

static void get_opencl_text(cl_device_id device, cl_uint what, char text[MOST_NAME]) {
  char raw[MOST_NAME] = "";
  struct failure failure;
  no_failure(&failure);
  (void)OPENCL_CALL(clGetDeviceInfo, (device, what, sizeof raw - 1, raw, NULL), &failure);
  set_text(text, raw, &failure);
}

static void add_opencl_device(struct found_devices* found, cl_device_id device) {
  struct found_device* added = &found->devices[found->n_devices];
  if (found->version[0] == '\0') {
    get_opencl_text(device, CL_DEVICE_VERSION, found->version);
  }
  get_opencl_text(device, CL_DEVICE_NAME, added->name);
  added->id = found->n_devices++;
}

// Adds the devices of one driver. A driver without devices is not an error.
static bool add_opencl_platform(struct found_devices* found, cl_platform_id platform) {
  struct failure* failure = &found->failure;
  cl_uint count = 0;
  if (!OPENCL_HAS(clGetDeviceIDs, failure)) return false;
  const cl_int result = cl.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, NULL, &count);
  if (result == CL_DEVICE_NOT_FOUND || (result == CL_SUCCESS && count == 0)) return true;
  if (!opencl_check("clGetDeviceIDs", result, failure) || !make_room(found, count)) return false;
  cl_device_id* devices = calloc(count, sizeof *devices);
  bool is_listed = devices != NULL || no_memory(failure);
  is_listed =
      is_listed &&
      OPENCL_CALL(clGetDeviceIDs, (platform, CL_DEVICE_TYPE_ALL, count, devices, NULL), failure);
  for (cl_uint i = 0; is_listed && i < count; ++i) {
    if (devices[i] != NULL) add_opencl_device(found, devices[i]);  // a device may be gone
  }
  free(devices);
  return is_listed;
}

static bool list_opencl_platforms(struct found_devices* found, cl_uint count) {
  cl_platform_id* platforms = calloc(count, sizeof *platforms);
  if (platforms == NULL) return no_memory(&found->failure);
  struct failure* failure = &found->failure;
  struct failure first;
  no_failure(&first);
  bool goes_on = OPENCL_CALL(clGetPlatformIDs, (count, platforms, NULL), failure);
  for (cl_uint i = 0; goes_on && i < count; ++i) {
    if (platforms[i] == NULL || add_opencl_platform(found, platforms[i])) continue;
    goes_on = failure->code != ENOMEM;
    if (goes_on && first.code == 0) first = *failure;
    if (goes_on) no_failure(failure);
  }
  if (failure->code == 0) *failure = first;
  free(platforms);
  return failure->code == 0;
}

static void find_opencl_devices(struct found_devices* found) {
  const cl_int no_platform = -1001;  // CL_PLATFORM_NOT_FOUND_KHR
  struct failure* failure = &found->failure;
  cl_uint count = 0;
  if (!load(&opencl_library, failure)) return;
  found->library = opencl_library.found;
  if (!OPENCL_HAS(clGetPlatformIDs, failure) || !OPENCL_HAS(clGetDeviceIDs, failure) ||
      !OPENCL_HAS(clGetDeviceInfo, failure)) {
    return;
  }
  const cl_int result = cl.clGetPlatformIDs(0, NULL, &count);
  if (result == no_platform || (result == CL_SUCCESS && count == 0)) {
    (void)fail(failure, ENOENT,
               "OpenCL: %s is loaded, but no driver is registered; hint: install one, for example "
               "pocl-opencl-icd",
               found->library);
    return;
  }
  if (!opencl_check("clGetPlatformIDs", result, failure) || list_opencl_platforms(found, count)) {
    return;
  }
  // One failing driver does not hide the devices of another.
  if (found->n_devices > 0 && failure->code != ENOMEM) no_failure(failure);
}

#endif  // FLETCHING_CORE_DEVICES_OPENCL_H
