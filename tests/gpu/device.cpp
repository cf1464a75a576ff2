#include "device.hpp"

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "error.hpp"
#include "ext_dev.h"
#include "fletching/waiter.hpp"
#include "gate.h"
#include "vulkan_handles.h"

namespace fletching::gpu {
namespace {

/// The waiter that a consumer of ext_dev registers: the functions of ext_dev.h.
FletchingWaiter ext_dev_waiter() {
  FletchingWaiter waiter{};
  waiter.synchronize = [](void*, void* sync_event, std::int64_t, FletchingMessage*) {
    const auto* event = static_cast<const FletchingExtDevEvent*>(sync_event);
    event->synchronize(event);
    return 0;
  };
  waiter.wait_on = [](void*, void* sync_event, std::int64_t, void* stream, FletchingMessage*) {
    const auto* event = static_cast<const FletchingExtDevEvent*>(sync_event);
    return event->wait_on(event, static_cast<FletchingExtDevQueue*>(stream));
  };
  waiter.ready = [](void*, void* sync_event, std::int64_t, int* ready, FletchingMessage*) {
    const auto* event = static_cast<const FletchingExtDevEvent*>(sync_event);
    *ready = event->query(event);
    return 0;
  };
  return waiter;
}

vulkan::WaitContext vulkan_context() {
  FletchingProducerVulkan handles{};
  FletchingMessage message{};
  const int code = FletchingProducerVulkanHandles(&handles, &message);
  if (code != 0) fail(code, printable(message.text));
  vulkan::WaitContext context;
  context.device = handles.device;
  context.producer_queue = handles.queue;
  context.queue = handles.queue;
  context.set_stages = handles.set_stages;
  // A VkDevice is a pointer; this header of the producer's does without Vulkan's.
  context.get_device_proc_addr =
      reinterpret_cast<decltype(context.get_device_proc_addr)>(handles.get_device_proc_addr);
  return context;
}

}  // namespace

Device::Device(const char* backend) : backend_(backend) {
  std::int32_t presence = FLETCHING_PRODUCER_ABSENT;
  FletchingMessage message{};
  const int code = FletchingProducerBackendPresence(backend, &presence, &message);
  description_ = printable(message.text);
  if (code != 0) fail(code, description_);
  if (presence == FLETCHING_PRODUCER_ABSENT) return;
  status_ = presence == FLETCHING_PRODUCER_STAND_IN ? "stand-in" : "real";
  if (std::strcmp(backend, "vulkan") == 0) vulkan_ = vulkan_context();
  if (std::strcmp(backend, "ext_dev") == 0) {
    const Status registered = register_waiter(ARROW_DEVICE_EXT_DEV, ext_dev_waiter());
    if (!registered) fail(registered.error().code(), registered.error().message());
  }
}

bool Device::has_queues() const { return std::strcmp(backend_, "cpu") != 0; }

Result<bool> Device::ready(const DeviceArray& array) const {
  const SyncEvent event(array);
  return vulkan_ ? event.ready(*vulkan_) : event.ready();
}

Status Device::wait_on(const DeviceArray& array, void* handle) const {
  const SyncEvent event(array);
  return vulkan_ ? event.wait_on(*vulkan_, handle) : event.wait_on({event.device_type(), handle});
}

Status Device::synchronize(const DeviceArray& array) const {
  const SyncEvent event(array);
  return vulkan_ ? event.synchronize(*vulkan_) : event.synchronize();
}

}  // namespace fletching::gpu
