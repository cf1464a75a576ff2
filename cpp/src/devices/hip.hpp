// SPDX-License-Identifier: Apache-2.0
//
// The devices that HIP lists.
#ifndef FLETCHING_SRC_DEVICES_HIP_HPP
#define FLETCHING_SRC_DEVICES_HIP_HPP

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "devices/found_devices.hpp"
#include "devices/status.hpp"
#include "fletching/detail/text.hpp"
#include "fletching/runtimes/hip.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

inline std::string name_of(const hip::Functions& hip, hip::hipDevice_t device) {
  char name[FoundDevice::kMaxName] = {};
  const Status status =
      hip_status(hip, "hipDeviceGetName", hip.hip_device_get_name(name, sizeof name - 1, device));
  return status.ok() ? printable(std::string_view(name)) : in_parentheses(status);
}

inline FoundDevices find_hip_devices() {
  FoundDevices found;
  const auto* hip = load_runtime<hip::Functions>(hip::kRuntime, found);
  if (hip == nullptr) return found;
  if (!has_all({{"hipRuntimeGetVersion", hip->hip_runtime_get_version != nullptr},
                {"hipGetDeviceCount", hip->hip_get_device_count != nullptr},
                {"hipDeviceGet", hip->hip_device_get != nullptr},
                {"hipDeviceGetName", hip->hip_device_get_name != nullptr}},
               hip::kRuntime, found)) {
    return found;
  }
  Status status = hip_status(*hip, "hipInit", hip->hip_init(0));
  std::int32_t version = 0;
  if (status.ok()) {
    const Status version_status =
        hip_status(*hip, "hipRuntimeGetVersion", hip->hip_runtime_get_version(&version));
    found.version = version_status.ok() ? "HIP " + std::to_string(version / 10'000'000) + "." +
                                              std::to_string(version / 100'000 % 100) + "." +
                                              std::to_string(version % 100'000)
                                        : in_parentheses(version_status);
  }
  std::int32_t count = 0;
  if (status.ok()) {
    status = hip_status(*hip, "hipGetDeviceCount", hip->hip_get_device_count(&count));
  }
  for (std::int32_t ordinal = 0; status.ok() && ordinal < count; ++ordinal) {
    hip::hipDevice_t device = 0;
    status = hip_status(*hip, "hipDeviceGet", hip->hip_device_get(&device, ordinal));
    if (status.ok()) found.devices.push_back({ordinal, name_of(*hip, device)});
  }
  if (!status.ok()) return absent(std::move(found), status.error().message());
  return checked(std::move(found), hip::kRuntime);
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_SRC_DEVICES_HIP_HPP
