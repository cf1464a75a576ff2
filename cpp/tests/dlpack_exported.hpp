// SPDX-License-Identifier: Apache-2.0
//
// Helpers for DLPack exports that succeed or fail.
#ifndef FLETCHING_TESTS_DLPACK_EXPORTED_HPP
#define FLETCHING_TESTS_DLPACK_EXPORTED_HPP

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <utility>
#include <vector>

#include "dlpack_data.hpp"
#include "fletching/dlpack.hpp"

namespace fletching::testing {

using Sizes = std::vector<std::int64_t>;

inline Sizes extents(const DLTensor& tensor) { return {tensor.shape, tensor.shape + tensor.ndim}; }
inline Sizes strides(const DLTensor& tensor) {
  return {tensor.strides, tensor.strides + tensor.ndim};
}

inline DlpackTensor exported(Data& data, const DlpackExportOptions& options = {}) {
  Schema schema = data.schema();
  DeviceArray array = data.array();
  Result<DlpackTensor> tensor = to_dlpack(*schema, array, options);
  if (!tensor) ADD_FAILURE() << tensor.error().message();
  EXPECT_TRUE(array.is_released());
  return std::move(tensor).value_or(DlpackTensor());
}

/// Returns the error and checks that the caller still owns the array.
inline Error refused(Data& data, const DlpackExportOptions& options = {}) {
  Schema schema = data.schema();
  DeviceArray array = data.array();
  Result<DlpackTensor> tensor = to_dlpack(*schema, array, options);
  EXPECT_FALSE(array.is_released());
  EXPECT_EQ(data.releases(), 0);
  if (tensor) ADD_FAILURE() << "exported";
  return tensor ? Error(EIO, "") : std::move(tensor).error();
}

}  // namespace fletching::testing

#endif  // FLETCHING_TESTS_DLPACK_EXPORTED_HPP
