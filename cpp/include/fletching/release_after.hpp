// SPDX-License-Identifier: Apache-2.0
//
// Releases a device array after the work on a stream that still reads it.
#ifndef FLETCHING_RELEASE_AFTER_HPP
#define FLETCHING_RELEASE_AFTER_HPP

#include <cstdint>
#include <string>
#include <utility>

#include "fletching/capture.hpp"
#include "fletching/detail/core.hpp"
#include "fletching/device_stream.hpp"
#include "fletching/owner.hpp"
#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {
namespace detail {

/// Like release_after, with a choice for a captured stream, and without its name in errors.
inline Status defer_release(DeviceArray& array, const FletchingStream& stream, int on_capture) {
  ArrowDeviceArray taken;
  move_struct(array.get(), &taken);
  return in_core(&FletchingDeviceArrayReleaseAfter, &taken, stream, on_capture);
}

}  // namespace detail

/// Releases the array when the current work on the stream is done. Use it if kernels still read the
/// buffers: releasing the array directly would free memory that they read.
///
/// Takes the array in every case, and never releases it early:
///
/// - Normally it returns at once. The release callback runs later, on a thread of this library,
///   never inside a driver callback. Threads are started on demand and sleep when idle: up to 64
///   callbacks may block without delaying the others. A callback runs with the stream's context
///   current and in the relaxed capture mode (cuThreadExchangeStreamCaptureMode), so it may free
///   memory while another thread captures. A child that was moved out before is not included.
/// - If the release cannot be deferred (no thread, memory or event), it waits for the stream and
///   releases the array.
/// - If it cannot wait either, it leaks and counts the array, and returns the reason.
/// - It releases an array at once if its device type has no runtime, such as the CPU, and the
///   stream is NULL.
///
/// An event whose state the driver does not report, for example because it rejects every call,
/// never counts as completed. The driver is queried again, and the array stays pending until it
/// answers; see pending_releases(). If the driver reports that the device or context is lost,
/// no work can read the array, and it is released.
///
/// When the process exits, pending arrays are neither waited for nor released. A release that has
/// begun may still run during the exit. The library that contains this code stays loaded after the
/// first call.
///
/// `array` must be live. `stream` must belong to the array's runtime. A stream that is being
/// captured into a graph is rejected, and the array is leaked, because every launch of the graph
/// reads the buffers: keep the array until the graph is destroyed instead. OnCapture::kKeep is for
/// an array that the graph does not read.
///
/// Errors: EINVAL if the array is released. All other errors leak the array: the errors of
/// SyncEvent; ENOTSUP for device types without CUDA, HIP or OpenCL streams; EBUSY for a stream that
/// is being captured, unless `on_capture` is OnCapture::kKeep; ECHILD in a child of fork. Threads:
/// any; one at a time per array.
[[nodiscard]] inline Status release_after(DeviceArray& array, Stream stream,
                                          OnCapture on_capture = OnCapture::kRefuse) noexcept {
  return detail::in_operation("release_after", [&] {
    const FletchingStream on = detail::core_stream(stream, array->device_type, array->device_id);
    return detail::defer_release(array, on, detail::core_capture(on_capture));
  });
}

/// Counts of the arrays that release_after took, and of events in a child of fork.
struct PendingReleases {
  std::int64_t pending = 0;           ///< arrays whose stream has not finished the work yet
  std::int64_t refused = 0;           ///< of these, arrays for which the last driver query failed
  std::int64_t running = 0;           ///< arrays whose callback is due, or has not returned
  std::int64_t leaked = 0;            ///< arrays that could neither be deferred nor waited for
  std::string last_refusal;           ///< the driver's latest error; "" if there was none
  std::int64_t inherited_events = 0;  ///< events not destroyed by a release in a child of fork
};

/// Returns the current counts of this process. Does not start a thread. Errors: ENOMEM. Threads:
/// any.
[[nodiscard]] inline Result<PendingReleases> pending_releases() noexcept {
  return detail::guarded([]() -> Result<PendingReleases> {
    FletchingReleaseCounts counts;
    FletchingMessage last_refusal;
    FletchingPendingReleases(&counts, &last_refusal);
    return PendingReleases{.pending = counts.pending,
                           .refused = counts.refused,
                           .running = counts.running,
                           .leaked = counts.leaked,
                           .last_refusal = last_refusal.text,
                           .inherited_events = counts.inherited_events};
  });
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_RELEASE_AFTER_HPP
