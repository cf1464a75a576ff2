// SPDX-License-Identifier: Apache-2.0
//
// DLPack tensors of the hostile peer: each is imported or rejected as the catalogue says, with any
// options, and its deleter is called once.
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "fletching/dlpack.hpp"
#include "hostile.hpp"

namespace fletching::testing {
namespace {

const std::vector<DlpackImportOptions> kOptions{
    {},
    {.dimensions = Dimensions::kFixedSizeLists},
    {.strided = Strided::kCopy},
    {.dimensions = Dimensions::kFixedSizeLists, .strided = Strided::kCopy, .as_storage = true}};

template <class Tensor>
Tensor open(const HostileCase& played) {
  typename Tensor::raw_type* raw = nullptr;
  if constexpr (std::is_same_v<Tensor, DlpackTensor>) {
    EXPECT_EQ(FletchingHostileExportTensor(played.c_str(), &raw, nullptr), 0);
  } else {
    EXPECT_EQ(FletchingHostileExportLegacyTensor(played.c_str(), &raw, nullptr), 0);
  }
  return Tensor(raw);
}

const ArrowArray& leaf(const ArrowArray& array) {
  return array.n_children == 0 ? array : leaf(*array.children[0]);
}

/// Accepted tensors contain 1, 2, 3 or a prefix of it.
void check_values(const HostileCase& played, const DeviceArray& array) {
  if (played.outcome != kFletchingHostileAccepted) return;
  const ArrowArray& values = leaf(array->array);
  EXPECT_EQ(values.length, played.is("tensor.empty")    ? 0
                           : played.is("tensor.scalar") ? 1
                                                        : 3)
      << played.name;
  if (array.device_type() != ARROW_DEVICE_CPU) return;
  const auto* first = static_cast<const std::int32_t*>(values.buffers[1]);
  for (std::int64_t i = 0; i < values.length; ++i) EXPECT_EQ(first[i], i + 1) << played.name;
}

template <class Tensor>
void play(const HostileCase& played) {
  for (const DlpackImportOptions& options : kOptions) {
    Result<ImportedTensor> imported = from_dlpack(open<Tensor>(played), options);
    std::optional<Error> error;
    if (!imported.ok()) error = imported.error();
    check_outcome(played, error);
    if (imported.ok()) {
      check_values(played, imported->array);
      // Releases the schema first and the memory last, on another thread.
      imported->schema.release();
      std::thread([array = std::move(imported->array)]() mutable { array.release(); }).join();
    }
    finish(played);
  }
}

TEST(HostileTensors, AreImportedOrRejected) {
  for (const HostileCase& played : hostile_cases(kFletchingHostileTensor)) {
    play<DlpackTensor>(played);
    play<LegacyDlpackTensor>(played);
  }
  for (const HostileCase& played : hostile_cases(kFletchingHostileVersionedTensor)) {
    play<DlpackTensor>(played);
  }
}

}  // namespace
}  // namespace fletching::testing
