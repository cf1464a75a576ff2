#include "vulkan_queue.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

namespace fletching::producer {
namespace {

// --- Events and gates

class VulkanEvent : public Event {
 public:
  explicit VulkanEvent(VulkanRoot& root) : root_(root), event_(root.new_event()) {}
  ~VulkanEvent() override { root_.retire(event_); }
  VulkanEvent(const VulkanEvent&) = delete;
  VulkanEvent& operator=(const VulkanEvent&) = delete;

  void* address() noexcept override { return &event_; }
  // A VkEvent has no host wait, so this waits for the submission.
  void wait() override { root_.wait(submission_); }

  VkEvent get() const { return event_; }
  void set_submission(uint64_t submission) { submission_ = submission; }

 private:
  VulkanRoot& root_;
  VkEvent event_;
  uint64_t submission_ = 0;
};

// A timeline semaphore, which the host sets to 1.
class VulkanGate : public Gate {
 public:
  VulkanGate(VkDevice device, std::shared_ptr<const OwnedSemaphore> semaphore)
      : device_(device), semaphore_(std::move(semaphore)) {}
  ~VulkanGate() override {
    try_twice([this] { signal(); });
  }
  VulkanGate(const VulkanGate&) = delete;
  VulkanGate& operator=(const VulkanGate&) = delete;

  void open() override { signal(); }

 private:
  void signal() {
    if (open_) return;
    VkSemaphoreSignalInfo info{};
    info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO;
    info.semaphore = semaphore_->get();
    info.value = 1;
    check_vulkan("vkSignalSemaphore", g_vk.vkSignalSemaphore(device_, &info));
    open_ = true;
  }

  VkDevice device_;
  std::shared_ptr<const OwnedSemaphore> semaphore_;
  bool open_ = false;
};

// --- Command buffers passed to consumers

class Watched {
 public:
  void add(VkCommandBuffer commands, VulkanQueue* queue) {
    const std::lock_guard lock(mutex_);
    queues_[commands] = queue;
  }
  void remove(const VulkanQueue* queue) noexcept {
    const std::lock_guard lock(mutex_);
    std::erase_if(queues_, [=](const auto& entry) { return entry.second == queue; });
  }
  // Returns NULL for a command buffer of the consumer.
  VulkanQueue* find(VkCommandBuffer commands) {
    const std::lock_guard lock(mutex_);
    const auto found = queues_.find(commands);
    return found == queues_.end() ? nullptr : found->second;
  }

 private:
  std::mutex mutex_;
  std::map<VkCommandBuffer, VulkanQueue*> queues_;
};

Watched& the_watched() {
  // Never destroyed: queues may be destroyed at process exit.
  static auto& watched = *new Watched;
  return watched;
}

VKAPI_ATTR void VKAPI_CALL wait_events(VkCommandBuffer commands, uint32_t count,
                                       const VkEvent* events, VkPipelineStageFlags from,
                                       VkPipelineStageFlags to, uint32_t memory_count,
                                       const VkMemoryBarrier* memory, uint32_t buffer_count,
                                       const VkBufferMemoryBarrier* buffers, uint32_t image_count,
                                       const VkImageMemoryBarrier* images) {
  VulkanQueue* queue = the_watched().find(commands);
  if (queue != nullptr && !queue->note_wait(count, events, from, to)) return;
  g_vk.vkCmdWaitEvents(commands, count, events, from, to, memory_count, memory, buffer_count,
                       buffers, image_count, images);
}

std::string hexadecimal(VkFlags flags) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (; flags != 0 || text.empty(); flags >>= 4) text.insert(text.begin(), kDigits[flags & 0xf]);
  return "0x" + text;
}

// Makes the writes before the barrier visible to the commands after it.
void barrier(VkCommandBuffer commands, VkPipelineStageFlags from, VkAccessFlags written,
             VkPipelineStageFlags to, VkAccessFlags read) {
  const VkMemoryBarrier memory{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, written, read};
  g_vk.vkCmdPipelineBarrier(commands, from, to, 0, 1, &memory, 0, nullptr, 0, nullptr);
}

}  // namespace

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL find_watched(VkDevice device, const char* name) {
  if (name != nullptr && std::strcmp(name, "vkCmdWaitEvents") == 0) {
    return reinterpret_cast<PFN_vkVoidFunction>(wait_events);
  }
  return g_vk.vkGetDeviceProcAddr(device, name);
}

