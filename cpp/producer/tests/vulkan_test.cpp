// Vulkan specifics: the producer detects whether a consumer has recorded a wait and on which event,
// and it provides the handles that a consumer needs.
#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "fletching/sync_event.hpp"
#include "fletching/vulkan_event.hpp"
#include "gate_support.hpp"
#include "vulkan_handles.h"

namespace {

class VulkanTest : public GateTest {
 protected:
  void SetUp() override {
    GateTest::SetUp();
    use("vulkan");
    if (IsSkipped()) return;
    FletchingMessage message;
    ASSERT_EQ(FletchingProducerVulkanHandles(&handles_, &message), 0) << message.text;
    export_array("int32");
    queue_ = new_queue("vulkan");
  }
  void TearDown() override {
    queue_.reset();
    GateTest::TearDown();
  }

  template <class Function>
  Function find(const char* name) {
    auto found = reinterpret_cast<Function>(handles_.get_device_proc_addr(handles_.device, name));
    EXPECT_NE(found, nullptr) << name;
    return found;
  }
  VkDevice device() const { return static_cast<VkDevice>(handles_.device); }
  VkEvent* event_address() const { return static_cast<VkEvent*>(array_.sync_event); }

  void record_wait(VkCommandBuffer commands, const std::vector<VkEvent>& events,
                   VkPipelineStageFlags from, VkPipelineStageFlags to) {
    find<PFN_vkCmdWaitEvents>("vkCmdWaitEvents")(commands, static_cast<uint32_t>(events.size()),
                                                 events.data(), from, to, 0, nullptr, 0, nullptr, 0,
                                                 nullptr);
  }
  std::string why_read_fails(const std::vector<VkEvent>& events, VkPipelineStageFlags from,
                             VkPipelineStageFlags to) {
    record_wait(static_cast<VkCommandBuffer>(FletchingProducerQueueHandle(queue_.get())), events,
                from, to);
    FletchingMessage message;
    EXPECT_EQ(FletchingProducerQueueRead(queue_.get(), "int32", &array_, &message), EBADMSG);
    return message.text;
  }

  fletching::vulkan::WaitContext context() const {
    using fletching::vulkan::WaitContext;
    return {handles_.device, handles_.queue, handles_.queue, handles_.set_stages,
            reinterpret_cast<decltype(WaitContext::get_device_proc_addr)>(
                handles_.get_device_proc_addr)};
  }

