// SPDX-License-Identifier: Apache-2.0
//
// The event operations: the C++ library's, with errno and message in place of results.
#include <cerrno>

#include "fletching/c_api.h"
#include "fletching/detail/message.hpp"
#include "fletching/export_event.hpp"
#include "fletching/owner.hpp"
#include "fletching/release_after.hpp"
#include "fletching/sync_event.hpp"
#include "fletching/vulkan_event.hpp"
#include "fletching/waiter.hpp"

namespace {

using fletching::detail::write_message;

int refuse(FletchingMessage* message, const char* text) noexcept {
  write_message(message, text);
  return EINVAL;
}

template <class T>
int report(const fletching::Result<T>& result, FletchingMessage* message) noexcept {
  write_message(message, result.ok() ? std::string_view() : result.error().message());
  return result.ok() ? 0 : result.error().code();
}

int report_ready(const fletching::Result<bool>& result, int* ready,
                 FletchingMessage* message) noexcept {
  *ready = result.ok() && *result ? 1 : 0;
  return report(result, message);
}

// NULL, or why the array has no event to use.
const char* unusable(const ArrowDeviceArray* array) noexcept {
  if (array == nullptr) return "array: NULL: expected a device array";
  if (array->array.release == nullptr) {
    return "array: released: expected a live array; hint: wait before the release";
  }
  return nullptr;
}

const char* unusable(const ArrowDeviceArray* array,
                     const FletchingVulkanWaitContext* context) noexcept {
  if (context == nullptr) return "context: NULL: expected the VkDevice of the event";
  return unusable(array);
}

namespace vulkan = fletching::vulkan;

vulkan::WaitContext from_c(const FletchingVulkanWaitContext& context) noexcept {
  using GetDeviceProcAddr = decltype(vulkan::WaitContext::get_device_proc_addr);
  vulkan::WaitContext made;
  made.device = context.device;
  made.producer_queue = context.producer_queue;
  made.queue = context.queue;
  if (context.set_stages != 0) made.set_stages = context.set_stages;
  made.get_device_proc_addr = reinterpret_cast<GetDeviceProcAddr>(context.get_device_proc_addr);
  return made;
}

// Moves the struct into an owner for the operation, and back unless the operation has consumed it.
template <class Operation>
int lend(ArrowDeviceArray* array, FletchingMessage* message, Operation operation) noexcept {
  if (array == nullptr) return refuse(message, "array: NULL: expected a device array");
  fletching::DeviceArray owner(array);
  const int code = report(operation(owner), message);
  if (!owner.is_released()) owner.move_to(array);
  return code;
}

}  // namespace

int FletchingDeviceArraySynchronize(const ArrowDeviceArray* array, FletchingMessage* message) {
  if (const char* text = unusable(array)) return refuse(message, text);
  return report(fletching::SyncEvent(*array).synchronize(), message);
}

int FletchingDeviceArrayWaitOn(const ArrowDeviceArray* array, void* stream,
                               FletchingMessage* message) {
  if (const char* text = unusable(array)) return refuse(message, text);
  return report(fletching::SyncEvent(*array).wait_on(stream), message);
}

int FletchingDeviceArrayReady(const ArrowDeviceArray* array, int* ready,
                              FletchingMessage* message) {
  if (ready == nullptr) return refuse(message, "ready: NULL: expected an address for the result");
  *ready = 0;
  if (const char* text = unusable(array)) return refuse(message, text);
  return report_ready(fletching::SyncEvent(*array).ready(), ready, message);
}

int FletchingDeviceArraySynchronizeVulkan(const ArrowDeviceArray* array,
                                          const FletchingVulkanWaitContext* context,
                                          FletchingMessage* message) {
  if (const char* text = unusable(array, context)) return refuse(message, text);
  return report(fletching::SyncEvent(*array).synchronize(from_c(*context)), message);
}

int FletchingDeviceArrayWaitOnVulkan(const ArrowDeviceArray* array,
                                     const FletchingVulkanWaitContext* context,
                                     void* command_buffer, FletchingMessage* message) {
  if (const char* text = unusable(array, context)) return refuse(message, text);
  return report(fletching::SyncEvent(*array).wait_on(from_c(*context), command_buffer), message);
}

int FletchingDeviceArrayReadyVulkan(const ArrowDeviceArray* array,
                                    const FletchingVulkanWaitContext* context, int* ready,
                                    FletchingMessage* message) {
  if (ready == nullptr) return refuse(message, "ready: NULL: expected an address for the result");
  *ready = 0;
  if (const char* text = unusable(array, context)) return refuse(message, text);
  return report_ready(fletching::SyncEvent(*array).ready(from_c(*context)), ready, message);
}

int FletchingDeviceArrayExportWithEvent(ArrowDeviceArray* array, void* stream,
                                        FletchingMessage* message) {
  return lend(array, message, [&](fletching::DeviceArray& owner) {
    return fletching::export_with_event(owner, stream);
  });
}

int FletchingDeviceArrayReleaseAfter(ArrowDeviceArray* array, void* stream,
                                     FletchingMessage* message) {
  return lend(array, message, [&](fletching::DeviceArray& owner) {
    return fletching::release_after(owner, stream);
  });
}

int FletchingRegisterWaiter(ArrowDeviceType device_type, const FletchingWaiter* waiter,
                            FletchingMessage* message) {
  if (waiter == nullptr) {
    return refuse(message,
                  "waiter: NULL: expected a FletchingWaiter; hint: call FletchingUnregisterWaiter "
                  "to remove one");
  }
  return report(fletching::register_waiter(device_type, *waiter), message);
}

int FletchingUnregisterWaiter(ArrowDeviceType device_type) {
  return fletching::unregister_waiter(device_type) ? 1 : 0;
}
