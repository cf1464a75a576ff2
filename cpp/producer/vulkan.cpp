// The first Vulkan device that will do. Its buffers are VkBuffer handles, its events VkEvent.
#include <cstring>

#include "arguments.hpp"
#include "backend.hpp"
#include "vulkan_handles.h"
#include "vulkan_queue.hpp"

namespace fletching::producer {
namespace {

// The kernel takes words.
size_t RoundUp(size_t bytes) { return bytes < 4 ? 4 : (bytes + 3) / 4 * 4; }

class Vulkan : public Backend {
 public:
  const char* Name() const override { return "vulkan"; }
  ArrowDeviceType DeviceType() const override { return ARROW_DEVICE_VULKAN; }
  int64_t DeviceId() const override { return root_->index; }

  Device Find() override {
    return finding_.Get([&]() -> Device {
      root_ = std::make_unique<VulkanRoot>();
      return {Presence::kReal, Describe(root_->properties)};
    });
  }

  void* Allocate(size_t bytes) override {
    VulkanBuffer made = root_->NewBuffer(RoundUp(bytes));
    void* handle = reinterpret_cast<void*>(made.buffer.get());
    root_->buffers.Add(handle, std::move(made));
    return handle;
  }
  void Free(void* buffer) noexcept override { root_->buffers.Remove(buffer); }
  void CopyTo(void* buffer, const void* host, size_t bytes) override {
    std::memcpy(root_->buffers.At(buffer).mapped, host, bytes);
  }
  void CopyFrom(void* host, const void* buffer, size_t bytes) override {
    std::memcpy(host, root_->buffers.At(buffer).mapped, bytes);
  }
  void* AllocateStaging(size_t bytes) override {
    VulkanBuffer made = root_->NewBuffer(RoundUp(bytes));
    void* address = made.mapped;
    root_->staging.Add(address, std::move(made));
    return address;
  }
  void FreeStaging(void* staging) noexcept override { root_->staging.Remove(staging); }

  std::unique_ptr<Queue> NewQueue() override { return std::make_unique<VulkanQueue>(*root_); }

  void GiveHandles(FletchingProducerVulkan& handles) const {
    handles = {root_->instance.get(),
               root_->physical_device,
               root_->device(),
               root_->queue,
               root_->queue_family,
               kSetStages,
               reinterpret_cast<decltype(handles.get_device_proc_addr)>(FindWatched)};
  }

 private:
  static std::string Describe(const VkPhysicalDeviceProperties& properties) {
    return std::string("Vulkan ") + VersionText(properties.apiVersion) + ": " +
           properties.deviceName;
  }

  Finding finding_;
  std::unique_ptr<VulkanRoot> root_;
};

Vulkan& TheVulkan() {
  // Never destroyed: arrays may be released while the process ends.
  static auto& device = *new Vulkan;
  return device;
}

}  // namespace

Backend* VulkanBackend() { return &TheVulkan(); }

}  // namespace fletching::producer

int FletchingProducerVulkanHandles(struct FletchingProducerVulkan* handles,
                                   struct FletchingMessage* message) {
  using namespace fletching::producer;
  return Guarded(message, [&] {
    RequirePointer("handles", handles);
    *handles = {};
    BackendByName("vulkan");
    TheVulkan().GiveHandles(*handles);
  });
}
