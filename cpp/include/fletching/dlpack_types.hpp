// SPDX-License-Identifier: Apache-2.0
//
// Which Arrow types are DLPack types, and which devices have which numbers.
//
// Integers and floats of 8 to 64 bits are DLPack's own. A byte with the extension arrow.bool8 is
// kDLBool; a fixed-size list is one more dimension, one with the extension arrow.fixed_shape_tensor
// has the dimensions that it says. Dates, times, decimals of up to 64 bits, fixed-size binary,
// dictionary indices and other extension types are exported as what stores them, when the caller
// asks for that: unit, scale, time zone or meaning get lost. Everything else is refused: bits have
// no addresses, and no DLPack type has several parts or several buffers.
//
// From DLPack to Arrow the same holds in reverse. As storage: kDLComplex as one more dimension of
// two floats, kDLBfloat as uint16, the 8-bit floats as uint8. Several lanes are one more dimension.
// Types narrower than a byte, handles and unknown codes are refused. docs/dlpack.md has the table.
#ifndef FLETCHING_DLPACK_TYPES_HPP
#define FLETCHING_DLPACK_TYPES_HPP

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fletching/abi.h"
#include "fletching/dlpack.h"
#include "fletching/extension.hpp"
#include "fletching/format.hpp"
#include "fletching/result.hpp"
#include "fletching/tables.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {

/// The most dimensions that a tensor may have here, a bound of ours; NumPy and PyTorch have the
/// same.
inline constexpr std::size_t kDlpackDimensions = 64;

/// How the values of an Arrow type look in DLPack.
struct DlpackType {
  DLDataType type;
  std::int64_t repeat = 1;  ///< values per element, in one more dimension; of a fixed-size binary
};

/// How an element of a DLPack type looks in Arrow.
struct ArrowType {
  std::string_view format;     ///< of a single value
  std::string_view extension;  ///< name of its extension type, or empty
  std::int64_t item_bytes = 0;
  std::int64_t repeat = 1;  ///< values per element, in one more dimension
};

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

enum class Exported : std::uint8_t { kYes, kAsStorage, kNo };

struct ExportRule {
  Exported exported;
  std::uint8_t code;
  std::string_view why;
};

/// What is decided about a type. The width is the format's.
constexpr ExportRule export_rule(TypeId id) noexcept {
  switch (id) {
    case TypeId::kInt8:
    case TypeId::kInt16:
    case TypeId::kInt32:
    case TypeId::kInt64:
      return {Exported::kYes, kDLInt, ""};
    case TypeId::kUInt8:
    case TypeId::kUInt16:
    case TypeId::kUInt32:
    case TypeId::kUInt64:
      return {Exported::kYes, kDLUInt, ""};
    case TypeId::kFloat16:
    case TypeId::kFloat32:
    case TypeId::kFloat64:
      return {Exported::kYes, kDLFloat, ""};
    case TypeId::kDate32:
    case TypeId::kDate64:
    case TypeId::kTime32:
    case TypeId::kTime64:
    case TypeId::kTimestamp:
    case TypeId::kDuration:
    case TypeId::kIntervalMonths:
      return {Exported::kAsStorage, kDLInt, "DLPack has no times, so the unit would be lost"};
    case TypeId::kDecimal:
      return {Exported::kAsStorage, kDLInt, "DLPack has no decimals, so the scale would be lost"};
    case TypeId::kFixedSizeBinary:
      return {Exported::kAsStorage, kDLUInt, "DLPack has no binary values, only bytes"};
    case TypeId::kBool:
      return {Exported::kNo, kDLBool,
              "Arrow's booleans are bits and DLPack's are bytes; hint: convert to arrow.bool8"};
    case TypeId::kIntervalDayTime:
    case TypeId::kIntervalMonthDayNano:
      return {Exported::kNo, kDLInt, "a value has several parts; hint: export each part"};
    case TypeId::kStruct:
      return {Exported::kNo, kDLInt, "a struct has columns; hint: export each column"};
    default:
      break;
  }
  return {Exported::kNo, kDLInt, "the values are not contiguous in one buffer"};
}

