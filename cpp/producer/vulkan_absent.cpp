// The Vulkan backend for builds without the Vulkan headers, or where a VkBuffer does not fit in a
// pointer.
#include "arguments.hpp"
#include "backend.hpp"
#include "vulkan_handles.h"

namespace fletching::producer {
namespace {

constexpr char kReason[] =
    "Vulkan backend: not built: expected vulkan/vulkan.h and pointers of "
    "64 bits, when this library was built";

// An absent device: no other function is called.
class NoVulkan : public Backend {
 public:
  const char* name() const override { return "vulkan"; }
  ArrowDeviceType device_type() const override { return ARROW_DEVICE_VULKAN; }
  int64_t device_id() const override { return 0; }
  Device find() override { return {Presence::kAbsent, kReason}; }

  void* allocate(size_t) override { fail(ENODEV, kReason); }
  void free(void*) noexcept override {}
  void copy_to(void*, const void*, size_t) override { fail(ENODEV, kReason); }
  void copy_from(void*, const void*, size_t) override { fail(ENODEV, kReason); }
  void* allocate_staging(size_t) override { fail(ENODEV, kReason); }
  void free_staging(void*) noexcept override {}
  std::unique_ptr<Queue> new_queue() override { fail(ENODEV, kReason); }
};

}  // namespace

Backend* vulkan_backend() {
  static NoVulkan device;
  return &device;
}

}  // namespace fletching::producer

int FletchingProducerVulkanHandles(struct FletchingProducerVulkan* handles,
                                   struct FletchingMessage* message) {
  using namespace fletching::producer;
  return guarded(message, [&] {
    require_pointer("handles", handles);
    *handles = {};
    backend_by_name("vulkan");
  });
}
