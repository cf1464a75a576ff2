// The basis of the Vulkan backend: the functions, the device and its single queue.
#ifndef FLETCHING_PRODUCER_VULKAN_ROOT_HPP
#define FLETCHING_PRODUCER_VULKAN_ROOT_HPP

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

#include "message.hpp"
#include "runtimes/vulkan.hpp"

namespace fletching::producer {

// --- Functions. The event operations are in the generated table `events`.

#define FLETCHING_VULKAN_INSTANCE_FUNCTIONS(X) \
  X(vkCreateDevice)                            \
  X(vkDestroyInstance)                         \
  X(vkEnumeratePhysicalDevices)                \
  X(vkGetDeviceProcAddr)                       \
  X(vkGetPhysicalDeviceFeatures2)              \
  X(vkGetPhysicalDeviceMemoryProperties)       \
  X(vkGetPhysicalDeviceProperties)             \
  X(vkGetPhysicalDeviceQueueFamilyProperties)

#define FLETCHING_VULKAN_DEVICE_FUNCTIONS(X) \
  X(vkAllocateCommandBuffers)                \
  X(vkAllocateDescriptorSets)                \
  X(vkAllocateMemory)                        \
  X(vkBeginCommandBuffer)                    \
  X(vkBindBufferMemory)                      \
  X(vkCmdBindDescriptorSets)                 \
  X(vkCmdBindPipeline)                       \
  X(vkCmdCopyBuffer)                         \
  X(vkCmdDispatch)                           \
  X(vkCmdPipelineBarrier)                    \
  X(vkCmdPushConstants)                      \
  X(vkCmdWaitEvents)                         \
  X(vkCreateBuffer)                          \
  X(vkCreateCommandPool)                     \
  X(vkCreateComputePipelines)                \
  X(vkCreateDescriptorPool)                  \
  X(vkCreateDescriptorSetLayout)             \
  X(vkCreatePipelineLayout)                  \
  X(vkCreateSemaphore)                       \
  X(vkCreateShaderModule)                    \
  X(vkDestroyBuffer)                         \
  X(vkDestroyCommandPool)                    \
  X(vkDestroyDescriptorPool)                 \
  X(vkDestroyDescriptorSetLayout)            \
  X(vkDestroyDevice)                         \
  X(vkDestroyPipeline)                       \
  X(vkDestroyPipelineLayout)                 \
  X(vkDestroySemaphore)                      \
  X(vkDestroyShaderModule)                   \
  X(vkEndCommandBuffer)                      \
  X(vkFreeMemory)                            \
  X(vkGetBufferMemoryRequirements)           \
  X(vkGetDeviceQueue)                        \
  X(vkGetSemaphoreCounterValue)              \
  X(vkMapMemory)                             \
  X(vkQueueSubmit)                           \
  X(vkSignalSemaphore)                       \
  X(vkUpdateDescriptorSets)                  \
  X(vkWaitSemaphores)

struct VulkanFunctions {
  const vulkan::Functions* events = nullptr;
#define FLETCHING_VULKAN_MEMBER(name) PFN_##name name = nullptr;
  FLETCHING_VULKAN_INSTANCE_FUNCTIONS(FLETCHING_VULKAN_MEMBER)
  FLETCHING_VULKAN_DEVICE_FUNCTIONS(FLETCHING_VULKAN_MEMBER)
#undef FLETCHING_VULKAN_MEMBER
};

// Converts handles to the types of the table.
inline vulkan::VkDevice of_table(VkDevice device) {
  return reinterpret_cast<vulkan::VkDevice>(device);
}
inline vulkan::VkEvent of_table(VkEvent event) { return reinterpret_cast<vulkan::VkEvent>(event); }
inline vulkan::VkCommandBuffer of_table(VkCommandBuffer commands) {
  return reinterpret_cast<vulkan::VkCommandBuffer>(commands);
}

// Set when the device is found; not used earlier.
extern VulkanFunctions g_vk;

void check_vulkan(const char* function, VkResult result);
std::string version_text(uint32_t version);  // of Vulkan: "1.3.230"

// --- Owned handles

struct DestroyVulkanInstance {
  void operator()(VkInstance instance) const { g_vk.vkDestroyInstance(instance, nullptr); }
};
struct DestroyVulkanDevice {
  void operator()(VkDevice device) const { g_vk.vkDestroyDevice(device, nullptr); }
};
using OwnedVulkanInstance =
    std::unique_ptr<std::remove_pointer_t<VkInstance>, DestroyVulkanInstance>;
using OwnedVulkanDevice = std::unique_ptr<std::remove_pointer_t<VkDevice>, DestroyVulkanDevice>;

// Owner of a handle that belongs to a VkDevice.
template <class HandleType, auto Destroy>
class OwnedVulkan {
 public:
  using Handle = HandleType;

