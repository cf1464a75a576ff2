// SPDX-License-Identifier: Apache-2.0
//
// The runtimes by number. A new runtime needs an entry in spec/runtimes.yaml, a header with its
// functions, and a place in the list below.
#ifndef FLETCHING_CORE_RUNTIMES_H
#define FLETCHING_CORE_RUNTIMES_H

#include "cuda.h"
#include "hip.h"
#include "opencl.h"
#include "tables/devices.h"
#include "vulkan.h"

static const struct runtime no_runtime = {
    .no_record = "no runtime that records events",
};

static const struct runtime sycl_runtime = {
    .name = "SYCL",
    .no_record = "not supported for SYCL: a sycl::event is a C++ object of the SYCL implementation",
};

static const struct runtime metal_runtime = {
    .name = "Metal",
    .no_record =
        "not supported by Metal: an MTLEvent is signaled by a command buffer, which the caller "
        "encodes",
};

static const struct runtime* const runtimes[] = {
    [FLETCHING_RUNTIME_NONE] = &no_runtime,       [FLETCHING_RUNTIME_CUDA] = &cuda_runtime,
    [FLETCHING_RUNTIME_HIP] = &hip_runtime,       [FLETCHING_RUNTIME_OPENCL] = &opencl_runtime,
    [FLETCHING_RUNTIME_VULKAN] = &vulkan_runtime, [FLETCHING_RUNTIME_SYCL] = &sycl_runtime,
    [FLETCHING_RUNTIME_METAL] = &metal_runtime,
};

static const struct runtime* runtime_of(ArrowDeviceType type) {
  return runtimes[device_runtime(type)];
}

// Returns NULL for an unknown number.
static const struct runtime* numbered_runtime(int32_t number) {
  const bool is_known = number >= 0 && (size_t)number < sizeof runtimes / sizeof runtimes[0];
  return is_known ? runtimes[number] : NULL;
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
