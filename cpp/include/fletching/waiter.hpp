// SPDX-License-Identifier: Apache-2.0
//
// The waiters that the process has registered, by device type.
#ifndef FLETCHING_WAITER_HPP
#define FLETCHING_WAITER_HPP

#include "fletching/detail/core.hpp"
#include "fletching/device_type.hpp"
#include "fletching/result.hpp"
#include "fletching/waiter.h"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {

/// Registers how to wait on the events of a device type, for the program or shared library that
/// the core is linked into. A waiter that was there is replaced; calls that have begun finish with
/// it, so that its context has to live on.
///
/// Errors: EINVAL for a device type that Fletching waits on itself (CUDA, HIP, OpenCL), and for a
/// waiter without any function. Threads: any.
inline Status register_waiter(DeviceType type, const FletchingWaiter& waiter) noexcept {
  return detail::guarded(
      [&] { return detail::in_core(&FletchingRegisterWaiter, type.value(), &waiter); });
}

/// Removes the waiter of a device type. False when there was none. Threads: any.
inline bool unregister_waiter(DeviceType type) noexcept {
  return FletchingUnregisterWaiter(type.value()) != 0;
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_WAITER_HPP
