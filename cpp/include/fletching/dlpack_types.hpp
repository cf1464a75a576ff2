// SPDX-License-Identifier: Apache-2.0
//
// DLPack: devices, and the choices of an export and an import. docs/dlpack.md has the table of
// types.
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

/// The most dimensions that a tensor may have here, a bound of ours; NumPy and PyTorch have the
/// same.
inline constexpr std::size_t kDlpackDimensions = FLETCHING_TENSOR_DIMENSIONS;

/// What to do about nulls, which DLPack has none of.
enum class Nulls : std::uint8_t {
  kRefuse,  ///< an error when there are any, or when the device hides whether there are
  kIgnore,  ///< export the memory in their place as it is
};

/// What a tensor of several dimensions becomes.
enum class Dimensions : std::uint8_t {
  kFixedShapeTensor,  ///< arrow.fixed_shape_tensor: any order of the inner dimensions
  kFixedSizeLists,    ///< fixed-size lists within each other: the last dimension varies fastest
};

namespace detail {

/// Whether this process can read the memory, once no work on it is pending.
constexpr bool is_host_readable(ArrowDeviceType type) noexcept {
  return is_accessible(type, ARROW_DEVICE_CPU);
}

}  // namespace detail

/// The DLPack device of an Arrow device. The id of memory that the host reads, the CPU's, pinned
/// and managed, is 0 in DLPack whatever it is in Arrow (DLDevice.device_id); device types that are
/// not known pass through. ERANGE when an id does not fit into DLPack's 32 bits.
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

/// The Arrow device id of a DLPack device: -1 for the CPU, otherwise the same number.
constexpr std::int64_t to_arrow_device_id(DLDevice device) noexcept {
  return device.device_type == kDLCPU ? -1 : device.device_id;
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_DLPACK_TYPES_HPP
