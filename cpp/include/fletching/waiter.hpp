// SPDX-License-Identifier: Apache-2.0
//
// The waiters that the process has registered, by device type.
#ifndef FLETCHING_WAITER_HPP
#define FLETCHING_WAITER_HPP

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "fletching/capture.hpp"
#include "fletching/detail/event_handle.hpp"
#include "fletching/detail/runtimes.hpp"
#include "fletching/detail/text.hpp"
#include "fletching/device_type.hpp"
#include "fletching/result.hpp"
#include "fletching/waiter.h"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {
namespace detail {

struct WaiterRegistry {
  std::mutex mutex;
  struct Entry {
    DeviceType type;
    FletchingWaiter waiter;
    Entry* next;
  };
  Entry* first = nullptr;  // of a handful

  /// With the mutex held: the link to the entry of the device type, or to NULL at the end.
  Entry** find(DeviceType type) noexcept {
    Entry** place = &first;
    while (*place != nullptr && (*place)->type != type) place = &(*place)->next;
    return place;
  }

  /// Never destroyed: events are waited on until the very end.
  FLETCHING_DETAIL_LOCAL static WaiterRegistry& instance() noexcept {
    alignas(WaiterRegistry) static std::byte memory[sizeof(WaiterRegistry)];
    static auto* const registry = new (memory) WaiterRegistry;
    return *registry;
  }
};

/// Whether Fletching waits on the events of this type itself, without a registered waiter.
inline bool has_own_waits(DeviceType type) noexcept {
  return of_runtime(Runtimes::kWaits, type).synchronize != nullptr;
}

inline std::optional<FletchingWaiter> find_waiter(DeviceType type) {
  WaiterRegistry& registry = WaiterRegistry::instance();
  const std::scoped_lock lock(registry.mutex);
  const WaiterRegistry::Entry* entry = *registry.find(type);
  if (entry == nullptr) return std::nullopt;
  return entry->waiter;
}

}  // namespace detail

/// Registers how to wait on the events of a device type, for the program or shared library that
/// this is compiled into. A waiter that was there is replaced; calls that have begun finish with
/// it, so that its context has to live on.
///
/// Errors: EINVAL for a device type that Fletching waits on itself (CUDA, HIP, OpenCL), and for a
/// waiter without any function. Threads: any.
inline Status register_waiter(DeviceType type, const FletchingWaiter& waiter) noexcept {
  return detail::guarded([&]() -> Status {
    if (detail::has_own_waits(type)) {
      return Error{EINVAL,
                   "register_waiter: " + type.name() +
                       " needs no waiter: expected a device type without a runtime in Fletching"};
    }
    if (!waiter.synchronize && !waiter.wait_on && !waiter.ready) {
      return Error{EINVAL, "register_waiter: the waiter for " + type.name() +
                               " has no function: expected at least one; hint: call "
                               "unregister_waiter to remove a waiter"};
    }
    detail::WaiterRegistry& registry = detail::WaiterRegistry::instance();
    const std::scoped_lock lock(registry.mutex);
    auto** const place = registry.find(type);
    // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new): guarded catches it
    if (*place == nullptr) *place = new detail::WaiterRegistry::Entry{type, waiter, nullptr};
    (*place)->waiter = waiter;
    return {};
  });
}

/// Removes the waiter of a device type. False when there was none. Threads: any.
inline bool unregister_waiter(DeviceType type) noexcept {
  detail::WaiterRegistry& registry = detail::WaiterRegistry::instance();
  const std::scoped_lock lock(registry.mutex);
  auto** const place = registry.find(type);
  const auto* const entry = *place;
  if (entry == nullptr) return false;
  *place = entry->next;
  delete entry;
  return true;
}

namespace detail {

/// The operations through the waiter that is registered for the device type.
struct RegisteredWaiter {
  static Status synchronize(const EventReference& event) {
    return call("synchronize", &FletchingWaiter::synchronize, event);
  }

  static Status wait_on(const EventReference& event, void* stream, OnCapture /*on_capture*/) {
    return call("wait_on", &FletchingWaiter::wait_on, event, stream);
  }

  static Result<bool> ready(const EventReference& event) {
    int ready = 0;
    Status status = call("ready", &FletchingWaiter::ready, event, &ready);
    if (!status) return std::move(status).error();
    return ready != 0;
  }

 private:
  template <class Function, class... Arguments>
  static Status call(const char* operation, Function FletchingWaiter::* function,
                     const EventReference& event, Arguments... arguments) {
    const std::optional<FletchingWaiter> waiter = find_waiter(event.device_type);
    if (!waiter) return no_waiter(operation, event.device_type);
    const std::string what = std::string(operation) + " of an event of " + event.device_type.name();
    if ((*waiter).*function == nullptr) {
      return Error{ENOTSUP, what + ": not supported by the registered waiter"};
    }
    FletchingMessage message{};
    const int code = ((*waiter).*function)(waiter->context, event.sync_event, event.device_id,
                                           arguments..., &message);
    if (code == 0) return {};
    message.text[sizeof message.text - 1] = '\0';
    const std::string text = printable(std::string_view(message.text));
    return Error{code, what + ": " + (text.empty() ? "waiter failed without a message" : text)};
  }

  static Error no_waiter(const char* operation, DeviceType type) {
    const std::string what = std::string(operation) + ": ";
    if (const char* instead = of_runtime(Runtimes::kInsteadOfWait, type)) {
      return {ENOTSUP, what + instead};
    }
    const bool has_none = type.is_known() && type.event_pointer() == EventPointer::kNone;
    return {ENOTSUP, what + "no way to wait on an event of " + type.name() +
                         (has_none ? ": expected sync_event NULL on this device type"
                                   : "; hint: register a waiter for this device type")};
  }
};

/// How to wait on the events of a device type.
inline const WaitFunctions& wait_functions(DeviceType type) noexcept {
  return has_own_waits(type) ? of_runtime(Runtimes::kWaits, type)
                             : kWaitFunctions<RegisteredWaiter>;
}

}  // namespace detail
}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_WAITER_HPP
