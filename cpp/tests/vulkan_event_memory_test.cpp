// SPDX-License-Identifier: Apache-2.0
//
// Allocation failures while waiting on a Vulkan event. All device functions are fakes, so no driver
// is needed and none allocates.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <utility>

#include "alloc_failure.hpp"
#include "fletching/export_event.hpp"
#include "fletching/release_after.hpp"
#include "fletching/sync_event.hpp"
#include "fletching/vulkan_event.hpp"
#include "released_array.hpp"
#include "runtimes/vulkan.hpp"

namespace fletching::testing {
namespace {

// --- A device with scripted results.

std::array<vulkan::VkResult, 2> answers{};  // the last one repeats
std::size_t asked = 0;
int waits = 0;

vulkan::VkResult get_event_status(vulkan::VkDevice /*device*/, vulkan::VkEvent /*event*/) {
  return answers.at(std::min<std::size_t>(asked++, 1));
}

void cmd_wait_events(vulkan::VkCommandBuffer /*commands*/, std::uint32_t /*count*/,
                     const vulkan::VkEvent* /*events*/, vulkan::VkFlags /*from*/,
                     vulkan::VkFlags /*to*/, std::uint32_t /*memory_count*/,
                     const vulkan::VkMemoryBarrier* /*memory*/, std::uint32_t /*buffer_count*/,
                     const vulkan::VkBufferMemoryBarrier* /*buffers*/,
                     std::uint32_t /*image_count*/,
                     const vulkan::VkImageMemoryBarrier* /*images*/) {
  ++waits;
}

vulkan::any_function find(vulkan::VkDevice /*device*/, const char* name) {
  if (std::strcmp(name, "vkGetEventStatus") == 0) {
    return reinterpret_cast<vulkan::any_function>(&get_event_status);
  }
  if (std::strcmp(name, "vkCmdWaitEvents") == 0) {
    return reinterpret_cast<vulkan::any_function>(&cmd_wait_events);
  }
  return nullptr;
}

vulkan::any_function find_nothing(vulkan::VkDevice /*device*/, const char* /*name*/) {
  return nullptr;
}

// --- The operations of an event.

class VulkanOutOfMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    answer(vulkan::kVkEventSet);
    std::memset(&handle_, 1, sizeof handle_);  // not NULL; 64 bits on every target
    context_.device = &device_;
    context_.producer_queue = context_.queue = &queue_;
    context_.get_device_proc_addr = reinterpret_cast<void (*)()>(&find);
  }

  static void answer(vulkan::VkResult first, vulkan::VkResult second = vulkan::kVkEventSet) {
    answers = {first, second};
  }

  SyncEvent event() { return {ARROW_DEVICE_VULKAN, 0, static_cast<void*>(&handle_)}; }

  /// Fails each allocation of `operation` once and expects ENOMEM, and `expected` if none fails.
  void fails_cleanly(const char* what, int expected, const std::function<int()>& operation) {
    SCOPED_TRACE(what);
    const std::int64_t failed = fail_each_allocation([&](Injection& inject) {
      asked = 0;
      waits = 0;
      const int code = inject(operation);
      EXPECT_EQ(code, inject.fired() ? ENOMEM : expected);
      if (code != 0) {
        EXPECT_EQ(waits, 0) << "it failed, and has recorded a wait";
      }
    });
    EXPECT_TRUE(failed > 0 || expected == 0) << "nothing was allocated: the test is blind";
  }

  int device_ = 0;
  int queue_ = 0;
  int commands_ = 0;
  int object_ = 0;
  vulkan::VkEvent handle_{};
  vulkan::WaitContext context_;
};

TEST_F(VulkanOutOfMemory, Ready) {
  const auto ready = [&] { return code_of(event().ready(context_)); };
  fails_cleanly("set", 0, ready);
  answer(vulkan::kVkEventReset);
  fails_cleanly("reset", 0, ready);
  answer(vulkan::kVkErrorDeviceLost);
  fails_cleanly("device lost", EIO, ready);
  answer(-1000);
  fails_cleanly("an error without a name", EIO, ready);
}

