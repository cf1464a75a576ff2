// SPDX-License-Identifier: Apache-2.0
//
// The registry of waiters, by device type.
#ifndef FLETCHING_WAITER_HPP
#define FLETCHING_WAITER_HPP

#include "fletching/detail/core.hpp"
#include "fletching/device_type.hpp"
#include "fletching/result.hpp"
#include "fletching/waiter.h"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {

/// Registers a waiter for the events of a device type, for the program or shared library that
/// contains the core. A previous waiter is replaced. Calls in progress finish with the previous
/// waiter, so its context must stay alive.
///
/// Errors: EINVAL for a device type that Fletching waits on itself (CUDA, HIP, OpenCL), and for a
/// waiter without functions. Threads: any.
inline Status register_waiter(DeviceType type, const FletchingWaiter& waiter) noexcept {
  return detail::in_operation("register_waiter", [&] {
    return detail::in_core(&FletchingRegisterWaiter, type.value(), &waiter);
  });
}

/// Removes the waiter of a device type. Returns false if none was registered. Threads: any.
inline bool unregister_waiter(DeviceType type) noexcept {
  return FletchingUnregisterWaiter(type.value()) != 0;
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_WAITER_HPP
