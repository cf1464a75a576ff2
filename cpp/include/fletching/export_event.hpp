// SPDX-License-Identifier: Apache-2.0
//
// Export of a device array whose data is not ready yet: with an event on a stream.
#ifndef FLETCHING_EXPORT_EVENT_HPP
#define FLETCHING_EXPORT_EVENT_HPP

#include <cerrno>
#include <string>
#include <utility>

#include "fletching/capture.hpp"
#include "fletching/detail/core.hpp"
#include "fletching/detail/event_hook.hpp"
#include "fletching/device_stream.hpp"
#include "fletching/owner.hpp"
#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {
namespace detail {

inline Error export_error(const char* operation, DeviceType type, const Error& error) {
  if (error.code() == ENOTSUP) return no_records(operation, type, error);
  return with_capture_hint(
      operation, error,
      "export before the capture begins, or pass OnCapture::kExternalEvent for an event that each "
      "launch of the graph records");
}

}  // namespace detail

/// Sets a sync_event that happens when everything is done that is on the stream now: the work that
/// fills the buffers has to be there already, and nothing on it may write to them later.
///
/// The event is created in the stream's context, without timing, and recorded. It lives, at the
/// same address, until the array is released and the last child that was moved out of it too; the
/// last of these releases destroys it, on whatever thread.
///
/// The context has to outlive the array. One that was destroyed, or a primary context that was
/// reset, has destroyed the event; then the release does not destroy it again, as far as the driver
/// reports this: reliably with a primary context and CUDA 12.0 or later. In a child of fork the
/// event is left alone as well, with a warning on stderr, see pending_releases().
///
/// `array`: alive, with its device type and device id set, and without an event. `stream`: of
/// the runtime of the array; OnCapture describes captures into a graph, and SyncEvent the case in
/// which no CUDA context is current.
///
/// Errors: as of SyncEvent. ENOTSUP for device types other than those of CUDA, HIP and OpenCL;
/// EBUSY for a stream that is being captured; EINVAL for a stream of another runtime than the
/// array's, for an array that is released or has an event, and for a malformed array: a NULL child,
/// n_children that is negative, above 2^22 or without a list, more than 256 levels. The array is
/// then as it was. Threads: any; one at a time for an array.
[[nodiscard]] inline Status export_with_event(DeviceArray& array, Stream stream,
                                              OnCapture on_capture = OnCapture::kRefuse) noexcept {
  return detail::guarded([&]() -> Status {
    constexpr const char* kOperation = "export_with_event";
    if (array.is_released())
      return Error{EINVAL, std::string(kOperation) + ": array is released: expected a live array"};
    if (array->sync_event != nullptr) {
      return Error{EINVAL, std::string(kOperation) + ": sync_event is set: expected NULL"};
    }
    const DeviceType type = array->device_type;
    if (detail::has_records(type)) {
      Status fits = detail::check_runtime(kOperation, stream, type);
      if (!fits) return fits;
    }
    // Everything that can fail is done before the array is changed.
    // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new): guarded catches it
    auto* const block = new detail::SharedObject<detail::RecordedEvent>;
    const detail::EventShare share{detail::Share(block)};
    auto hooks = detail::EventHooks::make(kOperation, &array->array, share);
    if (!hooks) return std::move(hooks).error();
    auto recorded = detail::record_event(detail::core_stream(stream, type, array->device_id),
                                         detail::core_capture(on_capture));
    if (!recorded) return detail::export_error(kOperation, type, recorded.error());
    block->object = *std::move(recorded);
    hooks->set();
    array->sync_event = FletchingRecordedEventAddress(block->object.get());
    return {};
  });
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_EXPORT_EVENT_HPP
