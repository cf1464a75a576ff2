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
  explicit VulkanEvent(VulkanRoot& root) : root_(root), event_(root.NewEvent()) {}
  ~VulkanEvent() override { root_.Retire(event_); }
  VulkanEvent(const VulkanEvent&) = delete;
  VulkanEvent& operator=(const VulkanEvent&) = delete;

  void* Address() noexcept override { return &event_; }
  // A VkEvent has no host wait.
  void Wait() override { root_.Wait(submission_); }

  VkEvent get() const { return event_; }
  void SetSubmission(uint64_t submission) { submission_ = submission; }

 private:
  VulkanRoot& root_;
  VkEvent event_;
  uint64_t submission_ = 0;
};

// A timeline semaphore, which the host makes 1.
class VulkanGate : public Gate {
 public:
  VulkanGate(VkDevice device, std::shared_ptr<const OwnedSemaphore> semaphore)
      : device_(device), semaphore_(std::move(semaphore)) {}
  ~VulkanGate() override {
    TryTwice([this] { Signal(); });
  }
  VulkanGate(const VulkanGate&) = delete;
  VulkanGate& operator=(const VulkanGate&) = delete;

  void Open() override { Signal(); }

 private:
  void Signal() {
    if (open_) return;
    VkSemaphoreSignalInfo info{};
    info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO;
    info.semaphore = semaphore_->get();
    info.value = 1;
    CheckVulkan("vkSignalSemaphore", g_vk.vkSignalSemaphore(device_, &info));
    open_ = true;
  }

  VkDevice device_;
  std::shared_ptr<const OwnedSemaphore> semaphore_;
  bool open_ = false;
};

// --- The command buffers that consumers have

class Watched {
 public:
  void Add(VkCommandBuffer commands, VulkanQueue* queue) {
    const std::lock_guard lock(mutex_);
    queues_[commands] = queue;
  }
  void Remove(const VulkanQueue* queue) noexcept {
    const std::lock_guard lock(mutex_);
    std::erase_if(queues_, [=](const auto& entry) { return entry.second == queue; });
  }
  // NULL: the consumer's own.
  VulkanQueue* Find(VkCommandBuffer commands) {
    const std::lock_guard lock(mutex_);
    const auto found = queues_.find(commands);
    return found == queues_.end() ? nullptr : found->second;
  }

 private:
  std::mutex mutex_;
  std::map<VkCommandBuffer, VulkanQueue*> queues_;
};

Watched& TheWatched() {
  // Never destroyed: queues may be destroyed while the process ends.
  static auto& watched = *new Watched;
  return watched;
}

VKAPI_ATTR void VKAPI_CALL WaitEvents(VkCommandBuffer commands, uint32_t count,
                                      const VkEvent* events, VkPipelineStageFlags from,
                                      VkPipelineStageFlags to, uint32_t memory_count,
                                      const VkMemoryBarrier* memory, uint32_t buffer_count,
                                      const VkBufferMemoryBarrier* buffers, uint32_t image_count,
                                      const VkImageMemoryBarrier* images) {
  VulkanQueue* queue = TheWatched().Find(commands);
  if (queue != nullptr && !queue->NoteWait(count, events, from, to)) return;
  g_vk.vkCmdWaitEvents(commands, count, events, from, to, memory_count, memory, buffer_count,
                       buffers, image_count, images);
}

std::string Hexadecimal(VkFlags flags) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (; flags != 0 || text.empty(); flags >>= 4) text.insert(text.begin(), kDigits[flags & 0xf]);
  return "0x" + text;
}

// Makes what was written before it visible after it.
void Barrier(VkCommandBuffer commands, VkPipelineStageFlags from, VkAccessFlags written,
             VkPipelineStageFlags to, VkAccessFlags read) {
  const VkMemoryBarrier memory{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, written, read};
  g_vk.vkCmdPipelineBarrier(commands, from, to, 0, 1, &memory, 0, nullptr, 0, nullptr);
}

}  // namespace

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL FindWatched(VkDevice device, const char* name) {
  if (name != nullptr && std::strcmp(name, "vkCmdWaitEvents") == 0) {
    return reinterpret_cast<PFN_vkVoidFunction>(WaitEvents);
  }
  return g_vk.vkGetDeviceProcAddr(device, name);
}

// --- The queue

VulkanQueue::VulkanQueue(VulkanRoot& root) : root_(root) {
  VkCommandPoolCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  info.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  info.queueFamilyIndex = root.queue_family;
  pool_ = MakeVulkan<OwnedCommandPool>("vkCreateCommandPool", g_vk.vkCreateCommandPool,
                                       root.device(), info);
}

VulkanQueue::~VulkanQueue() {
  TheWatched().Remove(this);
  TryTwice([this] { root_.Wait(last_); });
}

void* VulkanQueue::Handle() {
  VkCommandBuffer commands = Recording().buffer;
  TheWatched().Add(commands, this);
  return commands;
}

std::unique_ptr<Gate> VulkanQueue::Shut() {
  const auto semaphore = std::make_shared<const OwnedSemaphore>(root_.NewTimeline());
  auto gate = std::make_unique<VulkanGate>(root_.device(), semaphore);
  gates_.push_back(semaphore);
  return gate;
}

