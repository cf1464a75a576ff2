// SPDX-License-Identifier: Apache-2.0
//
// What the verbs of the vendors' runtimes share: reading a handle, and their errors as ours.
#ifndef FLETCHING_DETAIL_EVENT_HANDLE_HPP
#define FLETCHING_DETAIL_EVENT_HANDLE_HPP

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "fletching/result.hpp"
#include "fletching/text.hpp"
#include "fletching/vendor.hpp"
#include "fletching/waiter.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

/// An event that a producer's verb has recorded, and what has to be current to use it.
struct RecordedEvent {
  void* event = nullptr;
  void* context = nullptr;  ///< CUDA: the CUcontext
  int64_t device = 0;       ///< HIP: the device
};

/// The handle that sync_event is the address of.
template <class Handle>
Result<Handle> handle_at(const EventReference& event) {
  constexpr std::uintptr_t kLowest = 4096;  // nothing is mapped below
  const auto address = reinterpret_cast<std::uintptr_t>(event.sync_event);
  const auto refused = [&](const char* why) {
    return Error{EINVAL, "sync_event of " + event.device_type.name() + why};
  };
  if (address < kLowest || address % alignof(Handle) != 0) {
    return refused(" is not the address of a handle; it may be the handle itself");
  }
  Handle handle{};
  std::memcpy(&handle, event.sync_event, sizeof handle);
  if (handle == Handle{}) return refused(" is the address of a handle that is NULL");
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
      "; check that stream and event are alive, and that sync_event is the address of the "
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