TEST_F(VulkanOutOfMemory, Synchronize) {
  const auto synchronize = [&] { return code_of(event().synchronize(context_)); };
  fails_cleanly("set", 0, synchronize);
  answer(vulkan::kVkEventReset);
  fails_cleanly("reset, then set", 0, synchronize);
  answer(vulkan::kVkEventReset, vulkan::kVkErrorDeviceLost);
  fails_cleanly("reset, then lost", EIO, synchronize);
}

TEST_F(VulkanOutOfMemory, WaitOn) {
  const auto wait_on = [&] { return code_of(event().wait_on(context_, &commands_)); };
  fails_cleanly("recorded", 0, wait_on);
  EXPECT_EQ(waits, 1);
  fails_cleanly("no command buffer", EINVAL,
                [&] { return code_of(event().wait_on(context_, nullptr)); });
  context_.queue = &object_;
  fails_cleanly("another queue", ENOTSUP, wait_on);
}

TEST_F(VulkanOutOfMemory, InvalidContext) {
  const auto each_verb = [&](const char* what, int expected) {
    fails_cleanly(what, expected, [&] { return code_of(event().ready(context_)); });
    fails_cleanly(what, expected, [&] { return code_of(event().synchronize(context_)); });
    fails_cleanly(what, expected, [&] { return code_of(event().wait_on(context_, &commands_)); });
  };
  const vulkan::VkEvent handle = std::exchange(handle_, {});
  each_verb("the handle is NULL", EINVAL);
  handle_ = handle;
  context_.get_device_proc_addr = reinterpret_cast<void (*)()>(&find_nothing);
  each_verb("no function", ENOSYS);
  context_.device = nullptr;
  each_verb("no device", EINVAL);
  const SyncEvent by_value(ARROW_DEVICE_VULKAN, 0, reinterpret_cast<void*>(1));
  fails_cleanly("an address that is none", EINVAL,
                [&] { return code_of(by_value.ready(context_)); });
  fails_cleanly("no context", ENOTSUP, [&] { return code_of(event().synchronize()); });
  const SyncEvent of_cuda(ARROW_DEVICE_CUDA, 0, static_cast<void*>(&handle_));
  fails_cleanly("another runtime's event", EINVAL,
                [&] { return code_of(of_cuda.synchronize(context_)); });
}

// The library cannot record Vulkan events: on any failure the array is unchanged. release_after
// consumes the array anyway and is tested elsewhere.
TEST_F(VulkanOutOfMemory, ProducerOperations) {
  const auto each_verb = [&](const char* what, int expected, bool released, void* sync_event) {
    SCOPED_TRACE(what);
    using Operation = Status (*)(DeviceArray&, Stream);
    const Operation export_refusing = [](DeviceArray& array, Stream stream) {
      return export_with_event(array, stream);
    };
    for (const Operation operation : {export_refusing}) {
      const std::int64_t failed = fail_each_allocation([&](Injection& inject) {
        ReleasedArray made;
        DeviceArray array = made.make(ARROW_DEVICE_VULKAN, 0);
        array->sync_event = sync_event;
        if (released) array.release();
        const Status status =
            inject([&] { return operation(array, {ARROW_DEVICE_VULKAN, &queue_}); });
        EXPECT_EQ(code_of(status), inject.fired() ? ENOMEM : expected);
        EXPECT_EQ(array.is_released(), released);
        if (!released) {
          EXPECT_EQ(array->sync_event, sync_event);
        }
        array.release();
        EXPECT_EQ(made.parents.count(), 1);
        EXPECT_EQ(made.children.count(), 2);
      });
      EXPECT_GT(failed, 0) << "nothing was allocated: the test is blind";
    }
  };
  each_verb("alive", ENOTSUP, false, nullptr);
  each_verb("released", EINVAL, true, nullptr);
  each_verb("with an event", EINVAL, false, &object_);
}

}  // namespace
}  // namespace fletching::testing
