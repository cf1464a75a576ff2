// SPDX-License-Identifier: Apache-2.0
//
// Waits on Vulkan events: the context for a wait, and the operations of SyncEvent that take it.
#ifndef FLETCHING_VULKAN_EVENT_HPP
#define FLETCHING_VULKAN_EVENT_HPP

#include <cstdint>

#include "fletching/detail/core.hpp"
#include "fletching/result.hpp"
#include "fletching/sync_event.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::vulkan {

/// The Vulkan objects for a wait. The interface does not carry them; the producer passes them
/// separately.
struct WaitContext {
  /// The VkDevice with which the producer created the event.
  void* device = nullptr;
  /// The VkQueue on which the producer sets the event. Only wait_on needs it.
  void* producer_queue = nullptr;
  /// The VkQueue to which the consumer submits the command buffer. Only wait_on needs it.
  void* queue = nullptr;
  /// The VkPipelineStageFlags with which the producer sets the event. vkCmdWaitEvents requires the
  /// same.
  std::uint32_t set_stages = 0x10000;  // VK_PIPELINE_STAGE_ALL_COMMANDS_BIT
  /// The vkGetDeviceProcAddr of the VkDevice, cast to this type; nullptr for the loader's.
  void (*get_device_proc_addr)() = nullptr;
};

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::vulkan

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {
namespace detail {

inline FletchingVulkanWaitContext core_context(const vulkan::WaitContext& context) noexcept {
  return {context.device, context.producer_queue, context.queue, context.set_stages,
          context.get_device_proc_addr};
}

}  // namespace detail

inline Status SyncEvent::synchronize(const vulkan::WaitContext& context) const noexcept {
  if (is_null()) return {};
  const FletchingVulkanWaitContext passed = detail::core_context(context);
  return named("synchronize",
               [&] { return detail::in_core(&FletchingEventSynchronizeVulkan, &event_, &passed); });
}

inline Status SyncEvent::wait_on(const vulkan::WaitContext& context,
                                 void* command_buffer) const noexcept {
  if (is_null()) return {};
  const FletchingVulkanWaitContext passed = detail::core_context(context);
  return named("wait_on", [&] {
    return detail::in_core(&FletchingEventWaitOnVulkan, &event_, &passed, command_buffer);
  });
}

inline Result<bool> SyncEvent::ready(const vulkan::WaitContext& context) const noexcept {
  if (is_null()) return true;
  const FletchingVulkanWaitContext passed = detail::core_context(context);
  return ask([&](int* ready) {
    return detail::in_core(&FletchingEventReadyVulkan, &event_, &passed, ready);
  });
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_VULKAN_EVENT_HPP
