// SPDX-License-Identifier: Apache-2.0
//
// Lists the CUDA devices.
#ifndef FLETCHING_CORE_DEVICES_CUDA_H
#define FLETCHING_CORE_DEVICES_CUDA_H

#include "../cuda.h"
#include "found.h"

static void set_cuda_version(struct found_devices* found) {
  struct failure failure;
  char text[MOST_NAME];
  int32_t version = 0;
  no_failure(&failure);
  (void)CUDA_CALL(cuDriverGetVersion, (&version), &failure);
  (void)snprintf(text, sizeof text, "CUDA %d.%d", version / 1000, version % 1000 / 10);
  set_text(found->version, text, &failure);
}

static bool add_cuda_device(struct found_devices* found, int32_t ordinal) {
  CUdevice device = 0;
  int32_t has_managed_memory = 0;
  char name[MOST_NAME] = "";
  struct failure failure;
  no_failure(&failure);
  if (!CUDA_CALL(cuDeviceGet, (&device, ordinal), &found->failure) ||
      !CUDA_CALL(cuDeviceGetAttribute,
                 (&has_managed_memory, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, device),
                 &found->failure)) {
    return false;
  }
  struct found_device* added = &found->devices[found->n_devices++];
  added->id = ordinal;
  added->has_managed_memory = has_managed_memory != 0;
  (void)CUDA_CALL(cuDeviceGetName, (name, sizeof name - 1, device), &failure);
  set_text(added->name, name, &failure);
  return true;
}

static void find_cuda_devices(struct found_devices* found) {
  int32_t count = 0;
  if (!load(&cuda_library, &found->failure)) return;
  found->library = cuda_library.found;
  if (!CUDA_HAS(cuDeviceGetName, &found->failure) ||
      !CUDA_HAS(cuDeviceGetAttribute, &found->failure)) {
    return;
  }
  set_cuda_version(found);
  if (!initialize(&cuda_parts, &found->failure) ||
      !CUDA_CALL(cuDeviceGetCount, (&count), &found->failure) || !make_room(found, count)) {
    return;
  }
  for (int32_t ordinal = 0; ordinal < count && add_cuda_device(found, ordinal); ++ordinal) {
  }
}

#endif  // FLETCHING_CORE_DEVICES_CUDA_H