inline Error not_exported(std::string_view format, std::string_view why, bool as_storage_helps) {
  return {ENOTSUP, "ArrowSchema.format: no DLPack type for " + quote(format) + ": " +
                       std::string(why) +
                       (as_storage_helps ? "; hint: pass as_storage to export the storage" : "")};
}

inline Result<DlpackType> dlpack_type(std::string_view text, const Format& format,
                                      bool as_storage) {
  const ExportRule rule = export_rule(format.id);
  if (format.id == TypeId::kDecimal && format.bit_width > 64) {
    return not_exported(text, "DLPack has no integer of this width", false);
  }
  if (rule.exported == Exported::kNo) return not_exported(text, rule.why, false);
  if (rule.exported == Exported::kAsStorage && !as_storage) {
    return not_exported(text, rule.why, true);
  }
  if (format.id == TypeId::kFixedSizeBinary) {
    return DlpackType{{rule.code, 8, 1}, format.size};
  }
  return DlpackType{{rule.code, static_cast<std::uint8_t>(format.bit_width), 1}, 1};
}

inline std::string show(DLDataType type) {
  std::string text = data_type_code_name(type.code) + " of " + std::to_string(type.bits) + " bits";
  return type.lanes == 1 ? text : text + " and " + std::to_string(type.lanes) + " lanes";
}

/// The format of a plain value, empty when there is none.
constexpr std::string_view format_of(std::uint8_t code, unsigned bits) noexcept {
  const bool is_int = code == kDLInt;
  switch (bits) {
    case 8:
      return is_int ? "c" : code == kDLUInt ? "C" : "";
    case 16:
      return is_int ? "s" : code == kDLUInt ? "S" : code == kDLFloat ? "e" : "";
    case 32:
      return is_int ? "i" : code == kDLUInt ? "I" : code == kDLFloat ? "f" : "";
    case 64:
      return is_int ? "l" : code == kDLUInt ? "L" : code == kDLFloat ? "g" : "";
    default:
      return "";
  }
}

/// The storage of a type that Arrow lacks; with an empty format when there is none.
constexpr ArrowType storage_of(DLDataType type) noexcept {
  if (type.code == kDLComplex) {
    return {format_of(kDLFloat, type.bits / 2U), "", type.bits / 16, 2};
  }
  if (type.code == kDLBfloat && type.bits == 16) return {"S", "", 2, 1};
  const bool is_float8 = type.code >= kDLFloat8_e3m4 && type.code <= kDLFloat8_e8m0fnu;
  if (is_float8 && type.bits == 8) return {"C", "", 1, 1};
  return {};
}

/// `is_padded`: each element of a type narrower than a byte has a byte of its own.
inline Result<ArrowType> arrow_type(DLDataType type, bool as_storage, bool is_padded = false) {
  const auto refuse = [&](std::string_view why) {
    return Error{ENOTSUP,
                 "DLTensor.dtype: no Arrow type for " + show(type) + ": " + std::string(why)};
  };
  if (type.lanes == 0) return refuse("expected 1 lane or more, got 0");
  if (type.bits == 0) return refuse("expected elements of whole bytes, got 0 bits");
  if (type.bits % 8 != 0) {
    return refuse(is_padded ? "expected elements of whole bytes, got padded ones"
                            : "expected elements of whole bytes, got packed ones");
  }
  ArrowType found;
  if (type.code == kDLBool && type.bits == 8) {
    found = {"c", kBool8, 1, 1};
  } else {
    found = {format_of(type.code, type.bits), "", type.bits / 8, 1};
  }
  if (found.format.empty()) {
    found = storage_of(type);
    if (found.format.empty()) return refuse("expected a type that Arrow can store");
    if (!as_storage)
      return refuse("expected a plain type; hint: pass as_storage to import the storage");
  }
  found.repeat *= type.lanes;
  return found;
}

/// Whether `pointer + bytes` is an address again, as it is not with a handle.
constexpr bool is_address(ArrowDeviceType type) noexcept {
  const DeviceInfo* device = find_device(type);
  return device != nullptr &&
         (device->buffers == Buffers::kHostAddress || device->buffers == Buffers::kDeviceAddress ||
          device->buffers == Buffers::kSharedAddress);
}

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
