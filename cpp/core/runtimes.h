// SPDX-License-Identifier: Apache-2.0
//
// The runtimes by device type. A new runtime needs an entry in spec/runtimes.yaml and a header with
// its functions.
#ifndef FLETCHING_CORE_RUNTIMES_H
#define FLETCHING_CORE_RUNTIMES_H

#include "tables/devices.h"
#include "tables/runtimes.h"

static const struct runtime* runtime_of(ArrowDeviceType type) {
  return numbered_runtime(device_runtime(type));
}

// Whether the core waits on events of this type without a registered waiter.
static bool has_own_waits(ArrowDeviceType type) { return runtime_of(type)->synchronize != NULL; }

// Name of a device type, for example "cuda_host" or "unknown(9999)".
struct device_label {
  char text[32];
};

static struct device_label label_of(ArrowDeviceType type) {
  struct device_label label;
  const char* name = device_name(type);
  if (name != NULL) {
    (void)snprintf(label.text, sizeof label.text, "%s", name);
  } else {
    (void)snprintf(label.text, sizeof label.text, "unknown(%d)", (int)type);
  }
  return label;
}

void* FletchingCurrentContext(int32_t runtime) {
  struct failure ignored;
  void* context = NULL;
  const struct runtime* found = numbered_runtime(runtime);
  no_failure(&ignored);
  if (found != NULL && found->get_current != NULL) (void)found->get_current(&context, &ignored);
  return context;
}

#endif  // FLETCHING_CORE_RUNTIMES_H
