// SPDX-License-Identifier: Apache-2.0
//
// The devices that CUDA lists.
#ifndef FLETCHING_SRC_DEVICES_CUDA_HPP
#define FLETCHING_SRC_DEVICES_CUDA_HPP

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "devices/found_devices.hpp"
#include "devices/status.hpp"
#include "fletching/detail/text.hpp"
#include "fletching/runtimes/cuda.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

inline std::string name_of(const cuda::Functions& cuda, cuda::CUdevice device) {
  char name[FoundDevice::kMaxName] = {};
  const Status status =
      cuda_status(cuda, "cuDeviceGetName", cuda.cu_device_get_name(name, sizeof name - 1, device));
  return status.ok() ? printable(std::string_view(name)) : in_parentheses(status);
}

inline FoundDevices find_cuda_devices() {
  FoundDevices found;
  const auto* cuda = load_runtime<cuda::Functions>(cuda::kRuntime, found);
  if (cuda == nullptr) return found;
  if (!has_all({{"cuDeviceGetName", cuda->cu_device_get_name != nullptr},
                {"cuDeviceGetAttribute", cuda->cu_device_get_attribute != nullptr}},
               cuda::kRuntime, found)) {
    return found;
  }
  std::int32_t version = 0;
  Status status = cuda_status(*cuda, "cuDriverGetVersion", cuda->cu_driver_get_version(&version));
  found.version = status.ok() ? "CUDA " + std::to_string(version / 1000) + "." +
                                    std::to_string(version % 1000 / 10)
                              : in_parentheses(status);
  status = cuda_status(*cuda, "cuInit", cuda->cu_init(0));
  std::int32_t count = 0;
  if (status.ok()) {
    status = cuda_status(*cuda, "cuDeviceGetCount", cuda->cu_device_get_count(&count));
  }
  for (std::int32_t ordinal = 0; status.ok() && ordinal < count; ++ordinal) {
    cuda::CUdevice device = 0;
    status = cuda_status(*cuda, "cuDeviceGet", cuda->cu_device_get(&device, ordinal));
    if (!status.ok()) break;
    std::int32_t managed = 0;
    status = cuda_status(
        *cuda, "cuDeviceGetAttribute",
        cuda->cu_device_get_attribute(&managed, cuda::kCuDeviceAttributeManagedMemory, device));
    found.devices.push_back({ordinal, name_of(*cuda, device), managed != 0});
  }
  if (!status.ok()) return absent(std::move(found), status.error().message());
  return checked(std::move(found), cuda::kRuntime);
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_SRC_DEVICES_CUDA_HPP
