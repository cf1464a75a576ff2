// SPDX-License-Identifier: Apache-2.0
//
// DLPack devices, and the options for export and import. The type table is in docs/dlpack.md.
#ifndef FLETCHING_DLPACK_TYPES_HPP
#define FLETCHING_DLPACK_TYPES_HPP

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>

#include "fletching/abi.h"
#include "fletching/dlpack.h"
#include "fletching/result.hpp"
#include "fletching/tables.hpp"
#include "fletching/tensor.h"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {

/// The maximum number of dimensions, a limit of this library; NumPy and PyTorch have the same.
inline constexpr std::size_t kDlpackDimensions = FLETCHING_TENSOR_DIMENSIONS;

/// How to handle nulls, which DLPack does not support.
enum class Nulls : std::uint8_t {
  kRefuse,  ///< an error if there are nulls, or if the device hides whether there are any
  kIgnore,  ///< export the memory of null slots as it is
};

/// The Arrow type for a tensor with several dimensions.
enum class Dimensions : std::uint8_t {
  kFixedShapeTensor,  ///< arrow.fixed_shape_tensor: any order of the inner dimensions
  kFixedSizeLists,    ///< nested fixed-size lists: the last dimension varies fastest
};

namespace detail {

/// Whether this process can read the memory once no work on it is pending.
constexpr bool is_host_readable(ArrowDeviceType type) noexcept {
  return is_accessible(type, ARROW_DEVICE_CPU);
}

}  // namespace detail

/// Returns the DLPack device of an Arrow device. For host-readable memory (CPU, pinned and managed)
/// the DLPack id is 0, regardless of the Arrow id (DLDevice.device_id). Unknown device types keep
/// their number. ERANGE for an id that does not fit into 32 bits.
inline Result<DLDevice> to_dlpack_device(ArrowDeviceType type, std::int64_t device_id) noexcept {
  return detail::guarded([&]() -> Result<DLDevice> {
    const auto dlpack_type = static_cast<DLDeviceType>(type);
    if (detail::is_host_readable(type)) return DLDevice{dlpack_type, 0};
    if (device_id < INT32_MIN || device_id > INT32_MAX) {
      return Error{ERANGE,
                   "ArrowDeviceArray.device_id: out of range for DLPack: expected an int32, got " +
                       std::to_string(device_id)};
    }
    return DLDevice{dlpack_type, static_cast<std::int32_t>(device_id)};
  });
}

/// Returns the Arrow device id of a DLPack device: -1 for the CPU, otherwise the same number.
constexpr std::int64_t to_arrow_device_id(DLDevice device) noexcept {
  return device.device_type == kDLCPU ? -1 : device.device_id;
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_DLPACK_TYPES_HPP