  OwnedVulkan() = default;
  OwnedVulkan(VkDevice device, Handle handle) : device_(device), handle_(handle) {}
  OwnedVulkan(OwnedVulkan&& other) noexcept
      : device_(other.device_), handle_(std::exchange(other.handle_, VK_NULL_HANDLE)) {}
  OwnedVulkan& operator=(OwnedVulkan&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  OwnedVulkan(const OwnedVulkan&) = delete;
  OwnedVulkan& operator=(const OwnedVulkan&) = delete;
  ~OwnedVulkan() {
    if (handle_ != VK_NULL_HANDLE) (g_vk.*Destroy)(device_, handle_, nullptr);
  }

  Handle get() const { return handle_; }

 private:
  VkDevice device_ = nullptr;
  Handle handle_ = VK_NULL_HANDLE;
};

using OwnedBuffer = OwnedVulkan<VkBuffer, &VulkanFunctions::vkDestroyBuffer>;
using OwnedMemory = OwnedVulkan<VkDeviceMemory, &VulkanFunctions::vkFreeMemory>;
using OwnedSemaphore = OwnedVulkan<VkSemaphore, &VulkanFunctions::vkDestroySemaphore>;
using OwnedCommandPool = OwnedVulkan<VkCommandPool, &VulkanFunctions::vkDestroyCommandPool>;
using OwnedDescriptorPool =
    OwnedVulkan<VkDescriptorPool, &VulkanFunctions::vkDestroyDescriptorPool>;
using OwnedSetLayout =
    OwnedVulkan<VkDescriptorSetLayout, &VulkanFunctions::vkDestroyDescriptorSetLayout>;
using OwnedPipelineLayout =
    OwnedVulkan<VkPipelineLayout, &VulkanFunctions::vkDestroyPipelineLayout>;
using OwnedPipeline = OwnedVulkan<VkPipeline, &VulkanFunctions::vkDestroyPipeline>;
using OwnedShaderModule = OwnedVulkan<VkShaderModule, &VulkanFunctions::vkDestroyShaderModule>;

// Calls a vkCreate* function; `name` is its name in errors.
template <class Owned, class Create, class Info>
Owned make_vulkan(const char* name, Create create, VkDevice device, const Info& info) {
  typename Owned::Handle handle = VK_NULL_HANDLE;
  check_vulkan(name, create(device, &info, nullptr, &handle));
  return Owned(device, handle);
}

// --- Memory mapped on the host

struct VulkanBuffer {
  OwnedMemory memory;
  OwnedBuffer buffer;  // destroyed before its memory
  void* mapped = nullptr;
};

// Live allocations by key: the VkBuffer, or the host address. Thread-safe.
class VulkanBuffers {
 public:
  void add(const void* key, VulkanBuffer buffer);
  void remove(const void* key) noexcept;
  // The reference is valid until the buffer is removed. Throws EINVAL for an unknown key.
  const VulkanBuffer& at(const void* key) const;

 private:
  mutable std::mutex mutex_;
  std::map<const void*, VulkanBuffer> alive_;
};

// --- The device

// An event orders commands of one VkQueue only, so all Queues of the backend share one. It also has
// a timeline: each submission has a number and is done when `done` reaches it.
class VulkanRoot {
 public:
  // Opens the first suitable device. Throws ENODEV or EIO without leaking if there is none.
  VulkanRoot();
  VulkanRoot(const VulkanRoot&) = delete;
  VulkanRoot& operator=(const VulkanRoot&) = delete;

  VkDevice device() const { return device_.get(); }
  VulkanBuffer new_buffer(size_t bytes) const;
  OwnedSemaphore new_timeline() const;

  // This and the following functions are thread-safe. The commands, and all later submissions, wait
  // until every semaphore in `gates` is 1.
  uint64_t submit(VkCommandBuffer commands, std::span<const VkSemaphore> gates);
  bool is_done(uint64_t submission) const;
  void wait(uint64_t submission) const;

  VkEvent new_event();
  // Destroys the event after all current submissions are done.
  void retire(VkEvent event) noexcept;
  // Whether the event was created here and is not retired.
  bool is_alive(VkEvent event);

  OwnedVulkanInstance instance;
  VkPhysicalDevice physical_device = nullptr;
  uint32_t index = 0;  // index of the physical device in the instance
  uint32_t queue_family = 0;
  VkQueue queue = nullptr;
  VkPhysicalDeviceProperties properties{};

 private:
  void open_instance();
  void choose_device();
  std::string reject(VkPhysicalDevice candidate);
  void open_device();
  void make_pipeline();
  uint32_t memory_type(uint32_t allowed) const;
  void destroy_retired();

  static constexpr uint64_t kNotRetired = std::numeric_limits<uint64_t>::max();

  OwnedVulkanDevice device_;
  OwnedSemaphore done_;
  VkPhysicalDeviceMemoryProperties memory_{};
  std::mutex mutex_;  // guards the queue and the members below
  uint64_t submitted_ = 0;
  std::map<VkEvent, uint64_t> events_;  // with the last submission that may use it

 public:
  OwnedSetLayout set_layout;
  OwnedPipelineLayout pipeline_layout;
  OwnedPipeline pipeline;  // the kernel
  VulkanBuffers buffers;   // by VkBuffer
  VulkanBuffers staging;   // by address
};

}  // namespace fletching::producer

#endif  // FLETCHING_PRODUCER_VULKAN_ROOT_HPP
