// SPDX-License-Identifier: Apache-2.0
//
// Waits on an event of Vulkan: what Vulkan needs to know, and the operations of SyncEvent that take
// it.
#ifndef FLETCHING_VULKAN_EVENT_HPP
#define FLETCHING_VULKAN_EVENT_HPP

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

#include "fletching/detail/event_handle.hpp"
#include "fletching/result.hpp"
#include "fletching/runtimes/vulkan.hpp"
#include "fletching/sync_event.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::vulkan {

/// What the interface does not pass, and the producer has to pass separately.
struct WaitContext {
  /// The VkDevice that the producer created the event with.
  void* device = nullptr;
  /// The VkQueue on which the producer sets the event. Only wait_on needs it.
  void* producer_queue = nullptr;
  /// The VkQueue to which the consumer submits the command buffer. Only wait_on needs it.
  void* queue = nullptr;
  /// The stages with which the producer sets the event, a VkPipelineStageFlags: vkCmdWaitEvents has
  /// to be passed the same ones.
  VkFlags set_stages = kVkPipelineStageAllCommandsBit;
  /// The vkGetDeviceProcAddr of the VkDevice; nullptr for the loader's.
  decltype(Functions::vk_get_device_proc_addr) get_device_proc_addr = nullptr;
};

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::vulkan

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {
namespace detail {

inline Status vulkan_status(const char* function, vulkan::VkResult result) {
  if (result == vulkan::kVkSuccess) return {};
  return vendor_error(
      {vulkan::kRuntime.title, function, result, vulkan::status_name(result), nullptr, false});
}

/// The operations that Vulkan supports.
struct VulkanEvents {
  static Result<bool> ready(const EventReference& event, const vulkan::WaitContext& context) {
    auto handle = handle_at<vulkan::VkEvent>(event);
    if (!handle) return std::move(handle).error();
    auto get_status =
        function<&vulkan::Functions::vk_get_event_status>(context, "vkGetEventStatus");
    if (!get_status) return std::move(get_status).error();
    return ask(*get_status, context, *handle);
  }

  /// Asks again and again: Vulkan has no host wait. It sleeps in between, longer each time, at most
  /// a millisecond.
  static Status synchronize(const EventReference& event, const vulkan::WaitContext& context) {
    using std::chrono::microseconds;
    constexpr microseconds kLongest{1000};
    auto handle = handle_at<vulkan::VkEvent>(event);
    if (!handle) return std::move(handle).error();
    auto get_status =
        function<&vulkan::Functions::vk_get_event_status>(context, "vkGetEventStatus");
    if (!get_status) return std::move(get_status).error();
    for (microseconds pause{10};; pause = (std::min)(pause * 2, kLongest)) {
      Result<bool> done = ask(*get_status, context, *handle);
      if (!done.ok()) return std::move(done).error();
      if (*done) return {};
      std::this_thread::sleep_for(pause);
    }
  }

  static Status wait_on(const EventReference& event, const vulkan::WaitContext& context,
                        void* command_buffer) {
    if (command_buffer == nullptr) {
      return Error{EINVAL,
                   "wait_on: command buffer is NULL: expected a VkCommandBuffer that is being "
                   "recorded, because a VkQueue cannot wait for a VkEvent"};
    }
    if (context.producer_queue == nullptr || context.queue != context.producer_queue) {
      return Error{
          ENOTSUP,
          "wait_on: WaitContext.queue: expected the producer's VkQueue, because a VkEvent orders "
          "commands of one queue only; hint: submit to that queue and set it, or call synchronize"};
    }
    auto handle = handle_at<vulkan::VkEvent>(event);
    if (!handle) return std::move(handle).error();
    auto wait = function<&vulkan::Functions::vk_cmd_wait_events>(context, "vkCmdWaitEvents");
    if (!wait) return std::move(wait).error();
    const vulkan::VkMemoryBarrier barrier{
        vulkan::kVkStructureTypeMemoryBarrier, nullptr, vulkan::kVkAccessMemoryWriteBit,
        vulkan::kVkAccessMemoryReadBit | vulkan::kVkAccessMemoryWriteBit};
    (*wait)(static_cast<vulkan::VkCommandBuffer>(command_buffer), 1, &*handle, context.set_stages,
            vulkan::kVkPipelineStageAllCommandsBit, 1, &barrier, 0, nullptr, 0, nullptr);
    return {};
  }

 private:
  /// A function of the device, or the loader's, which finds the device by its handle.
  template <auto kMember>
  static auto function(const vulkan::WaitContext& context, const char* name)
      -> Result<std::remove_cvref_t<decltype(std::declval<vulkan::Functions>().*kMember)>> {
    using Function = std::remove_cvref_t<decltype(std::declval<vulkan::Functions>().*kMember)>;
    if (context.device == nullptr) {
      return Error{EINVAL, "WaitContext.device: NULL: expected the producer's VkDevice"};
    }
    if (context.get_device_proc_addr == nullptr) {
      auto loaded = vulkan::functions();
      if (!loaded) return std::move(loaded).error();
      return (*loaded)->*kMember;
    }
    const auto found =
        context.get_device_proc_addr(static_cast<vulkan::VkDevice>(context.device), name);
    if (found != nullptr) return reinterpret_cast<Function>(found);
    return Error{ENOSYS, std::string("WaitContext.get_device_proc_addr: no function ") + name};
  }

  static Result<bool> ask(decltype(vulkan::Functions::vk_get_event_status) get_status,
                          const vulkan::WaitContext& context, vulkan::VkEvent handle) {
    const auto answer = get_status(static_cast<vulkan::VkDevice>(context.device), handle);
    const EventState state = vulkan::event_state(answer);
    if (state != EventState::kFailed) return state == EventState::kDone;
    return vendor_error({vulkan::kRuntime.title, "vkGetEventStatus", answer,
                         vulkan::status_name(answer), nullptr, false});
  }
};

}  // namespace detail

inline Status SyncEvent::synchronize(const vulkan::WaitContext& context) const noexcept {
  if (is_null()) return {};
  return in_vulkan([&] { return detail::VulkanEvents::synchronize(event_, context); });
}

inline Status SyncEvent::wait_on(const vulkan::WaitContext& context,
                                 void* command_buffer) const noexcept {
  if (is_null()) return {};
  return in_vulkan([&] { return detail::VulkanEvents::wait_on(event_, context, command_buffer); });
}

inline Result<bool> SyncEvent::ready(const vulkan::WaitContext& context) const noexcept {
  if (is_null()) return true;
  return in_vulkan([&] { return detail::VulkanEvents::ready(event_, context); });
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_VULKAN_EVENT_HPP
