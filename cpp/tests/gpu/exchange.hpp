// SPDX-License-Identifier: Apache-2.0
//
// What is exchanged with the CUDA Array Interface and DLPack in the tests: four bytes of the
// device, written behind a gate.
#ifndef FLETCHING_TESTS_GPU_EXCHANGE_HPP
#define FLETCHING_TESTS_GPU_EXCHANGE_HPP

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "../released_array.hpp"
#include "api.hpp"
#include "control.hpp"
#include "fletching/array_builder.hpp"
#include "fletching/cuda_array.hpp"
#include "fletching/dlpack.hpp"
#include "fletching/schema_builder.hpp"

namespace fletching::testing {

namespace cai = cuda_array_interface;

template <class T>
std::string message(const Result<T>& result) {
  return result.ok() ? std::string("no error") : result.error().message();
}

inline void expect_mentions(const Error& error, std::string_view text) {
  EXPECT_NE(error.message().find(text), std::string::npos) << error.message();
}

inline std::int64_t handle(void* stream) {
  return static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(stream));
}

inline void* stream_named(const cai::Interface& says) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(says.stream.value_or(0)));
}

/// A work stream of the producer behind a gate, a stream of the consumer, four bytes of the device.
class Exchange : public ::testing::Test {
 protected:
  using Api = CudaApi;

  static constexpr std::int32_t kOld = 0;
  static constexpr std::int32_t kNew = 0x01010101;

  void SetUp() override {
    if (auto loaded = Api::load(); !loaded) GTEST_SKIP() << loaded.error().message();
    if (Api::devices() == 0) GTEST_SKIP() << Api::kRuntime.title << ": there is no device";
    if (control_.is_there()) {
      control_.reset_faults();
      before_ = control_.alive();
    } else {
      Api::keep_device(0);
    }
    Api::open_device(0);
    is_open_ = true;
    producer_ = Api::make_stream();
    consumer_ = Api::make_stream();
    memory_ = Api::allocate();
    gate_ = static_cast<std::int32_t*>(Api::allocate_pinned());
    read_ = static_cast<std::int32_t*>(Api::allocate_pinned());
    *gate_ = 0;
    Api::fill(memory_, 0, producer_);
    Api::synchronize(producer_);
    if (control_.is_there()) during_ = control_.alive();
  }

  void TearDown() override {
    if (!is_open_) return;
    open_gate();
    EXPECT_TRUE(releases_.wait_for(made_));
    // While the context is there: an event that outlives it cannot be destroyed any more.
    EXPECT_TRUE(!control_.is_there() || is_alive(during_)) << "something leaks";
    Api::destroy_stream(producer_);
    Api::destroy_stream(consumer_);
    Api::free(memory_);
    Api::free_pinned(gate_);
    Api::free_pinned(read_);
    Api::close_device(0);
    if (!control_.is_there()) return;
    control_.reset_faults();
    EXPECT_TRUE(is_alive(before_)) << "something leaks";
  }

  // What was released behind a stream goes later, on another thread, its event last of all. Gives
  // up, and fails, after a minute.
  bool is_alive(const FletchingStandinCounts& wanted) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!same(control_.alive(), wanted)) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::yield();
    }
    return true;
  }

  void open_gate() { std::atomic_ref<std::int32_t>(*gate_).store(1, std::memory_order_release); }
  void write_behind_gate() {
    Api::wait_for_word(producer_, gate_);
    Api::fill(memory_, 1, producer_);
  }
  std::int32_t read_on(void* stream) {
    Api::read(read_, memory_, stream);
    Api::synchronize(stream);
    return *read_;
  }

  [[nodiscard]] const void* data() const { return reinterpret_cast<const void*>(memory_); }

  /// One int32 in the memory, or what else is said.
  DeviceArray make(const ArrayValues& values = {.length = 1}, const void* bitmap = nullptr,
                   ArrowDeviceType type = ARROW_DEVICE_CUDA) {
    auto builder = build_array({.buffers = 2}, Counted(&releases_));
    if (!builder) return {};
    builder->set(builder->root(), values, {bitmap, data()});
    Result<DeviceArray> array = builder->finish(type, 0);
    ++made_;
    return array ? *std::move(array) : DeviceArray();
  }

  DeviceArray make_with_event() {
    DeviceArray array = make();
    const Status exported = export_with_event(array, producer_);
    EXPECT_TRUE(exported) << message(exported);
    return array;
  }

  CudaArray described(DeviceArray array, std::optional<void*> stream = {},
                      const CudaArrayExportOptions& options = {}, std::string_view format = "i") {
    const Schema schema = make_schema({.format = format}).value();
    Result<CudaArray> result = to_cuda_array(*schema.get(), array, stream, options);
    EXPECT_TRUE(result) << message(result);
    return result ? *std::move(result) : CudaArray(nullptr);
  }

  /// What another library would say of the memory.
  cai::Interface says(std::optional<std::int64_t> stream = {}) const {
    cai::Interface interface;
    interface.shape = kOne;
    interface.typestr = "<i4";
    interface.pointer = memory_;
    interface.stream = stream;
    return interface;
  }

  ImportedTensor imported(const cai::Interface& interface,
                          const CudaArrayImportOptions& options = {}) {
    Result<ImportedTensor> result = from_cuda_array(interface, Counted(&owners_), options);
    EXPECT_TRUE(result) << message(result);
    return result ? *std::move(result) : ImportedTensor{};
  }

  Error refused(const cai::Interface& interface, const CudaArrayImportOptions& options = {}) {
    const int before = owners_.count();
    Result<ImportedTensor> result = from_cuda_array(interface, Counted(&owners_), options);
    EXPECT_FALSE(result);
    EXPECT_EQ(owners_.count(), before + 1);
    return result ? Error(EIO, "") : std::move(result).error();
  }

  static constexpr std::array<std::int64_t, 1> kOne{1};
  static constexpr std::array<std::int64_t, 1> kEight{8};

  const Control control_{Api::kRuntime};
  FletchingStandinCounts before_{};
  FletchingStandinCounts during_{};
  bool is_open_ = false;
  void* producer_ = nullptr;
  void* consumer_ = nullptr;
  std::uintptr_t memory_ = 0;
  std::int32_t* gate_ = nullptr;
  std::int32_t* read_ = nullptr;
  int made_ = 0;  // arrays
  Releases releases_;
  Releases owners_;
};

using Rules = Exchange;

}  // namespace fletching::testing

#endif  // FLETCHING_TESTS_GPU_EXCHANGE_HPP
