// SPDX-License-Identifier: Apache-2.0
//
// Control functions of the vendor library under a scenario: a stand-in, or an interposer for the
// real library.
#pragma once

#include <cstdint>
#include <string>

#include "runtimes/cuda.hpp"
#include "runtimes/hip.hpp"
#include "runtimes/opencl.hpp"
#include "runtimes/vulkan.hpp"
#include "standin.h"

namespace fletching::faults {

// A runtime and the error that its calls fail with.
struct Vendor {
  const VendorRuntime* runtime;
  const char* error;
};

// The vendor of a reference producer's backend; its runtime is nullptr for other backends.
inline Vendor vendor_of(const std::string& backend) {
  if (backend.starts_with("cuda")) return {&cuda::kRuntime, "CUDA_ERROR_LAUNCH_FAILED"};
  if (backend.starts_with("rocm")) return {&hip::kRuntime, "hipErrorLaunchFailure"};
  if (backend == "opencl") return {&opencl::kRuntime, "CL_OUT_OF_RESOURCES"};
  if (backend == "vulkan") return {&vulkan::kRuntime, "VK_ERROR_OUT_OF_HOST_MEMORY"};
  return {nullptr, ""};
}

class Control {
 public:
  explicit Control(const VendorRuntime& runtime) {
    const auto library = find_library(runtime);
    if (!library.ok()) return;
    for (const std::string prefix : {"FletchingStandin", "FletchingInterposer"}) {
      if (is_there()) break;
      find(library->handle, prefix + "SetFault", set_fault_);
      find(library->handle, prefix + "ResetFaults", reset_faults_);
      find(library->handle, prefix + "Calls", calls_);
      find(library->handle, prefix + "Leaks", leaks_);
      find(library->handle, prefix + "Report", report_);
      find(library->handle, prefix + "LoseDevice", lose_device_);
    }
  }

  [[nodiscard]] bool is_there() const { return leaks_ != nullptr; }

  // Returns false if this function cannot fail.
  [[nodiscard]] bool set_fault(const std::string& function, int n, const std::string& error) const {
    return set_fault_((function + ":" + std::to_string(n) + ":" + error).c_str()) == 0;
  }
  void reset_faults() const { reset_faults_(); }
  [[nodiscard]] int64_t calls(const std::string& function) const {
    return calls_(function.c_str());
  }
  [[nodiscard]] int64_t alive() const { return leaks_(nullptr); }
  [[nodiscard]] std::string report() const {
    std::string text(report_(nullptr, 0), '\0');
    report_(text.data(), text.size() + 1);
    return text;
  }
  [[nodiscard]] bool lose_device(int device, int error) const {
    return lose_device_ != nullptr && lose_device_(device, error) == 0;
  }

 private:
  template <class Function>
  static void find(void* library, const std::string& name, Function& function) {
    function = reinterpret_cast<Function>(find_symbol(library, name.c_str()));
  }

  decltype(&FletchingStandinSetFault) set_fault_ = nullptr;
  decltype(&FletchingStandinResetFaults) reset_faults_ = nullptr;
  decltype(&FletchingStandinCalls) calls_ = nullptr;
  decltype(&FletchingStandinLeaks) leaks_ = nullptr;
  decltype(&FletchingStandinReport) report_ = nullptr;
  decltype(&FletchingStandinLoseDevice) lose_device_ = nullptr;
};

}  // namespace fletching::faults