  FletchingProducerVulkan handles_{};
  OwnedQueue queue_;
};

// Using the command buffer without recording a wait does not count as a wait.
TEST_F(VulkanTest, ReadWithoutRecordedWaitSeesOldData) {
  EXPECT_NE(FletchingProducerQueueHandle(queue_.get()), nullptr);
  read(queue_, "int32", array_);
  EXPECT_TRUE(is_idle(queue_));
  EXPECT_GT(verify(queue_, FLETCHING_PRODUCER_OLD), 0);
}

TEST_F(VulkanTest, DetectsWaitWithoutEvent) {
  EXPECT_EQ(why_read_fails({}, handles_.set_stages, VK_PIPELINE_STAGE_TRANSFER_BIT),
            "vkCmdWaitEvents: no event: expected the producer's VkEvent");
}

// sync_event is the address of the VkEvent, not the VkEvent.
TEST_F(VulkanTest, DetectsEventAddressPassedAsEvent) {
  EXPECT_EQ(why_read_fails({reinterpret_cast<VkEvent>(event_address())}, handles_.set_stages,
                           VK_PIPELINE_STAGE_TRANSFER_BIT),
            "vkCmdWaitEvents: unknown VkEvent: expected the producer's");
}

TEST_F(VulkanTest, DetectsWrongSourceStages) {
  EXPECT_EQ(why_read_fails({*event_address()}, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
                           VK_PIPELINE_STAGE_TRANSFER_BIT),
            "vkCmdWaitEvents: srcStageMask 0x10000: expected the stage of vkCmdSetEvent, 0x800");
}

TEST_F(VulkanTest, DetectsWrongDestinationStages) {
  EXPECT_EQ(
      why_read_fails({*event_address()}, handles_.set_stages, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT),
      "vkCmdWaitEvents: dstStageMask 0x800: expected VK_PIPELINE_STAGE_TRANSFER_BIT of the read");
}

// The library's own operations, given only the handles.
TEST_F(VulkanTest, SyncEventWaits) {
  const fletching::SyncEvent event(array_);
  const auto ready = [&] {
    const fletching::Result<bool> answer = event.ready(context());
    EXPECT_TRUE(answer.ok()) << answer.error().message();
    return answer.ok() && *answer;
  };
  EXPECT_FALSE(ready());
  const fletching::Status waits =
      event.wait_on(context(), FletchingProducerQueueHandle(queue_.get()));
  EXPECT_TRUE(waits.ok()) << waits.error().message();
  read(queue_, "int32", array_);
  EXPECT_FALSE(is_idle(queue_));
  open(gate_);
  const fletching::Status waited = event.synchronize(context());
  EXPECT_TRUE(waited.ok()) << waited.error().message();
  EXPECT_TRUE(ready());
  EXPECT_GT(verify(queue_, FLETCHING_PRODUCER_NEW), 0);
}

// The work and the event were submitted on export, so a consumer may submit to the queue itself.
TEST_F(VulkanTest, ConsumerSubmitsToQueue) {
  VkCommandPoolCreateInfo pool_info{};
  pool_info.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  pool_info.queueFamilyIndex = handles_.queue_family;
  VkCommandPool pool = VK_NULL_HANDLE;
  ASSERT_EQ(
      find<PFN_vkCreateCommandPool>("vkCreateCommandPool")(device(), &pool_info, nullptr, &pool),
      VK_SUCCESS);
  VkCommandBufferAllocateInfo commands_info{};
  commands_info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  commands_info.commandPool = pool;
  commands_info.commandBufferCount = 1;
  VkCommandBuffer commands = nullptr;
  ASSERT_EQ(find<PFN_vkAllocateCommandBuffers>("vkAllocateCommandBuffers")(device(), &commands_info,
                                                                           &commands),
            VK_SUCCESS);
  VkFenceCreateInfo fence_info{};
  fence_info.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
  VkFence fence = VK_NULL_HANDLE;
  ASSERT_EQ(find<PFN_vkCreateFence>("vkCreateFence")(device(), &fence_info, nullptr, &fence),
            VK_SUCCESS);

  VkCommandBufferBeginInfo begin{};
  begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  EXPECT_EQ(find<PFN_vkBeginCommandBuffer>("vkBeginCommandBuffer")(commands, &begin), VK_SUCCESS);
  record_wait(commands, {*event_address()}, handles_.set_stages,
              VK_PIPELINE_STAGE_ALL_COMMANDS_BIT);
  EXPECT_EQ(find<PFN_vkEndCommandBuffer>("vkEndCommandBuffer")(commands), VK_SUCCESS);
  VkSubmitInfo submit{};
  submit.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  submit.commandBufferCount = 1;
  submit.pCommandBuffers = &commands;
  EXPECT_EQ(find<PFN_vkQueueSubmit>("vkQueueSubmit")(static_cast<VkQueue>(handles_.queue), 1,
                                                     &submit, fence),
            VK_SUCCESS);
  EXPECT_EQ(find<PFN_vkGetFenceStatus>("vkGetFenceStatus")(device(), fence), VK_NOT_READY);
  EXPECT_FALSE(is_ready(array_));
  open(gate_);
  EXPECT_EQ(find<PFN_vkWaitForFences>("vkWaitForFences")(device(), 1, &fence, VK_TRUE,
                                                         std::numeric_limits<uint64_t>::max()),
            VK_SUCCESS);
  EXPECT_TRUE(is_ready(array_));

  find<PFN_vkDestroyFence>("vkDestroyFence")(device(), fence, nullptr);
  find<PFN_vkDestroyCommandPool>("vkDestroyCommandPool")(device(), pool, nullptr);
}

TEST(VulkanHandles, RejectsNullOut) {
  FletchingMessage message;
  EXPECT_EQ(FletchingProducerVulkanHandles(nullptr, &message), EINVAL);
  EXPECT_STREQ(message.text, "handles: NULL: expected an address");
}

}  // namespace
