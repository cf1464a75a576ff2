// SPDX-License-Identifier: Apache-2.0
//
// Events of Vulkan on whatever driver is installed.
#include <gtest/gtest.h>
#include <vulkan/vulkan.h>

#include <array>
#include <string>
#include <thread>
#include <vector>

#include "fletching/sync_event.hpp"
#include "fletching/vulkan_event.hpp"
#include "runtimes/vulkan.hpp"
#include "texts.hpp"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

namespace fletching {
namespace {

using testing::message;

// The driver of Mesa keeps a little for each device that it has opened: that is not ours to count.
class DriversOwnMemory {
 public:
#if defined(__SANITIZE_ADDRESS__)
  DriversOwnMemory() { __lsan_disable(); }
  ~DriversOwnMemory() { __lsan_enable(); }
#else
  DriversOwnMemory() = default;
#endif
  DriversOwnMemory(const DriversOwnMemory&) = delete;
  DriversOwnMemory& operator=(const DriversOwnMemory&) = delete;
};

class Vulkan : public ::testing::Test {
 protected:
  void SetUp() override {
    [[maybe_unused]] const DriversOwnMemory uncounted;
    auto loaded = vulkan::functions();
    if (!loaded) GTEST_SKIP() << loaded.error().message();
    const VkApplicationInfo application{
        VK_STRUCTURE_TYPE_APPLICATION_INFO, nullptr, "test", 0, nullptr, 0, VK_API_VERSION_1_1};
    const VkInstanceCreateInfo info{
        VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, nullptr, 0, &application, 0, nullptr, 0, nullptr};
    std::uint32_t count = 1;
    VkPhysicalDevice physical = nullptr;
    if (vkCreateInstance(&info, nullptr, &instance_) != VK_SUCCESS ||
        vkEnumeratePhysicalDevices(instance_, &count, &physical) < 0 || count == 0) {
      GTEST_SKIP() << "no Vulkan device is installed (libvulkan.so.1 is there)";
    }
    make_device(physical);
    context_.device = device_;
    context_.producer_queue = context_.queue = queue_;
    context_.set_stages = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
    const VkEventCreateInfo create{VK_STRUCTURE_TYPE_EVENT_CREATE_INFO, nullptr, 0};
    ASSERT_EQ(vkCreateEvent(device_, &create, nullptr, &event_), VK_SUCCESS);
  }

  void TearDown() override {
    if (device_ != nullptr) {
      vkDeviceWaitIdle(device_);
      vkDestroyEvent(device_, event_, nullptr);
      vkDestroyCommandPool(device_, pool_, nullptr);
      vkDestroyDevice(device_, nullptr);
    }
    if (instance_ != nullptr) vkDestroyInstance(instance_, nullptr);
  }

  void make_device(VkPhysicalDevice physical) {
    const float priority = 1;
    const VkDeviceQueueCreateInfo queue{
        VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, nullptr, 0, 0, 1, &priority};
    VkDeviceCreateInfo device{};
    device.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
    device.queueCreateInfoCount = 1;
    device.pQueueCreateInfos = &queue;
    ASSERT_EQ(vkCreateDevice(physical, &device, nullptr, &device_), VK_SUCCESS);
    vkGetDeviceQueue(device_, 0, 0, &queue_);
    const VkCommandPoolCreateInfo pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO, nullptr, 0, 0};
    ASSERT_EQ(vkCreateCommandPool(device_, &pool, nullptr, &pool_), VK_SUCCESS);
  }

  VkCommandBuffer begin_commands() {
    VkCommandBuffer commands = nullptr;
    const VkCommandBufferAllocateInfo allocate{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                               nullptr, pool_, VK_COMMAND_BUFFER_LEVEL_PRIMARY, 1};
    EXPECT_EQ(vkAllocateCommandBuffers(device_, &allocate, &commands), VK_SUCCESS);
    const VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, nullptr, 0,
                                         nullptr};
    EXPECT_EQ(vkBeginCommandBuffer(commands, &begin), VK_SUCCESS);
    return commands;
  }

  void submit(VkCommandBuffer commands) {
    ASSERT_EQ(vkEndCommandBuffer(commands), VK_SUCCESS);
    VkSubmitInfo submit{};
    submit.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
    submit.commandBufferCount = 1;
    submit.pCommandBuffers = &commands;
    ASSERT_EQ(vkQueueSubmit(queue_, 1, &submit, VK_NULL_HANDLE), VK_SUCCESS);
  }

