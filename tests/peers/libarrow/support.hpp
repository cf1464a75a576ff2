// SPDX-License-Identifier: Apache-2.0
//
// libarrow arrays for the peer tests, on the CPU and on the fake device.
#ifndef FLETCHING_PEERS_LIBARROW_SUPPORT_HPP
#define FLETCHING_PEERS_LIBARROW_SUPPORT_HPP

#include <arrow/api.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "fake_device.hpp"

namespace fletching::peers {

/// The value of a libarrow Result. Throws on an error, which fails the test with the error's
/// message.
template <class T>
T value_of(arrow::Result<T> result) {
  EXPECT_TRUE(result.ok()) << result.status().ToString();
  return std::move(result).ValueOrDie();
}

inline std::shared_ptr<arrow::Array> int32_array(const std::vector<std::int32_t>& values) {
  arrow::Int32Builder builder;
  EXPECT_TRUE(builder.AppendValues(values).ok());
  return value_of(builder.Finish());
}

/// A batch with a single column "values".
inline std::shared_ptr<arrow::RecordBatch> int32_batch(const std::vector<std::int32_t>& values) {
  const auto array = int32_array(values);
  return arrow::RecordBatch::Make(arrow::schema({arrow::field("values", arrow::int32())}),
                                  array->length(), {array});
}

/// The same batch with its buffers on fake device number `device_id`.
inline std::shared_ptr<arrow::RecordBatch> on_fake_device(const arrow::RecordBatch& batch,
                                                          std::int64_t device_id) {
  return value_of(batch.CopyTo(fake_memory_manager(device_id)));
}

}  // namespace fletching::peers

#endif  // FLETCHING_PEERS_LIBARROW_SUPPORT_HPP
