// SPDX-License-Identifier: Apache-2.0
//
// Release of a device array that work on a stream still reads.
#ifndef FLETCHING_RELEASE_AFTER_HPP
#define FLETCHING_RELEASE_AFTER_HPP

#include <cerrno>
#include <cstdint>
#include <string>
#include <utility>

#include "fletching/capture.hpp"
#include "fletching/detail/event_hook.hpp"
#include "fletching/detail/reaper.hpp"
#include "fletching/owner.hpp"
#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {
namespace detail {

/// What release_after does with an array whose stream is being captured.
enum class WhileCaptured : std::uint8_t { kRefuse, kKeep };

/// As release_after, or keeps the array until the capture has ended and the stream, which has to
/// live until then, has passed. May throw.
inline Status defer_release(const char* operation, DeviceArray& array, void* stream,
                            WhileCaptured while_captured) {
  if (array.is_released())
    return Error{EINVAL, std::string(operation) + ": array is released: expected a live array"};
  auto functions = record_functions(operation, array->device_type);
  if (!functions) return std::move(functions).error();
  // Everything that can fail is done before the array is changed.
  Reaper& reaper = Reaper::instance();
  if (reaper.process() != process_id()) {
    return Error{ECHILD, std::string(operation) +
                             ": called in a child of fork, which has no thread that releases "
                             "arrays; hint: start processes with exec (spawn), or "
                             "use release_after in one of parent and child only"};
  }
  DeferredReleases entry(1);
  auto recorded = (*functions)->record(stream, array->device_id, OnCapture::kRefuse);
  if (recorded.ok()) {
    entry.front().recorded = *recorded;
  } else if (while_captured == WhileCaptured::kRefuse || recorded.error().code() != EBUSY) {
    return with_capture_hint(
        operation, recorded.error(),
        "keep the array until the graph is destroyed, and call release_after with the stream of "
        "its last launch");
  }
  entry.front().functions = *functions;
  entry.front().stream = stream;
  entry.front().array = std::move(array);
  reaper.add(entry);
  return {};
}

}  // namespace detail

/// Releases the array when everything is done that is on the stream now. For a consumer whose own
/// kernels still read the buffers: release alone would free the memory under them.
///
/// Returns at once; `array` is released, as far as the caller is concerned. The release callback is
/// called later, on a thread of this library, never within a callback of a driver. Threads are
/// started as they are needed, so that a slow callback delays no other release, and sleep while
/// there is nothing to do; at most three stay then. A callback runs in the relaxed mode of stream
/// captures (cuThreadExchangeStreamCaptureMode), so that it may free memory while another thread
/// captures. A child that was moved out before is not waited for.
///
/// An event whose state the driver does not report, for example while it refuses every call, does
/// not count for passed, however often it is asked: the array is released when the driver answers,
/// and never when it never does. See pending_releases(). When the driver says that the device or
/// the context is lost (is_lost in fletching/runtimes), nothing reads the array any more, and it is
/// released.
///
/// When the process exits, what is still pending is neither waited for nor released. A release that
/// has begun by then may run while the process exits. The library that this function is compiled
/// into has to stay loaded.
///
/// `array`: alive. `stream`: as for SyncEvent::wait_on, of the device of the array. One that is
/// being captured into a graph is always refused: the buffers are read whenever the graph is
/// launched.
///
/// Errors: as of SyncEvent; ENOTSUP for device types other than those of CUDA, HIP and OpenCL;
/// EINVAL when the array is released; EBUSY for a stream that is being captured; EAGAIN when there
/// can be no thread; ECHILD in a child of fork. The array is then as it was, and the caller
/// releases it after a wait for the stream. Threads: any; one at a time for an array.
[[nodiscard]] inline Status release_after(DeviceArray& array, void* stream) noexcept {
  return detail::guarded([&] {
    return detail::defer_release("release_after", array, stream, detail::WhileCaptured::kRefuse);
  });
}

/// Counts of the arrays that release_after has consumed, and of events in a child of fork.
struct PendingReleases {
  std::int64_t pending = 0;           ///< arrays whose stream has not reached their point yet
  std::int64_t refused = 0;           ///< of these, those that the driver last said nothing about
  std::string last_refusal;           ///< its newest error; "" when there was none
  std::int64_t inherited_events = 0;  ///< left alone by a release in a child of fork
};

/// As of now, in this process. Does not start a thread. Errors: ENOMEM. Threads: any.
[[nodiscard]] inline Result<PendingReleases> pending_releases() noexcept {
  return detail::guarded([]() -> Result<PendingReleases> {
    PendingReleases found;
    found.inherited_events = detail::inherited_events();
    detail::Reaper* const reaper = detail::Reaper::if_started();
    if (reaper == nullptr || reaper->process() != detail::process_id()) return found;
    found.pending = reaper->pending();
    found.refused = reaper->refused();
    found.last_refusal = reaper->last_refusal();
    return found;
  });
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_RELEASE_AFTER_HPP
