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

// The stages that set events. Deliberately not the stages that a consumer would assume.
inline constexpr VkPipelineStageFlags kSetStages = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;

// vkGetDeviceProcAddr, with a vkCmdWaitEvents that notifies the VkQueue's owner of the commands.
VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL find_watched(VkDevice device, const char* name);

// A sequence of submissions to the single VkQueue.
//
// It must behave like a queue that runs concurrently with the others, but a VkQueue starts its work
// in order, and all work behind gated work waits for the gate. A read before any wait is therefore
// done by the host, immediately, in the memory shared with the device. Once a wait was recorded
// into the command buffer of handle(), all further reads are enqueued.
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

  // Called when a wait was recorded into the command buffer of handle(). An invalid wait is
  // reported by the next read. Returns false if the driver must not receive it.
  bool note_wait(uint32_t count, const VkEvent* events, VkPipelineStageFlags from,
                 VkPipelineStageFlags to);

 private:
  // Recorded and submitted repeatedly.
  struct Commands {
    VkCommandBuffer buffer = nullptr;
    OwnedDescriptorPool pool;
    VkDescriptorSet set = VK_NULL_HANDLE;
    uint64_t submission = 0;
  };

  // Returns the commands being recorded; starts new ones if needed.
  Commands& recording();
  Commands& idle();
  void submit();

  VulkanRoot& root_;
  OwnedCommandPool pool_;
  std::deque<std::unique_ptr<Commands>> commands_;  // in the order of submission
  Commands* recording_ = nullptr;
  uint64_t last_ = 0;  // submission number
  // Shared with the gates: the semaphores must outlive the submissions.
  std::vector<std::shared_ptr<const OwnedSemaphore>> gates_;
  bool has_waited_ = false;
  std::string wrong_wait_;
};

}  // namespace fletching::producer

#endif  // FLETCHING_PRODUCER_VULKAN_QUEUE_HPP
