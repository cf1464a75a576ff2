// SPDX-License-Identifier: Apache-2.0
//
// What Vulkan needs to know before an event can be waited on.
#ifndef FLETCHING_VULKAN_EVENT_HPP
#define FLETCHING_VULKAN_EVENT_HPP

#include "fletching/runtimes/vulkan.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::vulkan {

/// What the interface does not hand over, and the producer has to tell in a way of its own.
struct WaitContext {
  /// The VkDevice that the producer created the event with.
  void* device = nullptr;
  /// The VkQueue on which the producer sets the event. Only wait_on needs it.
  void* producer_queue = nullptr;
  /// The VkQueue to which the consumer submits the command buffer. Only wait_on needs it.
  void* queue = nullptr;
  /// The stages with which the producer sets the event, a VkPipelineStageFlags: vkCmdWaitEvents has
  /// to be given the same ones.
  VkFlags set_stages = kVkPipelineStageAllCommandsBit;
  /// The vkGetDeviceProcAddr of the VkDevice; nullptr for that of the loader.
  decltype(Functions::vk_get_device_proc_addr) get_device_proc_addr = nullptr;
};

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::vulkan

#endif  // FLETCHING_VULKAN_EVENT_HPP