// --- The queue

VulkanQueue::VulkanQueue(VulkanRoot& root) : root_(root) {
  VkCommandPoolCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  info.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  info.queueFamilyIndex = root.queue_family;
  pool_ = make_vulkan<OwnedCommandPool>("vkCreateCommandPool", g_vk.vkCreateCommandPool,
                                        root.device(), info);
}

VulkanQueue::~VulkanQueue() {
  the_watched().remove(this);
  try_twice([this] { root_.wait(last_); });
}

void* VulkanQueue::handle() {
  VkCommandBuffer commands = recording().buffer;
  the_watched().add(commands, this);
  return commands;
}

std::unique_ptr<Gate> VulkanQueue::shut() {
  const auto semaphore = std::make_shared<const OwnedSemaphore>(root_.new_timeline());
  auto gate = std::make_unique<VulkanGate>(root_.device(), semaphore);
  gates_.push_back(semaphore);
  return gate;
}

void VulkanQueue::invert(void* buffer, size_t bytes) {
  constexpr uint32_t kThreads = 64;  // work group size, as in kernels/invert.comp
  constexpr uint32_t kMostGroups = 256;
  const Commands& commands = recording();
  const VkDescriptorBufferInfo data{root_.buffers.at(buffer).buffer.get(), 0, VK_WHOLE_SIZE};
  VkWriteDescriptorSet write{};
  write.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
  write.dstSet = commands.set;
  write.descriptorCount = 1;
  write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
  write.pBufferInfo = &data;
  g_vk.vkUpdateDescriptorSets(root_.device(), 1, &write, 0, nullptr);

  const auto words = static_cast<uint32_t>((bytes + 3) / 4);
  g_vk.vkCmdBindPipeline(commands.buffer, VK_PIPELINE_BIND_POINT_COMPUTE, root_.pipeline.get());
  g_vk.vkCmdBindDescriptorSets(commands.buffer, VK_PIPELINE_BIND_POINT_COMPUTE,
                               root_.pipeline_layout.get(), 0, 1, &commands.set, 0, nullptr);
  g_vk.vkCmdPushConstants(commands.buffer, root_.pipeline_layout.get(), VK_SHADER_STAGE_COMPUTE_BIT,
                          0, sizeof words, &words);
  g_vk.vkCmdDispatch(commands.buffer, std::min((words + kThreads - 1) / kThreads, kMostGroups), 1,
                     1);
  submit();
}

