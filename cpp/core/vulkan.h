// SPDX-License-Identifier: Apache-2.0
//
// Waits on a Vulkan event, which needs more information than the interface provides.
#ifndef FLETCHING_CORE_VULKAN_H
#define FLETCHING_CORE_VULKAN_H

#include "runtime.h"
#include "tables/vulkan.h"
#include "vulkan_structs.h"

static struct vulkan_functions vulkan;

static struct vendor_library vulkan_library = {
    .title = VULKAN_TITLE,
    .names = vulkan_library_names,
    .functions = vulkan_function_table,
    .n_functions = sizeof vulkan_function_table / sizeof vulkan_function_table[0],
    .table = &vulkan,
    .lock = LOCK_INIT,
};

typedef any_function(FLETCHING_CALL* vulkan_get_device_proc_addr)(VkDevice device,
                                                                  const char* name);
typedef VkResult(FLETCHING_CALL* vulkan_get_event_status)(VkDevice device, VkEvent event);
typedef void(FLETCHING_CALL* vulkan_cmd_wait_events)(
    VkCommandBuffer commands, uint32_t count, const VkEvent* events, VkFlags from_stages,
    VkFlags to_stages, uint32_t memory_count, const VkMemoryBarrier* memory, uint32_t buffer_count,
    const VkBufferMemoryBarrier* buffers, uint32_t image_count, const VkImageMemoryBarrier* images);

static bool vulkan_get_event(const struct FletchingEvent* event, VkEvent* handle,
                             struct failure* failure) {
  const uintptr_t lowest = 4096;  // lower addresses are never mapped
  const uintptr_t address = (uintptr_t)event->sync_event;
  if (address < lowest || address % _Alignof(VkEvent) != 0) {
    return fail(failure, EINVAL,
                "sync_event of vulkan: not the address of a handle: expected an aligned address; "
                "hint: pass the handle's address, not the handle");
  }
  memcpy(handle, event->sync_event, sizeof *handle);
  return *handle != 0 ||
         fail(failure, EINVAL, "sync_event of vulkan: the handle is NULL: expected an event");
}

// Finds a function of the device, or the loader's function, which dispatches on the device handle.
static bool vulkan_find(const struct FletchingVulkanWaitContext* context, const char* name,
                        any_function from_loader(void), any_function* found,
                        struct failure* failure) {
  if (context->device == NULL) {
    return fail(failure, EINVAL, "VkDevice is NULL: expected the producer's VkDevice");
  }
  if (context->get_device_proc_addr == NULL) {
    if (!load(&vulkan_library, failure)) return false;
    *found = from_loader();
    return has_function(&vulkan_library, *found != NULL, name, failure);
  }
  vulkan_get_device_proc_addr get = NULL;
  memcpy(&get, &context->get_device_proc_addr, sizeof get);
  *found = get(context->device, name);
  return *found != NULL ||
         fail(failure, ENOSYS,
              "vkGetDeviceProcAddr: no function %s: expected one of the producer's VkDevice", name);
}

static any_function loaded_get_event_status(void) { return (any_function)vulkan.vkGetEventStatus; }
static any_function loaded_cmd_wait_events(void) { return (any_function)vulkan.vkCmdWaitEvents; }

static bool vulkan_ask(VkResult answer, bool* is_done, struct failure* failure) {
  const enum event_state state = vulkan_event_state(answer);
  *is_done = state == EVENT_DONE;
  if (state != EVENT_FAILED) return true;
  return fail_with(failure, &(struct answer){.title = VULKAN_TITLE,
                                             .function = "vkGetEventStatus",
                                             .result = answer,
                                             .name = vulkan_status_name(answer)});
}

static bool vulkan_get_status(const struct FletchingEvent* event,
                              const struct FletchingVulkanWaitContext* context, VkEvent* handle,
                              vulkan_get_event_status* get_status, struct failure* failure) {
  any_function found = NULL;
  if (!vulkan_get_event(event, handle, failure) ||
      !vulkan_find(context, "vkGetEventStatus", loaded_get_event_status, &found, failure)) {
    return false;
  }
  *get_status = (vulkan_get_event_status)found;
  return true;
}

static bool vulkan_ready(const struct FletchingEvent* event,
                         const struct FletchingVulkanWaitContext* context, bool* is_done,
                         struct failure* failure) {
  VkEvent handle = 0;
  vulkan_get_event_status get_status = NULL;
  return vulkan_get_status(event, context, &handle, &get_status, failure) &&
         vulkan_ask(get_status(context->device, handle), is_done, failure);
}

// Polls with increasing sleeps, because Vulkan has no host wait for an event.
static bool vulkan_synchronize(const struct FletchingEvent* event,
                               const struct FletchingVulkanWaitContext* context,
                               struct failure* failure) {
  const int64_t longest = 1000000;
  VkEvent handle = 0;
  vulkan_get_event_status get_status = NULL;
  bool is_done = false;
  if (!vulkan_get_status(event, context, &handle, &get_status, failure)) return false;
  for (int64_t pause = 10000;; pause = pause * 2 < longest ? pause * 2 : longest) {
    if (!vulkan_ask(get_status(context->device, handle), &is_done, failure)) return false;
    if (is_done) return true;
    sleep_ns(pause);
  }
}

static bool vulkan_wait_on(const struct FletchingEvent* event,
                           const struct FletchingVulkanWaitContext* context, void* command_buffer,
                           struct failure* failure) {
  if (command_buffer == NULL) {
    return fail(failure, EINVAL,
                "command buffer is NULL: expected a VkCommandBuffer that is being "
                "recorded, because a VkQueue cannot wait for a VkEvent");
  }
  if (context->producer_queue == NULL || context->queue != context->producer_queue) {
    return fail(
        failure, ENOTSUP,
        "another VkQueue: expected the producer's VkQueue, because a VkEvent orders commands of "
        "one queue only; hint: submit to that queue, or wait on the host");
  }
  VkEvent handle = 0;
  any_function found = NULL;
  if (!vulkan_get_event(event, &handle, failure) ||
      !vulkan_find(context, "vkCmdWaitEvents", loaded_cmd_wait_events, &found, failure)) {
    return false;
  }
  const vulkan_cmd_wait_events wait = (vulkan_cmd_wait_events)found;
  const VkFlags stages =
      context->set_stages != 0 ? context->set_stages : VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
  const VkMemoryBarrier barrier = {
      .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
      .srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT,
      .dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT,
  };
  wait(command_buffer, 1, &handle, stages, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, 1, &barrier, 0, NULL,
       0, NULL);
  return true;
}

// --- The device report ---

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
    add_hint(&found->failure, "install a driver, for example mesa-vulkan-drivers");
  }
}

static const struct runtime vulkan_runtime = {
    .name = "Vulkan",
    .title = VULKAN_TITLE,
    .find_devices = find_vulkan_devices,
    .no_record =
        "not supported by Vulkan: a VkEvent is set by a command buffer, which the caller records",
    .instead_of_wait =
        "VkEvent without its VkDevice and VkQueue; hint: pass a Vulkan context, or register a "
        "waiter",
};

#endif  // FLETCHING_CORE_VULKAN_H
