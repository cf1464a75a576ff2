// SPDX-License-Identifier: Apache-2.0
//
// Exports a device array with an event on a stream, before its data is ready.
#ifndef FLETCHING_EXPORT_EVENT_HPP
#define FLETCHING_EXPORT_EVENT_HPP

#include <cerrno>
#include <string>
#include <utility>

#include "fletching/capture.hpp"
#include "fletching/detail/core.hpp"
#include "fletching/detail/ownership/event_hook.hpp"
#include "fletching/device_stream.hpp"
#include "fletching/owner.hpp"
#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {
namespace detail {

inline Error export_error(DeviceType type, const Error& error) {
  if (error.code() == ENOTSUP) return no_records(type, error);
  return with_capture_hint(
      error,
      "export before the capture begins, or pass OnCapture::kExternalEvent for an event that each "
      "launch of the graph records");
}

}  // namespace detail

/// Sets a sync_event that completes when the current work on the stream is done. The work that
/// fills the buffers must already be on the stream, and later work on it must not write to them.
///
/// The event is created in the stream's context, without timing, and recorded. It keeps its address
/// and lives until the array and every child moved out of it are released. The last release
/// destroys it, on its thread.
///
/// The context must outlive the array. Destroying the context, or resetting a primary context,
/// destroys the event too. The release then skips the event, as far as the driver reports the loss:
/// reliably for a primary context and CUDA 12.0 or later. A child of fork also skips the event,
/// with a warning on stderr; see pending_releases().
///
/// `array` must be live, with device type and device id set, and without an event. `stream` must
/// belong to the array's runtime. OnCapture describes captures into a graph, and SyncEvent the case
/// without a current CUDA context.
///
/// Errors: as for SyncEvent. ENOTSUP for device types without CUDA, HIP or OpenCL events; EBUSY for
/// a stream that is being captured; EINVAL for a stream of another runtime than the array's, for an
/// array that is released or has an event, and for a malformed array: a NULL child, n_children that
/// is negative, above 2^22 or without a list, more than 256 levels. On error the array is
/// unchanged. Threads: any; one at a time per array.
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
      Status fits = detail::check_runtime(stream, type);
      if (!fits) return detail::named_error(kOperation, fits.error());
    }
    // Do everything that can fail before changing the array.
    // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new): guarded catches it
    auto* const block = new detail::SharedObject<detail::RecordedEvent>;
    const detail::EventShare share{detail::Share(block)};
    auto hooks = detail::EventHooks::make(kOperation, &array->array, share);
    if (!hooks) return std::move(hooks).error();
    auto recorded = detail::record_event(detail::core_stream(stream, type, array->device_id),
                                         detail::core_capture(on_capture));
    if (!recorded) {
      return detail::named_error(kOperation, detail::export_error(type, recorded.error()));
    }
    block->object = *std::move(recorded);
    hooks->set();
    array->sync_event = FletchingRecordedEventAddress(block->object.get());
    return {};
  });
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_EXPORT_EVENT_HPP
