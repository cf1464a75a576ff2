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
      "a Vulkan event does not tell its VkDevice and queue; pass a WaitContext of Vulkan, or "
      "register a waiter";
  static constexpr const char* kNoRecords =
      "Vulkan sets a VkEvent by a command in a command buffer, which only you can record";
};

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_DETAIL_VULKAN_HPP
