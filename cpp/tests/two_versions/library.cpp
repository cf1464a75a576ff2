// SPDX-License-Identifier: Apache-2.0
//
// A shared library that uses the header library, built with these headers, also with
// FLETCHING_VALIDATE_OWNERS, and with the headers of a fake newer version.
#include <cerrno>
#include <cstdint>

#include "fletching/owner.hpp"
#include "fletching/result.hpp"
#include "fletching/waiter.hpp"

extern "C" {

/// Returns an error code; the newer headers use different numbers.
[[gnu::visibility("default")]] std::int32_t fletching_test_code() {
  return fletching::Error{EINVAL, "made up"}.code();
}

/// Registers a waiter for EXT_DEV. Returns the previous number of waiters: 0 or 1.
[[gnu::visibility("default")]] int fletching_test_register() {
  const fletching::DeviceType device{ARROW_DEVICE_EXT_DEV};
  const bool was_there = fletching::unregister_waiter(device);
  FletchingWaiter waiter{};
  waiter.ready = [](void*, void*, std::int64_t, int* ready, FletchingMessage*) {
    return *ready = 0;
  };
  return fletching::register_waiter(device, waiter).ok() && was_there ? 1 : 0;
}

/// Whether an owner adds the validation layer to a struct.
[[gnu::visibility("default")]] bool fletching_test_validates() {
  ArrowSchema source{};
  source.format = "i";
  source.release = [](ArrowSchema* self) { self->release = nullptr; };
  const auto release = source.release;
  return fletching::Schema(&source)->release != release;
}

}  // extern "C"
