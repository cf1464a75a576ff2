// SPDX-License-Identifier: Apache-2.0
//
// What a producer does with events: export an array whose data is not there yet, and release one
// that is still being read.
#ifndef FLETCHING_EVENT_VERBS_HPP
#define FLETCHING_EVENT_VERBS_HPP

#include <cerrno>
#include <memory>
#include <string>
#include <utility>

#include "fletching/detail/event_hook.hpp"
#include "fletching/detail/reaper.hpp"
#include "fletching/owner.hpp"
#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {

/// Gives the array a sync_event that happens when everything is done that is on the stream now: the
/// work that fills the buffers has to be there already, and nothing on it may write to them later.
///
/// The event is created in the stream's context, without timing, and recorded. It lives, at the
/// same address, until the array is released and the last child that was moved out of it too; the
/// last of these releases destroys it, on whatever thread.
///
/// `array`: alive, with its device type and device id set, and without an event. `stream`: as for
/// SyncEvent::wait_on. Where CUDA finds no current context, see SyncEvent.
///
/// Errors: as of SyncEvent. ENOTSUP for device types other than those of CUDA, HIP and OpenCL;
/// EINVAL when the array is released or has an event, and when it or an array below it is
/// malformed: a child that is NULL, n_children negative, above 2^22 or without a list, nested
/// deeper than 256 levels. The array is then as it was. Threads: any; one at a time for an array.
[[nodiscard]] inline Status export_with_event(DeviceArray& array, void* stream) noexcept {
  return detail::guarded([&]() -> Status {
    constexpr const char* kVerb = "export_with_event";
    if (array.is_released()) return Error{EINVAL, std::string(kVerb) + ": the array is released"};
    if (array->sync_event != nullptr) {
      return Error{EINVAL, std::string(kVerb) + ": the array has a sync_event already"};
    }
    auto functions = detail::event_functions(kVerb, array->device_type);
    if (!functions) return std::move(functions).error();
    // Everything that can fail comes before the array is touched.
    const auto event = std::make_shared<detail::ExportedEvent>(**functions);
    auto hooks = detail::EventHooks::make(kVerb, &array->array, {event});
    if (!hooks) return std::move(hooks).error();
    auto recorded = (*functions)->record(stream, array->device_id);
    if (!recorded) return std::move(recorded).error();
    event->recorded = *recorded;
    hooks->set();
    array->sync_event = static_cast<void*>(&event->recorded.event);
    return {};
  });
}

/// Releases the array when everything is done that is on the stream now. For a consumer whose own
/// kernels still read the buffers: release alone would give the memory back under them.
///
/// Returns at once; `array` is released, as far as the caller is concerned. A thread of the
/// process, which the first call starts and which sleeps while there is nothing to wait for, calls
/// the release callback, never within a callback of a driver. A child that was moved out before is
/// not waited for.
///
/// When the process exits, what is still pending is neither waited for nor released. A release that
/// has begun by then may run while the process exits. The library that this function is compiled
/// into has to stay loaded.
///
/// `array`: alive. `stream`: as for SyncEvent::wait_on, of the device of the array.
///
/// Errors: as of SyncEvent; ENOTSUP for device types other than those of CUDA, HIP and OpenCL;
/// EINVAL when the array is released; EAGAIN when there can be no thread. The array is then as it
/// was, and the caller releases it after a wait for the stream. When the work on the stream fails
/// later, the array is released then: nobody reads it any more. Threads: any; one at a time for an
/// array.
[[nodiscard]] inline Status release_after(DeviceArray& array, void* stream) noexcept {
  return detail::guarded([&]() -> Status {
    constexpr const char* kVerb = "release_after";
    if (array.is_released()) return Error{EINVAL, std::string(kVerb) + ": the array is released"};
    auto functions = detail::event_functions(kVerb, array->device_type);
    if (!functions) return std::move(functions).error();
    // Everything that can fail comes before the array is touched.
    detail::Reaper& reaper = detail::Reaper::instance();
    detail::Reaper::Entries entry(1);
    auto recorded = (*functions)->record(stream, array->device_id);
    if (!recorded) return std::move(recorded).error();
    entry.front() = {*functions, *recorded, std::move(array)};
    reaper.add(entry);
    return {};
  });
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_EVENT_VERBS_HPP
