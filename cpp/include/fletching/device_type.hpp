// SPDX-License-Identifier: Apache-2.0
//
// The type of a device as an open number with a name.
#ifndef FLETCHING_DEVICE_TYPE_HPP
#define FLETCHING_DEVICE_TYPE_HPP

#include <compare>
#include <string>

#include "fletching/abi.h"
#include "fletching/tables.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {

/// A device type of the C Device Data Interface: any number that ArrowDeviceArray::device_type can
/// hold. Unknown numbers are valid; they print as "unknown(9999)".
class DeviceType {
 public:
  /// 0, which no device has.
  constexpr DeviceType() noexcept = default;
  /// Accepts every number, for example ARROW_DEVICE_CUDA.
  constexpr DeviceType(ArrowDeviceType value) noexcept : value_(value) {}

  [[nodiscard]] constexpr ArrowDeviceType value() const noexcept { return value_; }

  /// What the table has about it; nullptr for a number that it does not know.
  [[nodiscard]] constexpr const DeviceInfo* info() const noexcept { return find_device(value_); }
  [[nodiscard]] constexpr bool is_known() const noexcept { return info() != nullptr; }

  /// "cuda_host"; "unknown(9999)" for a number that is not known.
  [[nodiscard]] std::string name() const { return device_name(value_); }

  /// What a non-NULL sync_event of this type is. Of a number that is not known only its producer
  /// knows it.
  [[nodiscard]] constexpr EventPointer event_pointer() const noexcept {
    const DeviceInfo* known = info();
    return known != nullptr ? known->event_pointer : EventPointer::kProducerDefined;
  }

  /// Whose events it uses; Runtime::kNone for none, or one that is not known.
  [[nodiscard]] constexpr Runtime runtime() const noexcept {
    const DeviceInfo* known = info();
    return known != nullptr ? known->runtime : Runtime::kNone;
  }

  friend constexpr auto operator<=>(DeviceType, DeviceType) noexcept = default;

 private:
  ArrowDeviceType value_ = 0;
};

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_DEVICE_TYPE_HPP
