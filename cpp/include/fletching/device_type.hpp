// SPDX-License-Identifier: Apache-2.0
//
// A device type as an open number with a name.
#ifndef FLETCHING_DEVICE_TYPE_HPP
#define FLETCHING_DEVICE_TYPE_HPP

#include <compare>
#include <string>

#include "fletching/abi.h"
#include "fletching/tables.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {

/// A device type of the C Device Data Interface: any value of ArrowDeviceArray::device_type.
/// Unknown values are valid; their name is "unknown(9999)".
class DeviceType {
 public:
  /// 0, which is not the type of any device.
  constexpr DeviceType() noexcept = default;
  /// Accepts any number, for example ARROW_DEVICE_CUDA.
  constexpr DeviceType(ArrowDeviceType value) noexcept : value_(value) {}

  [[nodiscard]] constexpr ArrowDeviceType value() const noexcept { return value_; }

  /// The table entry of the type; nullptr for an unknown type.
  [[nodiscard]] constexpr const DeviceInfo* info() const noexcept { return find_device(value_); }
  [[nodiscard]] constexpr bool is_known() const noexcept { return info() != nullptr; }

  /// "cuda_host"; "unknown(9999)" for an unknown type.
  [[nodiscard]] std::string name() const { return device_name(value_); }

  /// The type of a non-NULL sync_event. For unknown device types the producer defines it.
  [[nodiscard]] constexpr EventPointer event_pointer() const noexcept {
    const DeviceInfo* known = info();
    return known != nullptr ? known->event_pointer : EventPointer::kProducerDefined;
  }

  /// The runtime of its events; Runtime::kNone if it has none or is unknown.
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
