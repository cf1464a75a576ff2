// The first suitable Vulkan device. Its buffers are VkBuffer handles, its events VkEvent.
#include <cstring>

#include "arguments.hpp"
#include "backend.hpp"
#include "vulkan_handles.h"
#include "vulkan_queue.hpp"

namespace fletching::producer {
namespace {

// The kernel processes 4-byte words.
size_t round_up(size_t bytes) { return bytes < 4 ? 4 : (bytes + 3) / 4 * 4; }

class Vulkan : public Backend {
 public:
  const char* name() const override { return "vulkan"; }
  ArrowDeviceType device_type() const override { return ARROW_DEVICE_VULKAN; }
  int64_t device_id() const override { return root_->index; }

  Device find() override {
    return finding_.get([&]() -> Device {
      root_ = std::make_unique<VulkanRoot>();
      return {Presence::kReal, describe(root_->properties)};
    });
  }

  void* allocate(size_t bytes) override {
    VulkanBuffer made = root_->new_buffer(round_up(bytes));
    void* handle = reinterpret_cast<void*>(made.buffer.get());
    root_->buffers.add(handle, std::move(made));
    return handle;
  }
  void free(void* buffer) noexcept override { root_->buffers.remove(buffer); }
  void copy_to(void* buffer, const void* host, size_t bytes) override {
    std::memcpy(root_->buffers.at(buffer).mapped, host, bytes);
  }
  void copy_from(void* host, const void* buffer, size_t bytes) override {
    std::memcpy(host, root_->buffers.at(buffer).mapped, bytes);
  }
  void* allocate_staging(size_t bytes) override {
    VulkanBuffer made = root_->new_buffer(round_up(bytes));
    void* address = made.mapped;
    root_->staging.add(address, std::move(made));
    return address;
  }
  void free_staging(void* staging) noexcept override { root_->staging.remove(staging); }

  std::unique_ptr<Queue> new_queue() override { return std::make_unique<VulkanQueue>(*root_); }

  void give_handles(FletchingProducerVulkan& handles) const {
    handles = {root_->instance.get(),
               root_->physical_device,
               root_->device(),
               root_->queue,
               root_->queue_family,
               kSetStages,
               reinterpret_cast<decltype(handles.get_device_proc_addr)>(find_watched)};
  }

 private:
  static std::string describe(const VkPhysicalDeviceProperties& properties) {
    return std::string("Vulkan ") + version_text(properties.apiVersion) + ": " +
           properties.deviceName;
  }

  Finding finding_;
  std::unique_ptr<VulkanRoot> root_;
};

Vulkan& the_vulkan() {
  // Never destroyed: arrays may be released at process exit.
  static auto& device = *new Vulkan;
  return device;
}

}  // namespace

Backend* vulkan_backend() { return &the_vulkan(); }

}  // namespace fletching::producer

int FletchingProducerVulkanHandles(struct FletchingProducerVulkan* handles,
                                   struct FletchingMessage* message) {
  using namespace fletching::producer;
  return guarded(message, [&] {
    require_pointer("handles", handles);
    *handles = {};
    backend_by_name("vulkan");
    the_vulkan().give_handles(*handles);
  });
}
