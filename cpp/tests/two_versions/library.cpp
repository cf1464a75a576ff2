// SPDX-License-Identifier: Apache-2.0
//
// A shared library that uses the header library: built with these headers, and with those of a
// made-up next version.
#include <cstdint>

#include "fletching/runtimes/cuda.hpp"
#include "fletching/waiter.hpp"

extern "C" {

/// What the CUDA driver answers for its version, through the table of functions; negative on error.
[[gnu::visibility("default")]] std::int32_t fletching_test_driver_version() {
  const auto cuda = fletching::cuda::functions();
  std::int32_t version = 0;
  if (!cuda.ok() || (*cuda)->cu_driver_get_version(&version) != 0) return -1;
  return version;
}

/// Registers a waiter for EXT_DEV and answers how many there were before: 0 or 1.
[[gnu::visibility("default")]] int fletching_test_register() {
  const fletching::DeviceType device{ARROW_DEVICE_EXT_DEV};
  const bool was_there = fletching::unregister_waiter(device);
  FletchingWaiter waiter{};
  waiter.ready = [](void*, void*, std::int64_t, int* ready, FletchingMessage*) {
    return *ready = 0;
  };
  return fletching::register_waiter(device, waiter).ok() && was_there ? 1 : 0;
}

}  // extern "C"