void VulkanQueue::read(void* staging, const void* buffer, size_t bytes) {
  if (!wrong_wait_.empty()) fail(EBADMSG, wrong_wait_);
  const VulkanBuffer& from = root_.buffers.at(buffer);
  if (!has_waited_) {
    std::memcpy(staging, from.mapped, bytes);
    return;
  }
  const VulkanBuffer& to = root_.staging.at(staging);
  const VkBufferCopy whole{0, 0, bytes};
  const Commands& commands = recording();
  g_vk.vkCmdCopyBuffer(commands.buffer, from.buffer.get(), to.buffer.get(), 1, &whole);
  barrier(commands.buffer, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT,
          VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
  submit();
}

std::unique_ptr<Event> VulkanQueue::record() {
  auto event = std::make_unique<VulkanEvent>(root_);
  const Commands& commands = recording();
  // An event cannot be set at the stage HOST, so it follows the barrier at kSetStages.
  barrier(commands.buffer, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_WRITE_BIT,
          VK_PIPELINE_STAGE_HOST_BIT | kSetStages, VK_ACCESS_HOST_READ_BIT);
  g_vk.events->vk_cmd_set_event(of_table(commands.buffer), of_table(event->get()), kSetStages);
  submit();
  event->set_submission(last_);
  return event;
}

bool VulkanQueue::note_wait(uint32_t count, const VkEvent* events, VkPipelineStageFlags from,
                            VkPipelineStageFlags to) {
  constexpr VkPipelineStageFlags kReads =
      VK_PIPELINE_STAGE_TRANSFER_BIT | VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
  if (count == 0) {
    wrong_wait_ = "vkCmdWaitEvents: no event: expected the producer's VkEvent";
    return false;
  }
  for (uint32_t i = 0; i < count; ++i) {
    if (root_.is_alive(events[i])) continue;
    wrong_wait_ = "vkCmdWaitEvents: unknown VkEvent: expected the producer's";
    return false;
  }
  if (from != kSetStages) {
    wrong_wait_ = "vkCmdWaitEvents: srcStageMask " + hexadecimal(from) +
                  ": expected the stage of vkCmdSetEvent, " + hexadecimal(kSetStages);
  } else if ((to & kReads) == 0) {
    wrong_wait_ = "vkCmdWaitEvents: dstStageMask " + hexadecimal(to) +
                  ": expected VK_PIPELINE_STAGE_TRANSFER_BIT of the read";
  }
  has_waited_ = true;
  return true;
}

// --- Command buffers

VulkanQueue::Commands& VulkanQueue::recording() {
  if (recording_ != nullptr) return *recording_;
  Commands& commands = idle();
  VkCommandBufferBeginInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  info.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  check_vulkan("vkBeginCommandBuffer", g_vk.vkBeginCommandBuffer(commands.buffer, &info));
  recording_ = &commands;
  return commands;
}

VulkanQueue::Commands& VulkanQueue::idle() {
  if (!commands_.empty() && root_.is_done(commands_.front()->submission)) {
    commands_.push_back(std::move(commands_.front()));
    commands_.pop_front();
    return *commands_.back();
  }
  auto made = std::make_unique<Commands>();
  const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1};
  VkDescriptorPoolCreateInfo pool{};
  pool.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
  pool.maxSets = 1;
  pool.poolSizeCount = 1;
  pool.pPoolSizes = &size;
  made->pool = make_vulkan<OwnedDescriptorPool>("vkCreateDescriptorPool",
                                                g_vk.vkCreateDescriptorPool, root_.device(), pool);
  VkDescriptorSetLayout layout = root_.set_layout.get();
  VkDescriptorSetAllocateInfo set{};
  set.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
  set.descriptorPool = made->pool.get();
  set.descriptorSetCount = 1;
  set.pSetLayouts = &layout;
  check_vulkan("vkAllocateDescriptorSets",
               g_vk.vkAllocateDescriptorSets(root_.device(), &set, &made->set));
  VkCommandBufferAllocateInfo buffer{};
  buffer.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  buffer.commandPool = pool_.get();
  buffer.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  buffer.commandBufferCount = 1;
  check_vulkan("vkAllocateCommandBuffers",
               g_vk.vkAllocateCommandBuffers(root_.device(), &buffer, &made->buffer));
  commands_.push_back(std::move(made));
  return *commands_.back();
}

void VulkanQueue::submit() {
  // After a failure below, these commands are never submitted; recording starts anew.
  Commands& commands = *std::exchange(recording_, nullptr);
  check_vulkan("vkEndCommandBuffer", g_vk.vkEndCommandBuffer(commands.buffer));
  std::vector<VkSemaphore> gates;
  gates.reserve(gates_.size());
  for (const auto& gate : gates_) gates.push_back(gate->get());
  last_ = commands.submission = root_.submit(commands.buffer, gates);
}

}  // namespace fletching::producer
