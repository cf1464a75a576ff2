/* Handles of the vulkan backend that a consumer needs in addition to the device interface.
 *
 * This backend uses a single VkDevice and VkQueue, because a VkEvent orders commands of one VkQueue
 * only. ArrowArray.buffers contains VkBuffers, whose memory is mapped on the host.
 * ArrowDeviceArray.sync_event is the address of a VkEvent. The data is visible to the host when
 * vkGetEventStatus returns VK_EVENT_SET; a consumer that reads on the device must add a memory
 * barrier to its vkCmdWaitEvents.
 *
 * The handles are valid until the process ends.
 */
#ifndef FLETCHING_PRODUCER_VULKAN_HANDLES_H
#define FLETCHING_PRODUCER_VULKAN_HANDLES_H

#include "producer.h"

#ifdef __cplusplus
extern "C" {
#endif

struct FletchingProducerVulkan {
  void* instance;        /* VkInstance */
  void* physical_device; /* VkPhysicalDevice; device_id is its index in the instance */
  void* device;          /* VkDevice */
  /* VkQueue. A queue is not thread-safe: a caller that submits to it must prevent concurrent use
   * by the producer. */
  void* queue;
  uint32_t queue_family;
  /* VkPipelineStageFlags that set the events: the srcStageMask of vkCmdWaitEvents. */
  uint32_t set_stages;
  /* PFN_vkGetDeviceProcAddr. Its vkCmdWaitEvents records the wait with the producer before it
   * calls the driver; otherwise FletchingProducerQueueRead cannot detect that the queue has
   * waited. */
  void (*(*get_device_proc_addr)(void* device, const char* name))(void);
};

/* ENODEV: the device is absent; the message has the reason. EINVAL: `handles` is NULL. */
FLETCHING_PRODUCER_EXPORT int FletchingProducerVulkanHandles(
    struct FletchingProducerVulkan* handles, struct FletchingMessage* message);

#ifdef __cplusplus
}
#endif

#endif /* FLETCHING_PRODUCER_VULKAN_HANDLES_H */
