// Queues, events and gates of the Vulkan backend.
#ifndef FLETCHING_PRODUCER_VULKAN_QUEUE_HPP
#define FLETCHING_PRODUCER_VULKAN_QUEUE_HPP

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "backend.hpp"
#include "vulkan_root.hpp"

namespace fletching::producer {

// The stages with which events are set. Not the ones that a consumer would guess.
inline constexpr VkPipelineStageFlags kSetStages = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;

// vkGetDeviceProcAddr, with a vkCmdWaitEvents that notifies the VulkanQueue whose commands they
// are.
VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL find_watched(VkDevice device, const char* name);

// A line of submissions to the one VkQueue.
//
// That is how it can run concurrently with other queues: a VkQueue begins its work in order, so
// whatever is behind gated work waits for the gate. A read that has not waited is therefore one of
// the host, in the memory that it shares with the device, and done at once. A read is enqueued
// after a wait was recorded into the command buffer of handle(), and on every one that follows.
class VulkanQueue : public Queue {
 public:
  explicit VulkanQueue(VulkanRoot& root);
  ~VulkanQueue() override;
  VulkanQueue(const VulkanQueue&) = delete;
  VulkanQueue& operator=(const VulkanQueue&) = delete;

  void* handle() override;
  std::unique_ptr<Gate> shut() override;
  void invert(void* buffer, size_t bytes) override;
  void read(void* staging, const void* buffer, size_t bytes) override;
  std::unique_ptr<Event> record() override;
  bool is_idle() override { return root_.is_done(last_); }
  void finish() override { root_.wait(last_); }

  // A wait was recorded into the command buffer of handle(). What is wrong with it is an error of
  // the next read; false: it is so wrong that the driver may not see it.
  bool note_wait(uint32_t count, const VkEvent* events, VkPipelineStageFlags from,
                 VkPipelineStageFlags to);

 private:
  // Recorded and submitted again and again.
  struct Commands {
    VkCommandBuffer buffer = nullptr;
    OwnedDescriptorPool pool;
    VkDescriptorSet set = VK_NULL_HANDLE;
    uint64_t submission = 0;
  };

  // What is recorded into; begun when there is none.
  Commands& recording();
  Commands& idle();
  void submit();

  VulkanRoot& root_;
  OwnedCommandPool pool_;
  std::deque<std::unique_ptr<Commands>> commands_;  // the one that was submitted first is first
  Commands* recording_ = nullptr;
  uint64_t last_ = 0;  // of the submissions
  // Shared with the gates, whose semaphores have to outlive the submissions.
  std::vector<std::shared_ptr<const OwnedSemaphore>> gates_;
  bool has_waited_ = false;
  std::string wrong_wait_;
};

}  // namespace fletching::producer

#endif  // FLETCHING_PRODUCER_VULKAN_QUEUE_HPP
