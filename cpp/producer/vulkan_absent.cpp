// The Vulkan backend where its headers were not there, or a VkBuffer does not fit into a pointer.
#include "arguments.hpp"
#include "backend.hpp"
#include "vulkan_handles.h"

namespace fletching::producer {
namespace {

constexpr char kReason[] =
    "the Vulkan backend was left out, because there was no vulkan/vulkan.h, or pointers have not "
    "64 bits, when this library was built";

// What is absent is never asked for more.
class NoVulkan : public Backend {
 public:
  const char* Name() const override { return "vulkan"; }
  ArrowDeviceType DeviceType() const override { return ARROW_DEVICE_VULKAN; }
  int64_t DeviceId() const override { return 0; }
  Device Find() override { return {Presence::kAbsent, kReason}; }

  void* Allocate(size_t) override { Fail(ENODEV, kReason); }
  void Free(void*) noexcept override {}
  void CopyTo(void*, const void*, size_t) override { Fail(ENODEV, kReason); }
  void CopyFrom(void*, const void*, size_t) override { Fail(ENODEV, kReason); }
  void* AllocateStaging(size_t) override { Fail(ENODEV, kReason); }
  void FreeStaging(void*) noexcept override {}
  std::unique_ptr<Queue> NewQueue() override { Fail(ENODEV, kReason); }
};

}  // namespace

Backend* VulkanBackend() {
  static NoVulkan device;
  return &device;
}

}  // namespace fletching::producer

int FletchingProducerVulkanHandles(struct FletchingProducerVulkan* handles,
                                   struct FletchingMessage* message) {
  using namespace fletching::producer;
  return Guarded(message, [&] {
    RequirePointer("handles", handles);
    *handles = {};
    BackendByName("vulkan");
  });
}
