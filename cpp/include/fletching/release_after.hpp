// SPDX-License-Identifier: Apache-2.0
//
// Release of a device array that work on a stream still reads.
#ifndef FLETCHING_RELEASE_AFTER_HPP
#define FLETCHING_RELEASE_AFTER_HPP

#include <cstdint>
#include <string>
#include <utility>

#include "fletching/detail/core.hpp"
#include "fletching/device_stream.hpp"
#include "fletching/owner.hpp"
#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {
namespace detail {

/// As release_after, with a choice for a stream that is captured.
inline Status defer_release(DeviceArray& array, const FletchingStream& stream, int on_capture) {
  ArrowDeviceArray taken;
  array.move_to(&taken);
  return in_core(&FletchingDeviceArrayReleaseAfter, &taken, stream, on_capture);
}

}  // namespace detail

/// Releases the array when everything is done that is on the stream now. For a consumer whose own
/// kernels still read the buffers: release alone would free the memory under them.
///
/// It takes the array in every case, and never releases it early:
///
/// - It returns at once, and the release callback is called later, on a thread of this library,
///   never within a callback of a driver. Threads are started as they are needed, and sleep while
///   there is nothing to do: up to 64 callbacks may block without delaying the others. A callback
///   runs with the stream's context current, and in the relaxed mode of stream captures
///   (cuThreadExchangeStreamCaptureMode), so that it may free memory while another thread captures.
///   A child that was moved out before is not waited for.
/// - Where the release cannot be deferred (no thread, no memory, no event), this waits for the
///   stream, and releases the array.
/// - Where it cannot wait either, the array is leaked and counted, and the error says why.
/// - An array on a device without a runtime, such as the CPU, with a stream that is NULL, is
///   released at once.
///
/// An event whose state the driver does not report, for example while it refuses every call, does
/// not count for passed, however often it is asked: the array is released when the driver answers,
/// and never when it never does. See pending_releases(). When the driver says that the device or
/// the context is lost, nothing reads the array any more, and it is released.
///
/// When the process exits, what is still pending is neither waited for nor released. A release that
/// has begun by then may run while the process exits. The library that this is compiled into stays
/// loaded from the first call on.
///
/// `array`: alive. `stream`: of the runtime of the array. One that is being captured into a graph
/// is always refused: the buffers are read whenever the graph is launched, so that the array is
/// leaked. Keep it until the graph is destroyed instead.
///
/// Errors: EINVAL when the array is released. Else the array is leaked, and the error is one of
/// SyncEvent; ENOTSUP for device types other than those of CUDA, HIP and OpenCL; EBUSY for a stream
/// that is being captured; ECHILD in a child of fork. Threads: any; one at a time for an array.
[[nodiscard]] inline Status release_after(DeviceArray& array, Stream stream) noexcept {
  return detail::guarded([&] {
    const FletchingStream on = detail::core_stream(stream, array->device_type, array->device_id);
    return detail::defer_release(array, on, FLETCHING_CAPTURE_REFUSE);
  });
}

/// Counts of the arrays that release_after has consumed, and of events in a child of fork.
struct PendingReleases {
  std::int64_t pending = 0;           ///< arrays whose stream has not reached their point yet
  std::int64_t refused = 0;           ///< of these, those that the driver last said nothing about
  std::int64_t running = 0;           ///< arrays whose callback is due, or has not returned
  std::int64_t leaked = 0;            ///< arrays that could neither be deferred nor waited for
  std::string last_refusal;           ///< the driver's newest error; "" when there was none
  std::int64_t inherited_events = 0;  ///< left alone by a release in a child of fork
};

/// As of now, in this process. Does not start a thread. Errors: ENOMEM. Threads: any.
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
