// SPDX-License-Identifier: Apache-2.0
//
// The Vulkan operations of fletching/c_api.h from C99, on any installed driver: rejected arguments,
// queries, and the recorded wait.
#include <errno.h>
#include <string.h>
#include <vulkan/vulkan.h>

#include "check.h"
#include "fletching/c_api.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

enum { kSkipped = 77 };  // ctest's skip code

static struct FletchingMessage message;

static int says(const char* part) {
  if (strstr(message.text, part) != NULL) return 1;
  fprintf(stderr, "the message is: %s\n", message.text);
  return 0;
}

static void release(struct ArrowArray* array) { array->release = NULL; }

static struct ArrowDeviceArray array_with(ArrowDeviceType device_type, void* sync_event) {
  struct ArrowDeviceArray array;
  FletchingDeviceArrayInit(&array);
  array.device_type = device_type;
  array.sync_event = sync_event;
  array.array.release = release;
  return array;
}

// --- Without a device ---

static void test_rejects_bad_arguments(void) {
  int object = 0;
  int event = 0;
  int ready = 5;
  void* sync_event[1] = {&event};  // the address of a handle that is not used
  struct FletchingVulkanWaitContext context = {0};
  struct ArrowDeviceArray array = array_with(ARROW_DEVICE_VULKAN, sync_event);
  struct ArrowDeviceArray cuda = array_with(ARROW_DEVICE_CUDA, sync_event);
  const struct ArrowDeviceArray nothing = array_with(ARROW_DEVICE_VULKAN, NULL);

  // The operations without a context name the missing one.
  CHECK(FletchingDeviceArraySynchronize(&array, &message) == ENOTSUP &&
        says("VkEvent without its VkDevice"));

  CHECK(FletchingDeviceArraySynchronizeVulkan(&array, NULL, &message) == EINVAL);
  CHECK(says("context: NULL"));
  CHECK(FletchingDeviceArrayWaitOnVulkan(&array, NULL, &object, NULL) == EINVAL);
  CHECK(FletchingDeviceArrayReadyVulkan(&array, NULL, &ready, NULL) == EINVAL && ready == 0);
  CHECK(FletchingDeviceArrayReadyVulkan(&array, &context, NULL, &message) == EINVAL);
  CHECK(says("ready: NULL: expected an address for the result"));

  CHECK(FletchingDeviceArraySynchronizeVulkan(&array, &context, &message) == EINVAL);
  CHECK(says("expected the producer's VkDevice"));
  ready = 5;
  CHECK(FletchingDeviceArrayReadyVulkan(&array, &context, &ready, &message) == EINVAL);
  CHECK(ready == 0 && says("expected the producer's VkDevice"));

  context.device = &object;
  CHECK(FletchingDeviceArraySynchronizeVulkan(&cuda, &context, &message) == EINVAL && says("cuda"));

  CHECK(FletchingDeviceArrayWaitOnVulkan(&array, &context, NULL, &message) == EINVAL);
  CHECK(says("VkCommandBuffer"));
  CHECK(FletchingDeviceArrayWaitOnVulkan(&array, &context, &object, &message) == ENOTSUP);
  context.producer_queue = &object;
  context.queue = &event;
  CHECK(FletchingDeviceArrayWaitOnVulkan(&array, &context, &object, &message) == ENOTSUP);
  CHECK(says("producer's VkQueue"));

  // A NULL event, and a released array whose event must not be read.
  CHECK(FletchingDeviceArraySynchronizeVulkan(&nothing, &context, &message) == 0);
  CHECK(message.text[0] == '\0');
  CHECK(FletchingDeviceArrayWaitOnVulkan(&nothing, &context, NULL, NULL) == 0);
  CHECK(FletchingDeviceArrayReadyVulkan(&nothing, &context, &ready, NULL) == 0 && ready == 1);
  FletchingDeviceArrayRelease(&array);
  CHECK(FletchingDeviceArraySynchronizeVulkan(&array, &context, &message) == EINVAL);
  CHECK(says("released"));
  CHECK(FletchingDeviceArrayWaitOnVulkan(NULL, &context, &object, NULL) == EINVAL);
}

// --- On a device ---

