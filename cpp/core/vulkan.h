// SPDX-License-Identifier: Apache-2.0
//
// Waits on a Vulkan event, which needs more information than the interface provides.
#ifndef FLETCHING_CORE_VULKAN_H
#define FLETCHING_CORE_VULKAN_H

#include "runtime.h"
#include "tables/vulkan.h"

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
    return fail(failure, EINVAL, "WaitContext.device: NULL: expected the producer's VkDevice");
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
         fail(failure, ENOSYS, "WaitContext.get_device_proc_addr: no function %s", name);
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
                "wait_on: command buffer is NULL: expected a VkCommandBuffer that is being "
                "recorded, because a VkQueue cannot wait for a VkEvent");
  }
  if (context->producer_queue == NULL || context->queue != context->producer_queue) {
    return fail(
        failure, ENOTSUP,
        "wait_on: WaitContext.queue: expected the producer's VkQueue, because a VkEvent orders "
        "commands of one queue only; hint: submit to that queue and set it, or call synchronize");
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

static const struct runtime vulkan_runtime = {
    .name = "Vulkan",
    .no_record =
        "not supported by Vulkan: a VkEvent is set by a command buffer, which the caller records",
    .instead_of_wait =
        "VkEvent without its VkDevice and VkQueue; hint: pass a vulkan::WaitContext, or register a "
        "waiter",
};

#endif  // FLETCHING_CORE_VULKAN_H
