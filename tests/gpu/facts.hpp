// SPDX-License-Identifier: Apache-2.0
//
// Prints the facts about the device in the format that gpu.py reads.
#ifndef FLETCHING_TESTS_GPU_FACTS_HPP
#define FLETCHING_TESTS_GPU_FACTS_HPP

#include <cstdint>
#include <cstdio>
#include <string>

#include "cuda.hpp"
#include "error.hpp"

namespace fletching::gpu {

inline void print_fact(const char* name, const std::string& text) {
  std::printf("fact\t%s\t%s\n", name, printable(text).c_str());
}

/// Throws if there is no device.
inline void print_device() {
  char name[256] = {};
  std::int32_t version = 0;
  std::int32_t major = 0;
  std::int32_t minor = 0;
  require_call("cuDeviceGetName", cu().cu_device_get_name(name, sizeof name - 1, 0));
  require_call("cuDriverGetVersion", cu().cu_driver_get_version(&version));
  require_call(
      "cuDeviceGetAttribute",
      cu().cu_device_get_attribute(&major, cuda::kCuDeviceAttributeComputeCapabilityMajor, 0));
  require_call(
      "cuDeviceGetAttribute",
      cu().cu_device_get_attribute(&minor, cuda::kCuDeviceAttributeComputeCapabilityMinor, 0));
  const auto library = find_library(cuda::kRuntime);
  const bool stand_in = library && find_symbol(library->handle, "FletchingStandinCalls") != nullptr;
  print_fact("status", stand_in ? "stand-in" : "real");
  print_fact("device", name);
  print_fact("compute capability", std::to_string(major) + "." + std::to_string(minor));
  print_fact("CUDA of the driver",
             std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10));
}

}  // namespace fletching::gpu

#endif  // FLETCHING_TESTS_GPU_FACTS_HPP
