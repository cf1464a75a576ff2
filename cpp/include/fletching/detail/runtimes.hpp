// SPDX-License-Identifier: Apache-2.0
//
// The runtimes: each is a row. A new one is its entry in spec/runtimes.yaml, a header with its row,
// and its place in the list below.
#ifndef FLETCHING_DETAIL_RUNTIMES_HPP
#define FLETCHING_DETAIL_RUNTIMES_HPP

#include <array>
#include <cstddef>

#include "fletching/detail/cuda.hpp"
#include "fletching/detail/hip.hpp"
#include "fletching/detail/opencl.hpp"
#include "fletching/detail/runtime.hpp"
#include "fletching/detail/vulkan.hpp"
#include "fletching/device_type.hpp"
#include "fletching/tables.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

/// Device types without a runtime, and those that are not known.
struct NoRuntime : RuntimeRow {
  static constexpr Runtime kId = Runtime::kNone;
  static constexpr const char* kTitle = "";
  static constexpr const char* kNoRecords = "no runtime that records events";
};

struct SyclRuntime : RuntimeRow {
  static constexpr Runtime kId = Runtime::kSycl;
  static constexpr const char* kTitle = "SYCL";
  static constexpr const char* kNoRecords =
      "not supported for SYCL: a sycl::event is a C++ object of the SYCL implementation";
};

struct MetalRuntime : RuntimeRow {
  static constexpr Runtime kId = Runtime::kMetal;
  static constexpr const char* kTitle = "Metal";
  static constexpr const char* kNoRecords =
      "not supported by Metal: an MTLEvent is signaled by a command buffer, which the caller "
      "encodes";
};

/// The columns of the table, one entry for each row. A column that is not used is not compiled.
template <class... Rows>
struct RuntimeTable {
  template <class Value>
  using Column = std::array<Value, sizeof...(Rows)>;

  static constexpr Column<Runtime> kIds{Rows::kId...};
  static constexpr Column<const char*> kTitles{Rows::kTitle...};
  static constexpr Column<WaitFunctions> kWaits{Rows::kWaits...};
  static constexpr Column<const char*> kInsteadOfWait{Rows::kInsteadOfWait...};
  static constexpr Column<RecordFunctions> kRecords{Rows::kRecords...};
  static constexpr Column<const char*> kNoRecords{Rows::kNoRecords...};
};

/// In the order of the enum Runtime.
using Runtimes = RuntimeTable<NoRuntime, CudaRuntime, HipRuntime, OpenclRuntime, VulkanRuntime,
                              SyclRuntime, MetalRuntime>;

/// Of a column, the entry for a device type.
template <class Value>
constexpr const Value& of_runtime(const Runtimes::Column<Value>& column, DeviceType type) noexcept {
  return column[static_cast<std::size_t>(type.runtime())];
}

/// Whether every device type of tables.hpp finds the row of its runtime.
constexpr bool has_every_row() noexcept {
  // NOLINTNEXTLINE(readability-use-anyofallof): without <algorithm>
  for (const DeviceInfo& device : kDevices) {
    const auto place = static_cast<std::size_t>(device.runtime);
    if (place >= Runtimes::kIds.size() || Runtimes::kIds[place] != device.runtime) return false;
  }
  return true;
}
static_assert(has_every_row(), "the rows are the runtimes of fletching/tables.hpp, in their order");

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_DETAIL_RUNTIMES_HPP
