// SPDX-License-Identifier: Apache-2.0
//
// Vulkan: its row of the runtimes. The waits need a WaitContext: fletching/vulkan_event.hpp.
#ifndef FLETCHING_DETAIL_VULKAN_HPP
#define FLETCHING_DETAIL_VULKAN_HPP

#include "fletching/detail/runtime.hpp"
#include "fletching/runtimes/vulkan.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

struct VulkanRuntime : RuntimeRow {
  static constexpr Runtime kId = Runtime::kVulkan;
  static constexpr const char* kTitle = vulkan::kRuntime.title;
  static constexpr const char* kInsteadOfWait =
      "VkEvent without its VkDevice and VkQueue; hint: pass a vulkan::WaitContext, or register a "
      "waiter";
  static constexpr const char* kNoRecords =
      "not supported by Vulkan: a VkEvent is set by a command buffer, which the caller records";
};

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_DETAIL_VULKAN_HPP
