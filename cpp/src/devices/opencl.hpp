// SPDX-License-Identifier: Apache-2.0
//
// The devices that OpenCL lists.
#ifndef FLETCHING_SRC_DEVICES_OPENCL_HPP
#define FLETCHING_SRC_DEVICES_OPENCL_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "devices/found_devices.hpp"
#include "devices/status.hpp"
#include "fletching/detail/text.hpp"
#include "fletching/runtimes/opencl.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

inline std::string text_of(const opencl::Functions& cl, opencl::cl_device_id device,
                           opencl::cl_uint what) {
  char text[FoundDevice::kMaxName] = {};
  const Status status = opencl_status(
      "clGetDeviceInfo", cl.cl_get_device_info(device, what, sizeof text - 1, text, nullptr));
  return status.ok() ? printable(std::string_view(text)) : in_parentheses(status);
}

/// The devices of one driver; a driver without any is none, and no error.
inline Status add_devices(const opencl::Functions& cl, opencl::cl_platform_id platform,
                          FoundDevices& found) {
  opencl::cl_uint count = 0;
  const auto result = cl.cl_get_device_ids(platform, opencl::kClDeviceTypeAll, 0, nullptr, &count);
  if (result == opencl::kClDeviceNotFound) return {};
  Status status = opencl_status("clGetDeviceIDs", result);
  if (!status.ok()) return status;
  std::vector<opencl::cl_device_id> devices(count);
  status = opencl_status("clGetDeviceIDs", cl.cl_get_device_ids(platform, opencl::kClDeviceTypeAll,
                                                                count, devices.data(), nullptr));
  if (!status.ok()) return status;
  for (opencl::cl_device_id device : devices) {
    if (found.version.empty()) found.version = text_of(cl, device, opencl::kClDeviceVersion);
    const auto id = static_cast<std::int64_t>(found.devices.size());
    found.devices.push_back({id, text_of(cl, device, opencl::kClDeviceName)});
  }
  return {};
}

inline FoundDevices find_opencl_devices() {
  FoundDevices found;
  const auto* cl = load_runtime<opencl::Functions>(opencl::kRuntime, found);
  if (cl == nullptr) return found;
  if (!has_all({{"clGetPlatformIDs", cl->cl_get_platform_ids != nullptr},
                {"clGetDeviceIDs", cl->cl_get_device_ids != nullptr},
                {"clGetDeviceInfo", cl->cl_get_device_info != nullptr}},
               opencl::kRuntime, found)) {
    return found;
  }
  constexpr opencl::cl_int kNoPlatform = -1001;  // CL_PLATFORM_NOT_FOUND_KHR
  opencl::cl_uint count = 0;
  const auto result = cl->cl_get_platform_ids(0, nullptr, &count);
  if (result == kNoPlatform || (result == opencl::kClSuccess && count == 0)) {
    std::string reason =
        "OpenCL: " + found.library +
        " is loaded, but no driver is registered; hint: install one, for example pocl-opencl-icd";
    return absent(std::move(found), std::move(reason));
  }
  Status status = opencl_status("clGetPlatformIDs", result);
  std::vector<opencl::cl_platform_id> platforms(count);
  if (status.ok()) {
    status = opencl_status("clGetPlatformIDs",
                           cl->cl_get_platform_ids(count, platforms.data(), nullptr));
  }
  for (std::size_t i = 0; status.ok() && i < platforms.size(); ++i) {
    status = add_devices(*cl, platforms[i], found);
  }
  // A driver that fails does not hide the devices of another.
  if (!status.ok() && found.devices.empty()) {
    return absent(std::move(found), status.error().message());
  }
  return checked(std::move(found), opencl::kRuntime);
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_SRC_DEVICES_OPENCL_HPP
