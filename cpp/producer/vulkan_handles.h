/* What a consumer of arrays of the backend vulkan needs and the device interface does not hand
 * over.
 *
 * Everything of this backend belongs to one VkDevice and one VkQueue, because a VkEvent orders
 * commands of one VkQueue only. ArrowArray.buffers contains a VkBuffer, whose memory the host sees
 * as well. ArrowDeviceArray.sync_event is the address of a VkEvent. What was written is visible to
 * the host when vkGetEventStatus returns VK_EVENT_SET; a consumer that reads on the device adds a
 * memory barrier to its vkCmdWaitEvents.
 *
 * The handles live as long as the process.
 */
#ifndef FLETCHING_PRODUCER_VULKAN_HANDLES_H
#define FLETCHING_PRODUCER_VULKAN_HANDLES_H

#include "producer.h"

#ifdef __cplusplus
extern "C" {
#endif

struct FletchingProducerVulkan {
  void* instance;        /* VkInstance */
  void* physical_device; /* VkPhysicalDevice; device_id counts in the instance's list */
  void* device;          /* VkDevice */
  /* VkQueue. A caller that submits to it has to make sure that nothing else of the producer runs
   * meanwhile: a queue is not thread-safe. */
  void* queue;
  uint32_t queue_family;
  /* VkPipelineStageFlags with which events are set: the srcStageMask of vkCmdWaitEvents. */
  uint32_t set_stages;
  /* PFN_vkGetDeviceProcAddr. Its vkCmdWaitEvents takes notice of the wait before the driver gets
   * it; without that, FletchingProducerQueueRead does not know that the queue has waited. */
  void (*(*get_device_proc_addr)(void* device, const char* name))(void);
};

/* ENODEV: the device is absent, with the reason. EINVAL: `handles` is NULL. */
FLETCHING_PRODUCER_EXPORT int FletchingProducerVulkanHandles(
    struct FletchingProducerVulkan* handles, struct FletchingMessage* message);

#ifdef __cplusplus
}
#endif

#endif /* FLETCHING_PRODUCER_VULKAN_HANDLES_H */
