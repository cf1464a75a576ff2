// SPDX-License-Identifier: Apache-2.0
//
// Lists the Vulkan devices with a temporary instance.
#ifndef FLETCHING_CORE_DEVICES_VULKAN_H
#define FLETCHING_CORE_DEVICES_VULKAN_H

#include "../vulkan.h"
#include "found.h"
#include "vulkan_structs.h"

typedef VkResult(FLETCHING_CALL* vulkan_enumerate_version)(uint32_t* version);
typedef VkResult(FLETCHING_CALL* vulkan_create_instance)(const struct vulkan_instance_info* info,
                                                         const void* allocator,
                                                         VkInstance* instance);
typedef void(FLETCHING_CALL* vulkan_destroy_instance)(VkInstance instance, const void* allocator);
typedef VkResult(FLETCHING_CALL* vulkan_enumerate_devices)(VkInstance instance, uint32_t* count,
                                                           VkPhysicalDevice* devices);
typedef void(FLETCHING_CALL* vulkan_get_properties)(VkPhysicalDevice device,
                                                    struct vulkan_device_properties* properties);

static bool vulkan_check(const char* function, VkResult result, struct failure* failure) {
  if (result == VK_SUCCESS) return true;
  return fail_with(failure, &(struct answer){.title = VULKAN_TITLE,
                                             .function = function,
                                             .result = result,
                                             .name = vulkan_status_name(result)});
}

// Returns NULL and sets the failure if the function is missing.
static any_function find_in_vulkan(VkInstance instance, const char* name, struct failure* failure) {
  const any_function found = vulkan.vkGetInstanceProcAddr(instance, name);
  (void)has_function(&vulkan_library, found != NULL, name, failure);
  return found;
}

static void set_vulkan_version(struct found_devices* found) {
  struct failure failure;
  char text[MOST_NAME];
  no_failure(&failure);
  uint32_t version = (uint32_t)1 << 22;  // for loaders before Vulkan 1.1, which cannot report it
  const vulkan_enumerate_version enumerate =
      (vulkan_enumerate_version)vulkan.vkGetInstanceProcAddr(NULL, "vkEnumerateInstanceVersion");
  if (enumerate != NULL) {
    (void)vulkan_check("vkEnumerateInstanceVersion", enumerate(&version), &failure);
  }
  (void)snprintf(text, sizeof text, "Vulkan %u.%u.%u", (unsigned)(version >> 22 & 0x7F),
                 (unsigned)(version >> 12 & 0x3FF), (unsigned)(version & 0xFFF));
  set_text(found->version, text, &failure);
}

static const char ENUMERATE_DEVICES[] = "vkEnumeratePhysicalDevices";

static void list_vulkan_devices(struct found_devices* found, VkInstance instance,
                                vulkan_enumerate_devices enumerate, VkPhysicalDevice* devices,
                                uint32_t room) {
  struct failure* failure = &found->failure;
  uint32_t count = room;
  const vulkan_get_properties get =
      (vulkan_get_properties)find_in_vulkan(instance, "vkGetPhysicalDeviceProperties", failure);
  if (get == NULL) return;
  const VkResult result = enumerate(instance, &count, devices);
  // Omits a device that was added in between.
  if (result != FLETCHING_VULKAN_INCOMPLETE && !vulkan_check(ENUMERATE_DEVICES, result, failure)) {
    return;
  }
  for (uint32_t i = 0; i < count && i < room; ++i) {
    struct vulkan_device_properties properties;
    memset(&properties, 0, sizeof properties);
    get(devices[i], &properties);
    properties.name[sizeof properties.name - 1] = '\0';
    struct found_device* added = &found->devices[found->n_devices++];
    added->id = i;
    copy_printable(added->name, sizeof added->name, properties.name);
  }
}

static void add_vulkan_devices(struct found_devices* found, VkInstance instance) {
  uint32_t count = 0;
  const vulkan_enumerate_devices enumerate =
      (vulkan_enumerate_devices)find_in_vulkan(instance, ENUMERATE_DEVICES, &found->failure);
  if (enumerate == NULL ||
      !vulkan_check(ENUMERATE_DEVICES, enumerate(instance, &count, NULL), &found->failure) ||
      count == 0 || !make_room(found, count)) {
    return;
  }
  VkPhysicalDevice* devices = calloc(count, sizeof *devices);
  if (devices != NULL) {
    list_vulkan_devices(found, instance, enumerate, devices, count);
  } else {
    (void)no_memory(&found->failure);
  }
  free(devices);
}

static void find_vulkan_devices(struct found_devices* found) {
  const struct vulkan_instance_info info = {.structure_type =
                                                FLETCHING_VULKAN_INSTANCE_CREATE_INFO};
  VkInstance instance = NULL;
  if (!load(&vulkan_library, &found->failure)) return;
  found->library = vulkan_library.found;
  if (!has_function(&vulkan_library, vulkan.vkGetInstanceProcAddr != NULL, "vkGetInstanceProcAddr",
                    &found->failure)) {
    return;
  }
  const vulkan_create_instance create =
      (vulkan_create_instance)find_in_vulkan(NULL, "vkCreateInstance", &found->failure);
  if (create == NULL) return;
  set_vulkan_version(found);
  if (vulkan_check("vkCreateInstance", create(&info, NULL, &instance), &found->failure)) {
    // Find it first, with one retry: without it the instance could not be destroyed.
    vulkan_destroy_instance destroy =
        (vulkan_destroy_instance)vulkan.vkGetInstanceProcAddr(instance, "vkDestroyInstance");
    if (destroy == NULL) {
      destroy =
          (vulkan_destroy_instance)find_in_vulkan(instance, "vkDestroyInstance", &found->failure);
    }
    if (destroy != NULL) {
      add_vulkan_devices(found, instance);
      destroy(instance, NULL);
    }
  }
  if (found->failure.code == EIO) {  // other errors have a hint or need none
    add_hint(&found->failure, "device report", "install a driver, for example mesa-vulkan-drivers");
  }
}

#endif  // FLETCHING_CORE_DEVICES_VULKAN_H