void VulkanQueue::Invert(void* buffer, size_t bytes) {
  constexpr uint32_t kThreads = 64;  // of a group: kernels/invert.comp
  constexpr uint32_t kMostGroups = 256;
  const Commands& commands = Recording();
  const VkDescriptorBufferInfo data{root_.buffers.At(buffer).buffer.get(), 0, VK_WHOLE_SIZE};
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
  Submit();
}

void VulkanQueue::Read(void* staging, const void* buffer, size_t bytes) {
  if (!wrong_wait_.empty()) Fail(EBADMSG, wrong_wait_);
  const VulkanBuffer& from = root_.buffers.At(buffer);
  if (!has_waited_) {
    std::memcpy(staging, from.mapped, bytes);
    return;
  }
  const VulkanBuffer& to = root_.staging.At(staging);
  const VkBufferCopy whole{0, 0, bytes};
  const Commands& commands = Recording();
  g_vk.vkCmdCopyBuffer(commands.buffer, from.buffer.get(), to.buffer.get(), 1, &whole);
  Barrier(commands.buffer, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT,
          VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
  Submit();
}

std::unique_ptr<Event> VulkanQueue::Record() {
  auto event = std::make_unique<VulkanEvent>(root_);
  const Commands& commands = Recording();
  // The event may not be set at the stage HOST; it comes after the barrier at kSetStages.
  Barrier(commands.buffer, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_WRITE_BIT,
          VK_PIPELINE_STAGE_HOST_BIT | kSetStages, VK_ACCESS_HOST_READ_BIT);
  g_vk.events->vk_cmd_set_event(OfTable(commands.buffer), OfTable(event->get()), kSetStages);
  Submit();
  event->SetSubmission(last_);
  return event;
}

bool VulkanQueue::NoteWait(uint32_t count, const VkEvent* events, VkPipelineStageFlags from,
                           VkPipelineStageFlags to) {
  constexpr VkPipelineStageFlags kReads =
      VK_PIPELINE_STAGE_TRANSFER_BIT | VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
  if (count == 0) {
    wrong_wait_ = "vkCmdWaitEvents was given no event";
    return false;
  }
  for (uint32_t i = 0; i < count; ++i) {
    if (root_.IsAlive(events[i])) continue;
    wrong_wait_ = "vkCmdWaitEvents was given a VkEvent that is none of the producer's";
    return false;
  }
  if (from != kSetStages) {
    wrong_wait_ = "vkCmdWaitEvents was given the srcStageMask " + Hexadecimal(from) +
                  ", and the event is set with " + Hexadecimal(kSetStages);
  } else if ((to & kReads) == 0) {
    wrong_wait_ = "vkCmdWaitEvents was given the dstStageMask " + Hexadecimal(to) +
                  ", and the read is in VK_PIPELINE_STAGE_TRANSFER_BIT";
  }
  has_waited_ = true;
  return true;
}

// --- Command buffers

VulkanQueue::Commands& VulkanQueue::Recording() {
  if (recording_ != nullptr) return *recording_;
  Commands& commands = Idle();
  VkCommandBufferBeginInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  info.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  CheckVulkan("vkBeginCommandBuffer", g_vk.vkBeginCommandBuffer(commands.buffer, &info));
  recording_ = &commands;
  return commands;
}

VulkanQueue::Commands& VulkanQueue::Idle() {
  if (!commands_.empty() && root_.IsDone(commands_.front()->submission)) {
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
  made->pool = MakeVulkan<OwnedDescriptorPool>("vkCreateDescriptorPool",
                                               g_vk.vkCreateDescriptorPool, root_.device(), pool);
  VkDescriptorSetLayout layout = root_.set_layout.get();
  VkDescriptorSetAllocateInfo set{};
  set.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
  set.descriptorPool = made->pool.get();
  set.descriptorSetCount = 1;
  set.pSetLayouts = &layout;
  CheckVulkan("vkAllocateDescriptorSets",
              g_vk.vkAllocateDescriptorSets(root_.device(), &set, &made->set));
  VkCommandBufferAllocateInfo buffer{};
  buffer.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  buffer.commandPool = pool_.get();
  buffer.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  buffer.commandBufferCount = 1;
  CheckVulkan("vkAllocateCommandBuffers",
              g_vk.vkAllocateCommandBuffers(root_.device(), &buffer, &made->buffer));
  commands_.push_back(std::move(made));
  return *commands_.back();
}

void VulkanQueue::Submit() {
  // What fails from here on is recorded anew, and never submitted.
  Commands& commands = *std::exchange(recording_, nullptr);
  CheckVulkan("vkEndCommandBuffer", g_vk.vkEndCommandBuffer(commands.buffer));
  std::vector<VkSemaphore> gates;
  gates.reserve(gates_.size());
  for (const auto& gate : gates_) gates.push_back(gate->get());
  last_ = commands.submission = root_.Submit(commands.buffer, gates);
}

}  // namespace fletching::producer