static VkInstance instance;
static VkDevice device;
static VkQueue queue;
static VkCommandPool pool;

static int open_device(void) {
  const VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                         .apiVersion = VK_API_VERSION_1_1};
  const VkInstanceCreateInfo instance_info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                              .pApplicationInfo = &application};
  const float priority = 1;
  const VkDeviceQueueCreateInfo queue_info = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                              .queueCount = 1,
                                              .pQueuePriorities = &priority};
  const VkDeviceCreateInfo device_info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                          .queueCreateInfoCount = 1,
                                          .pQueueCreateInfos = &queue_info};
  const VkCommandPoolCreateInfo pool_info = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  VkPhysicalDevice physical;
  uint32_t count = 1;
  if (vkCreateInstance(&instance_info, NULL, &instance) != VK_SUCCESS) return 0;
  if (vkEnumeratePhysicalDevices(instance, &count, &physical) < 0 || count == 0) return 0;
  CHECK(vkCreateDevice(physical, &device_info, NULL, &device) == VK_SUCCESS);
  vkGetDeviceQueue(device, 0, 0, &queue);
  CHECK(vkCreateCommandPool(device, &pool_info, NULL, &pool) == VK_SUCCESS);
  return failures == 0;
}

static void close_device(void) {
  if (device != NULL) vkDestroyCommandPool(device, pool, NULL);
  if (device != NULL) vkDestroyDevice(device, NULL);
  if (instance != NULL) vkDestroyInstance(instance, NULL);
}

static VkEvent make_event(void) {
  const VkEventCreateInfo info = {.sType = VK_STRUCTURE_TYPE_EVENT_CREATE_INFO};
  VkEvent event = VK_NULL_HANDLE;
  CHECK(vkCreateEvent(device, &info, NULL, &event) == VK_SUCCESS);
  return event;
}

static VkCommandBuffer begin_commands(void) {
  const VkCommandBufferAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                            .commandPool = pool,
                                            .commandBufferCount = 1};
  const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  VkCommandBuffer commands = NULL;
  CHECK(vkAllocateCommandBuffers(device, &info, &commands) == VK_SUCCESS);
  CHECK(vkBeginCommandBuffer(commands, &begin) == VK_SUCCESS);
  return commands;
}

static void submit(VkCommandBuffer commands) {
  const VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                             .commandBufferCount = 1,
                             .pCommandBuffers = &commands};
  CHECK(vkEndCommandBuffer(commands) == VK_SUCCESS);
  CHECK(vkQueueSubmit(queue, 1, &info, VK_NULL_HANDLE) == VK_SUCCESS);
}

// Wraps the driver's functions and logs the recorded commands.
static struct {
  int waits;
  VkCommandBuffer commands;
  VkEvent event;
  VkPipelineStageFlags from_stages;
} seen;

