// SPDX-License-Identifier: Apache-2.0
//
// The event of a device array: wait on it before the first access to any buffer.
#ifndef FLETCHING_SYNC_EVENT_HPP
#define FLETCHING_SYNC_EVENT_HPP

#include <cerrno>
#include <cstdint>
#include <utility>

#include "fletching/abi.h"
#include "fletching/capture.hpp"
#include "fletching/detail/core.hpp"
#include "fletching/device_stream.hpp"
#include "fletching/device_type.hpp"
#include "fletching/owner.hpp"
#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {

namespace vulkan {
struct WaitContext;  // fletching/vulkan_event.hpp
}  // namespace vulkan

/// A view of the sync_event of a device array (C Device Data Interface, "Synchronization Event
/// Types"), with three operations to wait on it on any device.
///
/// Ownership: none. The event belongs to the producer and lives until the array is released. It
/// keeps its address when the array is moved.
///
/// Each operation calls the runtime of the device type (tables.hpp). The first call loads the
/// runtime's library. CUDA, HIP and OpenCL support all three operations. Vulkan needs a
/// vulkan::WaitContext. Every other device type needs a waiter (register_waiter). A NULL event
/// needs no wait, on any device. An operation fails if the event cannot be waited on; the wait is
/// never skipped.
///
/// Errors: ENOENT if the runtime's library is not found; ENOSYS if the library lacks a function;
/// ENOTSUP if the runtime does not support the request; EINVAL if the array is released, or if the
/// event is invalid or does not match the stream; EIO for other errors of the runtime, with the
/// runtime's name for the error in the message; the errors of a waiter. After an error the buffers'
/// contents are unspecified: do not read them.
///
/// CUDA contexts: a wait on a stream runs in the context of the stream, everything else in the
/// current context. Without a current context, it runs in the primary context of the device if that
/// is active. No context is created, and the calling thread's context is restored. The same holds
/// for the current HIP device.
///
/// CUDA and HIP graphs: the operations neither fail nor disturb a capture in any mode, by another
/// thread or by the calling thread on another stream. HIP before ROCm 7.2 may fail to query an
/// event while any thread captures in global mode, and invalidates that capture. An event that the
/// producer recorded into a capture, other than as an external event, cannot be waited on: the
/// driver returns an error and invalidates the capture.
///
/// Threads: any, concurrently.
class SyncEvent {
 public:
  /// A NULL event.
  SyncEvent() noexcept = default;
  SyncEvent(DeviceType device_type, int64_t device_id, void* sync_event) noexcept
      : event_{sync_event, device_id, nullptr, device_type.value()} {}
  /// Reads no field of a released array. Every operation then returns EINVAL, because the event no
  /// longer exists.
  explicit SyncEvent(const ArrowDeviceArray& array) noexcept
      : array_is_released_(array.array.release == nullptr) {
    if (!array_is_released_)
      event_ = {array.sync_event, array.device_id, nullptr, array.device_type};
  }
  explicit SyncEvent(const DeviceArray& array) noexcept : SyncEvent(*array.get()) {}

  [[nodiscard]] DeviceType device_type() const noexcept { return event_.device_type; }
  [[nodiscard]] int64_t device_id() const noexcept { return event_.device_id; }
  /// The sync_event field; device_type().event_pointer() describes its type.
  [[nodiscard]] void* get() const noexcept { return event_.sync_event; }
  /// Whether the event is NULL, so that no wait is needed. False if the array is released.
  [[nodiscard]] bool is_null() const noexcept {
    return !array_is_released_ && event_.sync_event == nullptr;
  }

  /// Blocks the calling thread until the event has completed. The host may then read the buffers
  /// that are host-accessible.
  [[nodiscard]] Status synchronize() const noexcept {
    if (is_null()) return {};
    return named("synchronize",
                 [&] { return detail::in_core(&FletchingEventSynchronize, &event_); });
  }

  /// Makes later work on the stream wait for the event, and returns while the event is still
  /// pending. Kernels launched on that stream may then read the buffers.
  ///
  /// Errors: EINVAL if the stream belongs to another runtime than the event; an OpenCL queue must
  /// be of the event's cl_context. EBUSY for a stream that is being captured into a CUDA or HIP
  /// graph, unless `on_capture` allows it; the capture continues.
  [[nodiscard]] Status wait_on(Stream stream,
                               OnCapture on_capture = OnCapture::kRefuse) const noexcept {
    if (is_null()) return {};
    return named("wait_on", [&]() -> Status {
      const FletchingStream on = detail::core_stream(stream, device_type(), device_id());
      Status status =
          detail::in_core(&FletchingEventWaitOn, &event_, on, detail::core_capture(on_capture));
      if (status) return status;
      return detail::with_capture_hint(
          status.error(),
          "wait before the capture begins, or pass OnCapture::kExternalEvent for a wait at each "
          "launch of the graph");
    });
  }

  /// Whether the event has completed. Does not block.
  [[nodiscard]] Result<bool> ready() const noexcept {
    if (is_null()) return true;
    return ask([&](int* ready) { return detail::in_core(&FletchingEventReady, &event_, ready); });
  }

  /// Overload for Vulkan. A VkEvent has no host wait, so it is polled, with sleeps of up to a
  /// millisecond. This and the next two functions are defined in fletching/vulkan_event.hpp.
  [[nodiscard]] Status synchronize(const vulkan::WaitContext& context) const noexcept;

  /// Overload for Vulkan: records the wait into a command buffer, outside of a render pass. Submit
  /// the command buffer to the producer's queue: a VkEvent does not order work on other queues.
  [[nodiscard]] Status wait_on(const vulkan::WaitContext& context,
                               void* command_buffer) const noexcept;

  /// Overload for Vulkan. The event must not be device-only.
  [[nodiscard]] Result<bool> ready(const vulkan::WaitContext& context) const noexcept;

 private:
  /// Puts the operation in front of the errors of `body`.
  template <class Body>
  [[nodiscard]] Status named(const char* operation, Body body) const noexcept {
    return detail::in_operation(operation, [&]() -> Status {
      if (array_is_released_) return released();
      return body();
    });
  }

  template <class Body>
  [[nodiscard]] Result<bool> ask(Body body) const noexcept {
    int ready = 0;
    Status status = named("ready", [&] { return body(&ready); });
    if (!status) return std::move(status).error();
    return ready != 0;
  }

  static Error released() {
    return {EINVAL, "array is released: expected a live array; hint: wait before the release"};
  }

  FletchingEvent event_{};
  bool array_is_released_ = false;
};

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_SYNC_EVENT_HPP