  SyncEvent event() { return {ARROW_DEVICE_VULKAN, 0, static_cast<void*>(&event_)}; }

  VkInstance instance_ = nullptr;
  VkDevice device_ = nullptr;
  VkQueue queue_ = nullptr;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkEvent event_ = VK_NULL_HANDLE;
  vulkan::WaitContext context_;
};

TEST_F(Vulkan, IsAskedAndPolled) {
  Result<bool> ready = event().ready(context_);
  ASSERT_TRUE(ready.ok()) << message(ready);
  EXPECT_FALSE(*ready);
  std::thread other([&] { EXPECT_TRUE(event().synchronize(context_).ok()); });
  VkCommandBuffer commands = begin_commands();
  vkCmdSetEvent(commands, event_, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT);
  submit(commands);
  other.join();
  EXPECT_TRUE(*event().ready(context_));
}

TEST_F(Vulkan, UsesTheFunctionsOfTheDevice) {
  context_.get_device_proc_addr =
      reinterpret_cast<decltype(context_.get_device_proc_addr)>(&vkGetDeviceProcAddr);
  EXPECT_FALSE(*event().ready(context_));
  ASSERT_EQ(vkSetEvent(device_, event_), VK_SUCCESS);
  EXPECT_TRUE(event().synchronize(context_).ok());
  const PFN_vkGetDeviceProcAddr finds_nothing = [](VkDevice, const char*) {
    return PFN_vkVoidFunction{};
  };
  context_.get_device_proc_addr = reinterpret_cast<void (*)()>(finds_nothing);
  EXPECT_EQ(event().ready(context_).error().code(), ENOSYS);
  EXPECT_NE(message(event().ready(context_)).find("vkGetEventStatus"), std::string::npos);
}

TEST_F(Vulkan, WaitsInACommandBufferOfTheProducersQueue) {
  VkEvent second = VK_NULL_HANDLE;
  const VkEventCreateInfo create{VK_STRUCTURE_TYPE_EVENT_CREATE_INFO, nullptr, 0};
  ASSERT_EQ(vkCreateEvent(device_, &create, nullptr, &second), VK_SUCCESS);
  const SyncEvent behind(ARROW_DEVICE_VULKAN, 0, static_cast<void*>(&second));
  VkCommandBuffer sets = begin_commands();
  vkCmdSetEvent(sets, event_, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT);
  VkCommandBuffer commands = begin_commands();
  const Status waiting = event().wait_on(context_, commands);
  ASSERT_TRUE(waiting.ok()) << message(waiting);
  vkCmdSetEvent(commands, second, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT);
  EXPECT_FALSE(*behind.ready(context_));
  submit(sets);
  submit(commands);
  EXPECT_TRUE(behind.synchronize(context_).ok());
  EXPECT_TRUE(*event().ready(context_)) << "it is set already";
  ASSERT_EQ(vkDeviceWaitIdle(device_), VK_SUCCESS);
  vkDestroyEvent(device_, second, nullptr);
}

TEST_F(Vulkan, RefusesAnythingElse) {
  VkCommandBuffer commands = begin_commands();
  EXPECT_EQ(event().wait_on(context_, nullptr).error().code(), EINVAL);
  vulkan::WaitContext other_queue = context_;
  other_queue.queue = &other_queue;
  EXPECT_EQ(event().wait_on(other_queue, commands).error().code(), ENOTSUP);
  vulkan::WaitContext unknown = context_;
  unknown.producer_queue = unknown.queue = nullptr;
  EXPECT_EQ(event().wait_on(unknown, commands).error().code(), ENOTSUP);
  vulkan::WaitContext no_device = context_;
  no_device.device = nullptr;
  EXPECT_EQ(event().ready(no_device).error().code(), EINVAL);
  EXPECT_EQ(event().synchronize().error().code(), ENOTSUP);
  EXPECT_NE(message(event().synchronize()).find("WaitContext"), std::string::npos);
  ASSERT_EQ(vkEndCommandBuffer(commands), VK_SUCCESS);
}

}  // namespace
}  // namespace fletching
