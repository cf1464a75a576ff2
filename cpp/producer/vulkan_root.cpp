#include "vulkan_root.hpp"

#include <algorithm>
#include <limits>

#include "kernels.hpp"

namespace fletching::producer {

VulkanFunctions g_vk;

void check_vulkan(const char* function, VkResult result) {
  if (result == VK_SUCCESS) return;
  const char* name = vulkan::status_name(result);
  fail(EIO, std::string(function) + ": failed: got " + (name != nullptr ? name : "the error") +
                " (" + std::to_string(result) + ")");
}

std::string version_text(uint32_t version) {
  return std::to_string(VK_API_VERSION_MAJOR(version)) + "." +
         std::to_string(VK_API_VERSION_MINOR(version)) + "." +
         std::to_string(VK_API_VERSION_PATCH(version));
}

namespace {

constexpr uint32_t kVersion = VK_API_VERSION_1_2;  // for timeline semaphores

template <class Function>
void require(Function& function, PFN_vkVoidFunction found, const char* name) {
  if (found == nullptr) fail(ENOSYS, std::string("the Vulkan driver has no ") + name);
  function = reinterpret_cast<Function>(found);
}

PFN_vkVoidFunction find_in_instance(VkInstance instance, const char* name) {
  return reinterpret_cast<PFN_vkVoidFunction>(
      g_vk.events->vk_get_instance_proc_addr(reinterpret_cast<vulkan::VkInstance>(instance), name));
}

// Tried twice: without a destroyer no object could be created.
PFN_vkVoidFunction find_destroyer(VkInstance instance, const char* name) {
  const PFN_vkVoidFunction found = find_in_instance(instance, name);
  return found != nullptr ? found : find_in_instance(instance, name);
}

bool has_timelines(VkPhysicalDevice device) {
  VkPhysicalDeviceTimelineSemaphoreFeatures timelines{};
  timelines.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES;
  VkPhysicalDeviceFeatures2 features{};
  features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  features.pNext = &timelines;
  g_vk.vkGetPhysicalDeviceFeatures2(device, &features);
  return timelines.timelineSemaphore == VK_TRUE;
}

// Any compute family can copy. Returns the number of families if there is no compute family.
uint32_t compute_family(VkPhysicalDevice device, uint32_t& count) {
  g_vk.vkGetPhysicalDeviceQueueFamilyProperties(device, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  g_vk.vkGetPhysicalDeviceQueueFamilyProperties(device, &count, families.data());
  const auto found = std::ranges::find_if(families, [](const VkQueueFamilyProperties& family) {
    return family.queueCount > 0 && (family.queueFlags & VK_QUEUE_COMPUTE_BIT) != 0;
  });
  return static_cast<uint32_t>(found - families.begin());
}

}  // namespace

// --- Finding the device

VulkanRoot::VulkanRoot() {
  Result<const vulkan::Functions*> functions = vulkan::functions();
  if (!functions) fail(functions.error().code(), functions.error().message());
  g_vk.events = *functions;
  open_instance();
  choose_device();
  open_device();
  done_ = new_timeline();
  make_pipeline();
}

void VulkanRoot::open_instance() {
  PFN_vkCreateInstance create = nullptr;
  require(create, find_in_instance(nullptr, "vkCreateInstance"), "vkCreateInstance");
  VkApplicationInfo application{};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.pApplicationName = "fletching_producer";
  application.apiVersion = kVersion;
  VkInstanceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  info.pApplicationInfo = &application;
  VkInstance made = nullptr;
  const VkResult result = create(&info, nullptr, &made);
  if (result == VK_ERROR_INCOMPATIBLE_DRIVER) {
    fail(ENODEV, "vkCreateInstance found no driver (-9); install one, such as mesa-vulkan-drivers");
  }
  check_vulkan("vkCreateInstance", result);
  require(g_vk.vkDestroyInstance, find_destroyer(made, "vkDestroyInstance"), "vkDestroyInstance");
  instance.reset(made);
#define FLETCHING_VULKAN_FIND(name) require(g_vk.name, find_in_instance(made, #name), #name);
  FLETCHING_VULKAN_INSTANCE_FUNCTIONS(FLETCHING_VULKAN_FIND)
#undef FLETCHING_VULKAN_FIND
}

void VulkanRoot::choose_device() {
  uint32_t count = 0;
  check_vulkan("vkEnumeratePhysicalDevices",
               g_vk.vkEnumeratePhysicalDevices(instance.get(), &count, nullptr));
  std::vector<VkPhysicalDevice> devices(count);
  check_vulkan("vkEnumeratePhysicalDevices",
               g_vk.vkEnumeratePhysicalDevices(instance.get(), &count, devices.data()));
  std::string reasons;
  for (index = 0; index < count; ++index) {
    const std::string reason = reject(devices[index]);
    if (reason.empty()) {
      physical_device = devices[index];
      return;
    }
    reasons += (index == 0 ? ": " : "; ") + reason;
  }
  fail(ENODEV, std::string("vkEnumeratePhysicalDevices found ") +
                   (count == 0 ? "no device" : "none that will do") + reasons);
}

// Returns why this device is unsuitable; empty if it is suitable.
std::string VulkanRoot::reject(VkPhysicalDevice candidate) {
  g_vk.vkGetPhysicalDeviceProperties(candidate, &properties);
  const std::string name = properties.deviceName;
  if (properties.apiVersion < kVersion) {
    return name + " has Vulkan " + version_text(properties.apiVersion) + ", and 1.2 is needed";
  }
  uint32_t families = 0;
  queue_family = compute_family(candidate, families);
  if (queue_family == families) return name + " has no queue that computes";
  if (!has_timelines(candidate)) return name + " has no timeline semaphores";
  return "";
}

void VulkanRoot::open_device() {
  g_vk.vkGetPhysicalDeviceMemoryProperties(physical_device, &memory_);
  const float priority = 1;
  VkDeviceQueueCreateInfo queues{};
  queues.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queues.queueFamilyIndex = queue_family;
  queues.queueCount = 1;
  queues.pQueuePriorities = &priority;
  VkPhysicalDeviceTimelineSemaphoreFeatures timelines{};
  timelines.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES;
  timelines.timelineSemaphore = VK_TRUE;
  VkDeviceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  info.pNext = &timelines;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queues;
  // Must be first: without it the device could not be destroyed.
  require(g_vk.vkDestroyDevice, find_in_instance(instance.get(), "vkDestroyDevice"),
          "vkDestroyDevice");
  VkDevice made = nullptr;
  check_vulkan("vkCreateDevice", g_vk.vkCreateDevice(physical_device, &info, nullptr, &made));
  device_.reset(made);
#define FLETCHING_VULKAN_FIND(name) \
  require(g_vk.name, g_vk.vkGetDeviceProcAddr(made, #name), #name);
  FLETCHING_VULKAN_DEVICE_FUNCTIONS(FLETCHING_VULKAN_FIND)
#undef FLETCHING_VULKAN_FIND
  g_vk.vkGetDeviceQueue(made, queue_family, 0, &queue);
}

// --- The kernel: one storage buffer, one push constant

void VulkanRoot::make_pipeline() {
  if (kVulkanImage.size == 0) {
    fail(ENODEV, "kernel: not built: expected glslangValidator when this library was built");
  }
  VkDescriptorSetLayoutBinding binding{};
  binding.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
  binding.descriptorCount = 1;
  binding.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
  VkDescriptorSetLayoutCreateInfo set{};
  set.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO;
  set.bindingCount = 1;
  set.pBindings = &binding;
  set_layout = make_vulkan<OwnedSetLayout>("vkCreateDescriptorSetLayout",
                                           g_vk.vkCreateDescriptorSetLayout, device(), set);

  const VkPushConstantRange words{VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(uint32_t)};
  const VkDescriptorSetLayout set_layouts[] = {set_layout.get()};
  VkPipelineLayoutCreateInfo layout{};
  layout.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
  layout.setLayoutCount = 1;
  layout.pSetLayouts = set_layouts;
  layout.pushConstantRangeCount = 1;
  layout.pPushConstantRanges = &words;
  pipeline_layout = make_vulkan<OwnedPipelineLayout>("vkCreatePipelineLayout",
                                                     g_vk.vkCreatePipelineLayout, device(), layout);

  VkShaderModuleCreateInfo code{};
  code.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
  code.codeSize = kVulkanImage.size;
  code.pCode = reinterpret_cast<const uint32_t*>(kVulkanImage.data);
  const auto module = make_vulkan<OwnedShaderModule>("vkCreateShaderModule",
                                                     g_vk.vkCreateShaderModule, device(), code);
  VkComputePipelineCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module.get();
  info.stage.pName = "main";
  info.layout = pipeline_layout.get();
  VkPipeline made = VK_NULL_HANDLE;
  check_vulkan("vkCreateComputePipelines",
               g_vk.vkCreateComputePipelines(device(), VK_NULL_HANDLE, 1, &info, nullptr, &made));
  pipeline = OwnedPipeline(device(), made);
}

// --- Memory

uint32_t VulkanRoot::memory_type(uint32_t allowed) const {
  constexpr VkMemoryPropertyFlags kNeeded =
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  for (uint32_t i = 0; i < memory_.memoryTypeCount; ++i) {
    const bool fits = (memory_.memoryTypes[i].propertyFlags & kNeeded) == kNeeded;
    if (fits && ((allowed >> i) & 1) != 0) return i;
  }
  fail(ENODEV, "Vulkan device: no memory type that is coherent and visible to the host");
}

VulkanBuffer VulkanRoot::new_buffer(size_t bytes) const {
  if (bytes > properties.limits.maxStorageBufferRange) {
    fail(EINVAL, "a buffer of " + std::to_string(bytes) + " bytes is more than the " +
                     std::to_string(properties.limits.maxStorageBufferRange) +
                     " that the Vulkan device takes");
  }
  VkBufferCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  info.size = bytes;
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
               VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  VulkanBuffer made;
  made.buffer = make_vulkan<OwnedBuffer>("vkCreateBuffer", g_vk.vkCreateBuffer, device(), info);
  VkMemoryRequirements needed{};
  g_vk.vkGetBufferMemoryRequirements(device(), made.buffer.get(), &needed);
  VkMemoryAllocateInfo allocation{};
  allocation.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  allocation.allocationSize = needed.size;
  allocation.memoryTypeIndex = memory_type(needed.memoryTypeBits);
  made.memory =
      make_vulkan<OwnedMemory>("vkAllocateMemory", g_vk.vkAllocateMemory, device(), allocation);
  check_vulkan("vkBindBufferMemory",
               g_vk.vkBindBufferMemory(device(), made.buffer.get(), made.memory.get(), 0));
  check_vulkan("vkMapMemory",
               g_vk.vkMapMemory(device(), made.memory.get(), 0, VK_WHOLE_SIZE, 0, &made.mapped));
  return made;
}

void VulkanBuffers::add(const void* key, VulkanBuffer buffer) {
  const std::lock_guard lock(mutex_);
  alive_.emplace(key, std::move(buffer));
}

void VulkanBuffers::remove(const void* key) noexcept {
  const std::lock_guard lock(mutex_);
  alive_.erase(key);
}

const VulkanBuffer& VulkanBuffers::at(const void* key) const {
  const std::lock_guard lock(mutex_);
  const auto found = alive_.find(key);
  if (found == alive_.end())
    fail(EINVAL, "buffer: unknown: expected one of the producer's on Vulkan");
  return found->second;
}

// --- The queue

OwnedSemaphore VulkanRoot::new_timeline() const {
  VkSemaphoreTypeCreateInfo type{};
  type.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkSemaphoreCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO;
  info.pNext = &type;
  return make_vulkan<OwnedSemaphore>("vkCreateSemaphore", g_vk.vkCreateSemaphore, device(), info);
}

uint64_t VulkanRoot::submit(VkCommandBuffer commands, std::span<const VkSemaphore> gates) {
  const auto count = static_cast<uint32_t>(gates.size());
  const std::vector<uint64_t> open(count, 1);
  const std::vector<VkPipelineStageFlags> stages(count, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT);
  VkSemaphore done = done_.get();
  const std::lock_guard lock(mutex_);
  const uint64_t submission = submitted_ + 1;
  VkTimelineSemaphoreSubmitInfo values{};
  values.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO;
  values.waitSemaphoreValueCount = count;
  values.pWaitSemaphoreValues = open.data();
  values.signalSemaphoreValueCount = 1;
  values.pSignalSemaphoreValues = &submission;
  VkSubmitInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  info.pNext = &values;
  info.waitSemaphoreCount = count;
  info.pWaitSemaphores = gates.data();
  info.pWaitDstStageMask = stages.data();
  info.commandBufferCount = 1;
  info.pCommandBuffers = &commands;
  info.signalSemaphoreCount = 1;
  info.pSignalSemaphores = &done;
  check_vulkan("vkQueueSubmit", g_vk.vkQueueSubmit(queue, 1, &info, VK_NULL_HANDLE));
  submitted_ = submission;
  return submission;
}

bool VulkanRoot::is_done(uint64_t submission) const {
  uint64_t reached = 0;
  check_vulkan("vkGetSemaphoreCounterValue",
               g_vk.vkGetSemaphoreCounterValue(device(), done_.get(), &reached));
  return reached >= submission;
}

void VulkanRoot::wait(uint64_t submission) const {
  VkSemaphore done = done_.get();
  VkSemaphoreWaitInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
  info.semaphoreCount = 1;
  info.pSemaphores = &done;
  info.pValues = &submission;
  check_vulkan("vkWaitSemaphores",
               g_vk.vkWaitSemaphores(device(), &info, std::numeric_limits<uint64_t>::max()));
}

// --- Events

VkEvent VulkanRoot::new_event() {
  const vulkan::VkEventCreateInfo info{vulkan::kVkStructureTypeEventCreateInfo, nullptr, 0};
  const std::lock_guard lock(mutex_);
  destroy_retired();
  vulkan::VkEvent made{};
  check_vulkan("vkCreateEvent", static_cast<VkResult>(g_vk.events->vk_create_event(
                                    of_table(device()), &info, nullptr, &made)));
  try {
    return events_.emplace(reinterpret_cast<VkEvent>(made), kNotRetired).first->first;
  } catch (...) {
    g_vk.events->vk_destroy_event(of_table(device()), made, nullptr);
    throw;
  }
}

void VulkanRoot::retire(VkEvent event) noexcept {
  const std::lock_guard lock(mutex_);
  events_.find(event)->second = submitted_;
}

bool VulkanRoot::is_alive(VkEvent event) {
  const std::lock_guard lock(mutex_);
  const auto found = events_.find(event);
  return found != events_.end() && found->second == kNotRetired;
}

void VulkanRoot::destroy_retired() {
  std::erase_if(events_, [this](const auto& entry) {
    const auto [event, last] = entry;
    if (last == kNotRetired || !is_done(last)) return false;
    g_vk.events->vk_destroy_event(of_table(device()), of_table(event), nullptr);
    return true;
  });
}

}  // namespace fletching::producer
