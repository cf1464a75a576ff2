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
/// Types"): three operations to wait on it, whatever the device.
///
/// Ownership: none. The event belongs to the producer, and lives until the array is released; it
/// stays where it is when the array is moved.
///
/// What the operations do: the runtime that the device type belongs to (tables.hpp) is called, from
/// its library, which the first call loads. CUDA, HIP and OpenCL have all three. Vulkan needs a
/// vulkan::WaitContext. Every other device type needs a waiter (register_waiter). A NULL event is
/// nothing to wait for, on any device. An event that there is no way to wait on is an error, never
/// skipped.
///
/// Errors: ENOENT when the library of the runtime is not found, ENOSYS when it lacks a function,
/// ENOTSUP when the runtime does not support the request, EINVAL for the event of an array that
/// was released before, for what cannot be an event or does not fit, EIO for what else the runtime
/// reports, whose own name of it is in the text; what a waiter returns. After an error nothing is
/// known of the buffers: do not read them.
///
/// CUDA contexts: a wait on a stream happens in the stream's own context, everything else in the
/// current one. When there is none, it is the primary context of the device, if that is active
/// already. None is created, and afterwards the calling thread has the one that it had before. With
/// HIP the same holds for the thread's device.
///
/// CUDA and HIP graphs: while another thread captures, in whatever mode, or the calling thread
/// does, on another stream, the operations neither fail nor disturb the capture. HIP before
/// ROCm 7.2 may refuse to say whether an event has happened while any thread captures in global
/// mode, and invalidate that capture. An event that was itself recorded into a capture by its
/// producer, other than as an external one, cannot be waited on: the driver says so, and
/// invalidates the capture.
///
/// Threads: any thread, several at once.
class SyncEvent {
 public:
  /// NULL.
  SyncEvent() noexcept = default;
  SyncEvent(DeviceType device_type, int64_t device_id, void* sync_event) noexcept
      : event_{sync_event, device_id, nullptr, device_type.value()} {}
  /// Of a released array no field is read, and every operation returns EINVAL: its event no longer
  /// exists.
  explicit SyncEvent(const ArrowDeviceArray& array) noexcept
      : array_is_released_(array.array.release == nullptr) {
    if (!array_is_released_)
      event_ = {array.sync_event, array.device_id, nullptr, array.device_type};
  }
  explicit SyncEvent(const DeviceArray& array) noexcept : SyncEvent(*array.get()) {}

  [[nodiscard]] DeviceType device_type() const noexcept { return event_.device_type; }
  [[nodiscard]] int64_t device_id() const noexcept { return event_.device_id; }
  /// sync_event as the struct has it; what it is, device_type().event_pointer() says.
  [[nodiscard]] void* get() const noexcept { return event_.sync_event; }
  /// Whether there is nothing to wait for. False for the event of a released array.
  [[nodiscard]] bool is_null() const noexcept {
    return !array_is_released_ && event_.sync_event == nullptr;
  }

  /// Blocks the calling thread until the event has happened: then the host may read what it can
  /// read of the buffers.
  [[nodiscard]] Status synchronize() const noexcept {
    if (is_null()) return {};
    return guarded([&] { return detail::in_core(&FletchingEventSynchronize, &event_); });
  }

  /// Lets what is enqueued on the stream from now on wait for the event, and returns while it is
  /// still pending: then kernels on that stream may read the buffers.
  ///
  /// A stream of another runtime than the event is refused with EINVAL. An OpenCL queue must be of
  /// the event's cl_context.
  ///
  /// A stream that is being captured into a CUDA or HIP graph is refused with EBUSY, and the
  /// capture continues, unless `on_capture` says otherwise.
  [[nodiscard]] Status wait_on(Stream stream,
                               OnCapture on_capture = OnCapture::kRefuse) const noexcept {
    if (is_null()) return {};
    return guarded([&]() -> Status {
      const FletchingStream on = detail::core_stream(stream, device_type(), device_id());
      Status status =
          detail::in_core(&FletchingEventWaitOn, &event_, on, detail::core_capture(on_capture));
      if (status) return status;
      return detail::with_capture_hint(
          "wait_on", status.error(),
          "wait before the capture begins, or pass OnCapture::kExternalEvent for a wait at each "
          "launch of the graph");
    });
  }

  /// Whether the event has happened. Does not block.
  [[nodiscard]] Result<bool> ready() const noexcept {
    if (is_null()) return true;
    return ask([&](int* ready) { return detail::in_core(&FletchingEventReady, &event_, ready); });
  }

  /// The same for Vulkan. There is no host wait for a VkEvent: it is asked again and again, with
  /// sleeps of up to a millisecond in between.
  /// This one and the next two are defined in fletching/vulkan_event.hpp.
  [[nodiscard]] Status synchronize(const vulkan::WaitContext& context) const noexcept;

  /// The same for Vulkan, into a command buffer that is being recorded, outside of a render pass.
  /// It has to be submitted to the producer's queue: a VkEvent orders no others.
  [[nodiscard]] Status wait_on(const vulkan::WaitContext& context,
                               void* command_buffer) const noexcept;

  /// The same for Vulkan. The event must not be one that only the device can use.
  [[nodiscard]] Result<bool> ready(const vulkan::WaitContext& context) const noexcept;

 private:
  template <class Operation>
  [[nodiscard]] Status guarded(Operation operation) const noexcept {
    return detail::guarded([&]() -> Status {
      if (array_is_released_) return released();
      return operation();
    });
  }

  template <class Operation>
  [[nodiscard]] Result<bool> ask(Operation operation) const noexcept {
    int ready = 0;
    Status status = guarded([&] { return operation(&ready); });
    if (!status) return std::move(status).error();
    return ready != 0;
  }

  static Error released() {
    return {EINVAL,
            "sync_event: array is released: expected a live array; hint: wait before the release"};
  }

  FletchingEvent event_{};
  bool array_is_released_ = false;
};

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_SYNC_EVENT_HPP
