// SPDX-License-Identifier: Apache-2.0
//
// Lists the HIP devices.
#ifndef FLETCHING_CORE_DEVICES_HIP_H
#define FLETCHING_CORE_DEVICES_HIP_H

#include "../hip.h"
#include "found.h"

static void set_hip_version(struct found_devices* found) {
  struct failure failure;
  char text[MOST_NAME];
  int32_t version = 0;
  no_failure(&failure);
  (void)HIP_CALL(hipRuntimeGetVersion, (&version), &failure);
  (void)snprintf(text, sizeof text, "HIP %d.%d.%d", version / 10000000, version / 100000 % 100,
                 version % 100000);
  set_text(found->version, text, &failure);
}

static bool add_hip_device(struct found_devices* found, int32_t ordinal) {
  hipDevice_t device = 0;
  char name[MOST_NAME] = "";
  struct failure failure;
  no_failure(&failure);
  if (!HIP_CALL(hipDeviceGet, (&device, ordinal), &found->failure)) return false;
  struct found_device* added = &found->devices[found->n_devices++];
  added->id = ordinal;
  (void)HIP_CALL(hipDeviceGetName, (name, sizeof name - 1, device), &failure);
  set_text(added->name, name, &failure);
  return true;
}

static void find_hip_devices(struct found_devices* found) {
  int32_t count = 0;
  if (!load(&hip_library, &found->failure)) return;
  found->library = hip_library.found;
  if (!HIP_HAS(hipDeviceGetName, &found->failure) || !initialize(&hip_parts, &found->failure)) {
    return;
  }
  set_hip_version(found);
  if (!HIP_CALL(hipGetDeviceCount, (&count), &found->failure) || !make_room(found, count)) return;
  for (int32_t ordinal = 0; ordinal < count && add_hip_device(found, ordinal); ++ordinal) {
  }
}

#endif  // FLETCHING_CORE_DEVICES_HIP_H
