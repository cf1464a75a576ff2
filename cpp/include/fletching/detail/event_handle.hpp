// SPDX-License-Identifier: Apache-2.0
//
// What the operations of the vendors' runtimes share: reading a handle, and their errors as ours.
#ifndef FLETCHING_DETAIL_EVENT_HANDLE_HPP
#define FLETCHING_DETAIL_EVENT_HANDLE_HPP

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "fletching/capture.hpp"
#include "fletching/detail/process.hpp"
#include "fletching/detail/text.hpp"
#include "fletching/detail/vendor.hpp"
#include "fletching/device_type.hpp"
#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

/// The event of a device array, as the struct has it.
struct EventReference {
  DeviceType device_type;
  int64_t device_id = 0;
  void* sync_event = nullptr;
};

/// An event that a producer's operation has recorded.
struct RecordedEvent {
  void* event = nullptr;
  // CUDA: its context, and the id that shows whether it is still the same.
  void* context = nullptr;
  std::uint64_t context_id = 0;  ///< 0 where the driver has no cuCtxGetId
  std::int32_t device = 0;
  bool is_primary = false;
  std::int64_t process = process_id();
};

/// What a stream is to a capture. The first three are numbered as CUDA and HIP number them.
enum class StreamState : std::int32_t { kRuns, kIsCaptured, kIsInvalidated, kBesideACapture };

/// Whether the stream is captured, and may be. Errors: EBUSY, without a hint.
inline Result<bool> judge_capture(const char* title, StreamState state, OnCapture on_capture) {
  const bool captured = state == StreamState::kIsCaptured;
  if (state == StreamState::kRuns || (captured && on_capture == OnCapture::kExternalEvent)) {
    return captured;
  }
  const char* got = "one that is being captured into a graph";
  if (state == StreamState::kIsInvalidated) {
    got = "one that is being captured into a graph, and whose capture is invalid and not ended";
  }
  if (state == StreamState::kBesideACapture) {
    got =
        "the legacy default stream while a stream that is ordered with it is being captured into a "
        "graph";
  }
  return Error{EBUSY, std::string(title) + ": expected a stream whose work runs, got " + got};
}

/// The same for an operation, which says what to do.
inline Error with_capture_hint(const char* operation, const Error& error, const char* hint) {
  if (error.code() != EBUSY) return error;
  return {EBUSY, std::string(operation) + ": " + error.message() + "; hint: " + hint};
}

inline Error refused_wait(const Error& error) {
  return with_capture_hint(
      "wait_on", error,
      "wait before the capture begins, or pass OnCapture::kExternalEvent for a "
      "wait at each launch of the graph");
}

/// The handle that sync_event is the address of.
template <class Handle>
Result<Handle> handle_at(const EventReference& event) {
  constexpr std::uintptr_t kLowest = 4096;  // nothing is mapped below
  const auto address = reinterpret_cast<std::uintptr_t>(event.sync_event);
  const auto refused = [&](const char* why) {
    return Error{EINVAL, "sync_event of " + event.device_type.name() + why};
  };
  if (address < kLowest || address % alignof(Handle) != 0) {
    return refused(
        ": not the address of a handle: expected an aligned address; hint: pass the handle's "
        "address, not the handle");
  }
  Handle handle{};
  std::memcpy(&handle, event.sync_event, sizeof handle);
  if (handle == Handle{}) return refused(": the handle is NULL: expected an event");
  return handle;
}

/// A call of a vendor's function that did not work.
struct VendorFailure {
  const char* title;     ///< of the runtime
  const char* function;  ///< "cuEventQuery"
  std::int64_t status;
  const char* name;         ///< of the status, or nullptr
  const char* text;         ///< about the status, or nullptr
  bool is_handle_in_doubt;  ///< whether the status says that a handle is none
};

inline Error vendor_error(const VendorFailure& failure) {
  std::string message = std::string(failure.title) + ": " + failure.function + " failed with ";
  const std::string number = std::to_string(failure.status);
  message += failure.name != nullptr ? printable(failure.name) + " (" + number + ")" : number;
  if (failure.text != nullptr) message += ": " + printable(failure.text);
  if (!failure.is_handle_in_doubt) return {EIO, std::move(message)};
  message +=
      "; hint: check that stream and event are alive, and that sync_event is the address of the "
      "event's handle, not the handle";
  return {EINVAL, std::move(message)};
}

/// The first of the two that did not work.
inline Status first_error(Status first, Status second) {
  return first.ok() ? std::move(second) : std::move(first);
}

/// Runs `body` in a scope of the runtime that has just been entered, or has not, and leaves it.
template <class Scope, class Body>
Status within(Scope& scope, Status entered, Body body) {
  if (!entered.ok()) return first_error(std::move(entered), scope.leave());
  Status status = body();
  return first_error(std::move(status), scope.leave());
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_DETAIL_EVENT_HANDLE_HPP