static VKAPI_ATTR void VKAPI_CALL wait_events(
    VkCommandBuffer commands, uint32_t count, const VkEvent* events,
    VkPipelineStageFlags from_stages, VkPipelineStageFlags to_stages, uint32_t memory_count,
    const VkMemoryBarrier* memory, uint32_t buffer_count, const VkBufferMemoryBarrier* buffers,
    uint32_t image_count, const VkImageMemoryBarrier* images) {
  ++seen.waits;
  seen.commands = commands;
  seen.event = count == 1 ? events[0] : VK_NULL_HANDLE;
  seen.from_stages = from_stages;
  CHECK(memory_count == 1);
  vkCmdWaitEvents(commands, count, events, from_stages, to_stages, memory_count, memory,
                  buffer_count, buffers, image_count, images);
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL look_up(VkDevice of, const char* name) {
  if (of != device || strcmp(name, "vkGetEventStatus") == 0) return NULL;
  if (strcmp(name, "vkCmdWaitEvents") == 0) return (PFN_vkVoidFunction)wait_events;
  return vkGetDeviceProcAddr(of, name);
}

static void test_host_operations(void) {
  int ready = 5;
  VkEvent event = make_event();
  const struct ArrowDeviceArray array = array_with(ARROW_DEVICE_VULKAN, &event);
  struct FletchingVulkanWaitContext context = {0};
  context.device = device;
  CHECK(FletchingDeviceArrayReadyVulkan(&array, &context, &ready, &message) == 0 && ready == 0);
  CHECK(message.text[0] == '\0');
  CHECK(vkSetEvent(device, event) == VK_SUCCESS);
  CHECK(FletchingDeviceArraySynchronizeVulkan(&array, &context, NULL) == 0);
  CHECK(FletchingDeviceArrayReadyVulkan(&array, &context, &ready, NULL) == 0 && ready == 1);

  context.get_device_proc_addr = (PFN_vkVoidFunction)vkGetDeviceProcAddr;
  CHECK(FletchingDeviceArrayReadyVulkan(&array, &context, &ready, NULL) == 0 && ready == 1);
  context.get_device_proc_addr = (PFN_vkVoidFunction)look_up;
  CHECK(FletchingDeviceArrayReadyVulkan(&array, &context, &ready, &message) == ENOSYS);
  CHECK(ready == 0 && says("vkGetEventStatus"));
  vkDestroyEvent(device, event, NULL);
}

// The producer sets the first event. The consumer waits on it and sets the second one.
static void test_wait_on(void) {
  int ready = 5;
  VkEvent first = make_event();
  VkEvent second = make_event();
  const struct ArrowDeviceArray array = array_with(ARROW_DEVICE_VULKAN, &first);
  const struct ArrowDeviceArray behind = array_with(ARROW_DEVICE_VULKAN, &second);
  const struct FletchingVulkanWaitContext host = {.device = device};
  struct FletchingVulkanWaitContext context = {.device = device,
                                               .producer_queue = queue,
                                               .queue = queue,
                                               .set_stages = VK_PIPELINE_STAGE_TRANSFER_BIT};
  context.get_device_proc_addr = (PFN_vkVoidFunction)look_up;
  VkCommandBuffer sets = begin_commands();
  VkCommandBuffer waits = begin_commands();
  vkCmdSetEvent(sets, first, VK_PIPELINE_STAGE_TRANSFER_BIT);
  CHECK(FletchingDeviceArrayWaitOnVulkan(&array, &context, waits, &message) == 0);
  CHECK(message.text[0] == '\0');
  CHECK(seen.waits == 1 && seen.commands == waits && seen.event == first);
  CHECK(seen.from_stages == VK_PIPELINE_STAGE_TRANSFER_BIT);
  vkCmdSetEvent(waits, second, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT);
  CHECK(FletchingDeviceArrayReadyVulkan(&behind, &host, &ready, NULL) == 0 && ready == 0);
  submit(sets);
  submit(waits);
  CHECK(FletchingDeviceArraySynchronizeVulkan(&behind, &host, &message) == 0);
  CHECK(FletchingDeviceArrayReadyVulkan(&array, &host, &ready, NULL) == 0 && ready == 1);

  // A context without stages waits for all commands.
  VkCommandBuffer more = begin_commands();
  context.set_stages = 0;
  CHECK(FletchingDeviceArrayWaitOnVulkan(&array, &context, more, NULL) == 0);
  CHECK(seen.waits == 2 && seen.from_stages == VK_PIPELINE_STAGE_ALL_COMMANDS_BIT);
  context.get_device_proc_addr = NULL;
  CHECK(FletchingDeviceArrayWaitOnVulkan(&array, &context, more, NULL) == 0 && seen.waits == 2);
  CHECK(vkEndCommandBuffer(more) == VK_SUCCESS);
  CHECK(vkDeviceWaitIdle(device) == VK_SUCCESS);
  vkDestroyEvent(device, first, NULL);
  vkDestroyEvent(device, second, NULL);
}

int main(void) {
  test_rejects_bad_arguments();
#if defined(__SANITIZE_ADDRESS__)
  __lsan_disable();  // ignore leaks of the driver
#endif
  const int is_open = open_device();
#if defined(__SANITIZE_ADDRESS__)
  __lsan_enable();
#endif
  if (is_open) {
    test_host_operations();
    test_wait_on();
  }
  close_device();
  if (failures != 0) return 1;
  if (is_open) return 0;
  printf("skipped in part: there is no Vulkan device here\n");
  return kSkipped;
}
