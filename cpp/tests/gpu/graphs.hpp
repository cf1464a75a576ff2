// SPDX-License-Identifier: Apache-2.0
//
// CUDA and HIP functions for captures and graphs, which the library does not use. They are loaded
// from the same library as the tables.
#ifndef FLETCHING_TESTS_GPU_GRAPHS_HPP
#define FLETCHING_TESTS_GPU_GRAPHS_HPP

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>

#include "api.hpp"

namespace fletching::testing {

/// The values are the same for both vendors.
enum class CaptureMode : std::int32_t { kGlobal, kThreadLocal, kRelaxed };
enum class CaptureStatus : std::int32_t { kNone, kActive, kInvalidated };
inline constexpr std::int32_t kCaptureInvalidated = 901;

template <class Api>
class Graphs {
 public:
  /// Whether the library has all functions.
  [[nodiscard]] static bool are_there() {
    return std::ranges::all_of(kSymbols,
                               [](const char* symbol) { return find(symbol) != nullptr; });
  }

  static void begin(void* stream, CaptureMode mode = CaptureMode::kGlobal) {
    EXPECT_EQ(call<std::int32_t(void*, CaptureMode)>(0)(stream, mode), 0);
  }
  /// Ends the capture and returns its result; *graph is nullptr on an error.
  static std::int32_t end(void* stream, void** graph) {
    return call<std::int32_t(void*, void**)>(1)(stream, graph);
  }
  /// Ends a valid capture.
  static void* end(void* stream) {
    void* graph = nullptr;
    EXPECT_EQ(end(stream, &graph), 0) << "the capture has been invalidated";
    return graph;
  }
  static CaptureStatus status(void* stream) {
    auto found = CaptureStatus::kNone;
    EXPECT_EQ((call<std::int32_t(void*, CaptureStatus*)>(2)(stream, &found)), 0);
    return found;
  }
  /// Creates an executable graph and destroys `graph`.
  static void* instantiate(void* graph) {
    void* made = nullptr;
    EXPECT_EQ((call<std::int32_t(void**, void*, unsigned long long)>(3)(&made, graph, 0)), 0);
    destroy(graph);
    return made;
  }
  static void launch(void* executable, void* stream) {
    EXPECT_EQ((call<std::int32_t(void*, void*)>(4)(executable, stream)), 0);
  }
  static void destroy(void* graph) { EXPECT_EQ(call<std::int32_t(void*)>(5)(graph), 0); }
  static void destroy_executable(void* executable) {
    EXPECT_EQ(call<std::int32_t(void*)>(6)(executable), 0);
  }
  /// Sets the calling thread's capture mode and returns the previous one.
  static CaptureMode exchange(CaptureMode mode) {
    EXPECT_EQ(call<std::int32_t(CaptureMode*)>(7)(&mode), 0);
    return mode;
  }

 private:
  using Symbols = std::array<const char*, 8>;
  static constexpr Symbols kCuda{"cuStreamBeginCapture_v2", "cuStreamEndCapture",
                                 "cuStreamIsCapturing",     "cuGraphInstantiateWithFlags",
                                 "cuGraphLaunch",           "cuGraphDestroy",
                                 "cuGraphExecDestroy",      "cuThreadExchangeStreamCaptureMode"};
  static constexpr Symbols kHip{"hipStreamBeginCapture", "hipStreamEndCapture",
                                "hipStreamIsCapturing",  "hipGraphInstantiateWithFlags",
                                "hipGraphLaunch",        "hipGraphDestroy",
                                "hipGraphExecDestroy",   "hipThreadExchangeStreamCaptureMode"};
  static constexpr Symbols kSymbols = std::is_same_v<Api, CudaApi> ? kCuda : kHip;

  static AnyFunction find(const char* symbol) {
    return find_symbol(find_library(Api::kRuntime)->handle, symbol);
  }
  template <class Signature>
  static Signature* call(std::size_t at) {
    return reinterpret_cast<Signature*>(find(kSymbols[at]));
  }
};

}  // namespace fletching::testing

#endif  // FLETCHING_TESTS_GPU_GRAPHS_HPP
