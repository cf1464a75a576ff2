// SPDX-License-Identifier: Apache-2.0
//
// Vulkan structs and constants that only the device report needs. Declared here, so that the report
// does not depend on the build machine's headers; cpp/tests/vendor compares them with the vendor's.
#ifndef FLETCHING_CORE_VULKAN_STRUCTS_H
#define FLETCHING_CORE_VULKAN_STRUCTS_H

#include <stdint.h>

#define FLETCHING_VULKAN_INSTANCE_CREATE_INFO 1
#define FLETCHING_VULKAN_INCOMPLETE 5

struct vulkan_instance_info {
  int32_t structure_type;
  const void* next;
  uint32_t flags;
  const void* application;
  uint32_t layer_count;
  const char* const* layers;
  uint32_t extension_count;
  const char* const* extensions;
};

// The first members of VkPhysicalDeviceProperties, followed by room for the others.
struct vulkan_device_properties {
  uint32_t api_version;
  uint32_t driver_version;
  uint32_t vendor;
  uint32_t device;
  uint32_t type;
  char name[256];
  uint64_t rest[512];
};

#endif  // FLETCHING_CORE_VULKAN_STRUCTS_H
