// SPDX-License-Identifier: Apache-2.0
//
// Results of the vendors' functions as ours.
#ifndef FLETCHING_SRC_DEVICES_STATUS_HPP
#define FLETCHING_SRC_DEVICES_STATUS_HPP

#include <cerrno>
#include <cstdint>
#include <string>
#include <utility>

#include "fletching/detail/text.hpp"
#include "fletching/result.hpp"
#include "fletching/runtimes/cuda.hpp"
#include "fletching/runtimes/hip.hpp"
#include "fletching/runtimes/opencl.hpp"
#include "fletching/runtimes/vulkan.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

/// A call of a vendor's function that did not work. `name` and `text` may be nullptr.
inline Error vendor_error(const char* title, const char* function, std::int64_t status,
                          const char* name, const char* text) {
  std::string message = std::string(title) + ": " + function + " failed with ";
  const std::string number = std::to_string(status);
  message += name != nullptr ? printable(name) + " (" + number + ")" : number;
  if (text != nullptr) message += ": " + printable(text);
  return {EIO, std::move(message)};
}

inline Status cuda_status(const cuda::Functions& cuda, const char* function,
                          cuda::CUresult result) {
  if (result == cuda::kCudaSuccess) return {};
  const char* name = nullptr;
  const char* text = nullptr;
  if (cuda.cu_get_error_name(result, &name) != cuda::kCudaSuccess) name = nullptr;
  if (cuda.cu_get_error_string(result, &text) != cuda::kCudaSuccess) text = nullptr;
  if (name == nullptr) name = cuda::status_name(result);
  return vendor_error(cuda::kRuntime.title, function, result, name, text);
}

inline Status hip_status(const hip::Functions& hip, const char* function, hip::hipError_t result) {
  if (result == hip::kHipSuccess) return {};
  const char* name = hip.hip_get_error_name(result);
  if (name == nullptr) name = hip::status_name(result);
  return vendor_error(hip::kRuntime.title, function, result, name,
                      hip.hip_get_error_string(result));
}

inline Status opencl_status(const char* function, opencl::cl_int result) {
  if (result == opencl::kClSuccess) return {};
  return vendor_error(opencl::kRuntime.title, function, result, opencl::status_name(result),
                      nullptr);
}

inline Status vulkan_status(const char* function, vulkan::VkResult result) {
  if (result == vulkan::kVkSuccess) return {};
  return vendor_error(vulkan::kRuntime.title, function, result, vulkan::status_name(result),
                      nullptr);
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_SRC_DEVICES_STATUS_HPP
