// Uses Khronos' vulkan.h, with the producer's device and functions.
#define VK_NO_PROTOTYPES
#include "vulkan_handles.h"

#include <gtest/gtest.h>
#include <vulkan/vulkan.h>

#include <thread>

#include "consumers.hpp"

namespace {

FletchingProducerVulkan shared_handles() {
  FletchingProducerVulkan handles{};
  FletchingMessage message;
  EXPECT_EQ(FletchingProducerVulkanHandles(&handles, &message), 0) << message.text;
  return handles;
}

template <class Function>
Function find(const FletchingProducerVulkan& handles, const char* name) {
  auto found = reinterpret_cast<Function>(handles.get_device_proc_addr(handles.device, name));
  EXPECT_NE(found, nullptr) << name;
  return found;
}

VkResult event_status(void* event) {
  const FletchingProducerVulkan handles = shared_handles();
  const VkResult status = find<PFN_vkGetEventStatus>(handles, "vkGetEventStatus")(
      static_cast<VkDevice>(handles.device), *static_cast<VkEvent*>(event));
  EXPECT_TRUE(status == VK_EVENT_SET || status == VK_EVENT_RESET) << status;
  return status;
}

void wait_on(void* event, void* commands) {
  const FletchingProducerVulkan handles = shared_handles();
  const VkMemoryBarrier barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr,
                                VK_ACCESS_SHADER_WRITE_BIT, VK_ACCESS_TRANSFER_READ_BIT};
  find<PFN_vkCmdWaitEvents>(handles, "vkCmdWaitEvents")(
      static_cast<VkCommandBuffer>(commands), 1, static_cast<VkEvent*>(event), handles.set_stages,
      VK_PIPELINE_STAGE_TRANSFER_BIT, 1, &barrier, 0, nullptr, 0, nullptr);
}

}  // namespace

Consumer vulkan_consumer() {
  return {"vulkan", [](void* event) { return event_status(event) == VK_EVENT_SET; },
          [](void* event) {
            while (event_status(event) == VK_EVENT_RESET) std::this_thread::yield();
          },
          wait_on};
}
