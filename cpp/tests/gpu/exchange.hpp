// SPDX-License-Identifier: Apache-2.0
//
// The data exchanged in the tests of the CUDA Array Interface and DLPack: four bytes on the device,
// written behind a gate.
#ifndef FLETCHING_TESTS_GPU_EXCHANGE_HPP
#define FLETCHING_TESTS_GPU_EXCHANGE_HPP

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "../error_messages.hpp"
#include "../released_array.hpp"
#include "fletching/array_builder.hpp"
#include "fletching/cuda_array.hpp"
#include "fletching/dlpack.hpp"
#include "fletching/dlpack_stream.hpp"
#include "fletching/schema_builder.hpp"
#include "gated.hpp"

namespace fletching::testing {

namespace cai = cuda_array_interface;

inline std::int64_t handle(void* stream) {
  return static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(stream));
}

inline void* stream_named(const cai::Interface& says) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(says.stream.value_or(0)));
}

/// Arrays of the four bytes, with release counts.
class Exchange : public Gated<CudaApi> {
 protected:
  void SetUp() override {
    Gated::SetUp();
    if (is_open_ && control_.is_there()) during_ = control_.alive();
  }

  void TearDown() override {
    if (!is_open_) return;
    open_gate();
    EXPECT_TRUE(releases_.wait_for(made_));
    // Checked while the context exists: an event that outlives it cannot be destroyed.
    EXPECT_TRUE(!control_.is_there() || control_.comes_to(during_)) << "something leaks";
    end_streams();
    close();
    EXPECT_TRUE(!control_.is_there() || control_.comes_to(before_)) << "something leaks";
  }

  [[nodiscard]] const void* data() const { return reinterpret_cast<const void*>(memory_); }

  /// Makes an array of one int32 in the memory, or of other values.
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
    const Status exported = export_with_event(array, on(producer_));
    EXPECT_TRUE(exported) << message(exported);
    return array;
  }

  CudaArray described(DeviceArray array, std::optional<void*> stream = {},
                      const CudaArrayExportOptions& options = {}, std::string_view format = "i") {
    const Schema schema = make_schema({.format = format}).value();
    Result<CudaArray> result =
        to_cuda_array(*schema, array, stream ? std::optional(on(*stream)) : std::nullopt, options);
    EXPECT_TRUE(result) << message(result);
    return result ? *std::move(result) : CudaArray(nullptr);
  }

  /// A description of the memory by another library.
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

  FletchingStandinCounts during_{};
  int made_ = 0;  // number of arrays made
  Releases releases_;
  Releases owners_;
};

using Rules = Exchange;

}  // namespace fletching::testing

#endif  // FLETCHING_TESTS_GPU_EXCHANGE_HPP
