// SPDX-License-Identifier: Apache-2.0
//
// The control functions of a stand-in runtime, if the loaded library is one.
#ifndef FLETCHING_TESTS_GPU_CONTROL_HPP
#define FLETCHING_TESTS_GPU_CONTROL_HPP

#include <chrono>
#include <cstring>
#include <span>
#include <thread>

#include "runtimes/loader.hpp"
#include "standin.h"

namespace fletching::testing {

inline bool same(const FletchingStandinCounts& a, const FletchingStandinCounts& b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

class Control {
 public:
  explicit Control(const VendorRuntime& runtime) {
    const auto library = find_library(runtime);
    if (!library) return;
    find(library->handle, "FletchingStandinSetFault", set_fault_);
    find(library->handle, "FletchingStandinResetFaults", reset_faults_);
    find(library->handle, "FletchingStandinCalls", calls_);
    find(library->handle, "FletchingStandinSettle", settle_);
    find(library->handle, "FletchingStandinLeaks", leaks_);
    find(library->handle, "FletchingStandinStaleHandles", stale_handles_);
    functions_ = runtime.functions;
  }

  /// Whether the library is a stand-in rather than the vendor's.
  [[nodiscard]] bool is_there() const { return leaks_ != nullptr; }

  [[nodiscard]] bool set_fault(const char* text) const { return set_fault_(text) == 0; }
  void reset_faults() const { reset_faults_(); }
  [[nodiscard]] int64_t calls(const char* function) const { return calls_(function); }

  void settle() const { settle_(); }
  /// The number of calls of all functions in the table.
  [[nodiscard]] int64_t all_calls() const {
    int64_t sum = 0;
    for (const VendorFunction& function : functions_) sum += calls(function.name);
    return sum;
  }
  /// Number of calls that received the handle of a destroyed object.
  [[nodiscard]] int64_t stale_handles() const { return stale_handles_(); }

  [[nodiscard]] FletchingStandinCounts alive() const {
    FletchingStandinCounts counts{};
    leaks_(&counts);
    return counts;
  }

  /// Whether the live counts return to `wanted` without leaks. A deferred release runs later on
  /// another thread and destroys its event last. Times out after a minute.
  [[nodiscard]] bool comes_to(const FletchingStandinCounts& wanted) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!same(alive(), wanted)) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::yield();
    }
    return true;
  }

 private:
  template <class Function>
  static void find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(find_symbol(library, name));
  }

  decltype(&FletchingStandinSetFault) set_fault_ = nullptr;
  decltype(&FletchingStandinResetFaults) reset_faults_ = nullptr;
  decltype(&FletchingStandinCalls) calls_ = nullptr;
  decltype(&FletchingStandinSettle) settle_ = nullptr;
  decltype(&FletchingStandinLeaks) leaks_ = nullptr;
  decltype(&FletchingStandinStaleHandles) stale_handles_ = nullptr;
  std::span<const VendorFunction> functions_;
};

}  // namespace fletching::testing

#endif  // FLETCHING_TESTS_GPU_CONTROL_HPP
