// SPDX-License-Identifier: Apache-2.0
#include "probe.hpp"

#include <string_view>
#include <utility>

#include "fletching/detail/cuda.hpp"
#include "fletching/detail/hip.hpp"
#include "fletching/detail/opencl.hpp"
#include "fletching/detail/text.hpp"

namespace fletching::inspect {
namespace {

constexpr std::size_t kMaxName = 256;

// What stands in a report where a runtime would not tell a name or a version.
std::string not_told(const Status& status) { return "(" + status.error().message() + ")"; }

std::string name_of(const cuda::Functions& cuda, cuda::CUdevice device) {
  char name[kMaxName] = {};
  const Status status = detail::cuda_status(cuda, "cuDeviceGetName",
                                            cuda.cu_device_get_name(name, kMaxName - 1, device));
  return status.ok() ? detail::printable(std::string_view(name)) : not_told(status);
}

std::string name_of(const hip::Functions& hip, hip::hipDevice_t device) {
  char name[kMaxName] = {};
  const Status status = detail::hip_status(hip, "hipDeviceGetName",
                                           hip.hip_device_get_name(name, kMaxName - 1, device));
  return status.ok() ? detail::printable(std::string_view(name)) : not_told(status);
}

std::string text_of(const opencl::Functions& cl, opencl::cl_device_id device,
                    opencl::cl_uint what) {
  char text[kMaxName] = {};
  const Status status = detail::opencl_status(
      "clGetDeviceInfo", cl.cl_get_device_info(device, what, kMaxName - 1, text, nullptr));
  return status.ok() ? detail::printable(std::string_view(text)) : not_told(status);
}

// The devices of one driver; a driver without any is none, and no error.
Status add_devices(const opencl::Functions& cl, opencl::cl_platform_id platform, Probe& probe) {
  opencl::cl_uint count = 0;
  const auto result = cl.cl_get_device_ids(platform, opencl::kClDeviceTypeAll, 0, nullptr, &count);
  if (result == opencl::kClDeviceNotFound) return {};
  Status status = detail::opencl_status("clGetDeviceIDs", result);
  if (!status.ok()) return status;
  std::vector<opencl::cl_device_id> devices(count);
  status = detail::opencl_status(
      "clGetDeviceIDs",
      cl.cl_get_device_ids(platform, opencl::kClDeviceTypeAll, count, devices.data(), nullptr));
  if (!status.ok()) return status;
  for (opencl::cl_device_id device : devices) {
    if (probe.version.empty()) probe.version = text_of(cl, device, opencl::kClDeviceVersion);
    const auto id = static_cast<std::int64_t>(probe.devices.size());
    probe.devices.push_back({id, text_of(cl, device, opencl::kClDeviceName)});
  }
  return {};
}

}  // namespace

bool has_all(std::initializer_list<Needed> functions, const VendorRuntime& runtime, Probe& probe) {
  for (const Needed& function : functions) {
    if (function.is_there) continue;
    probe.reason = std::string(runtime.title) + ": " + probe.library + " has no " + function.name +
                   ", without which its devices cannot be listed; install a newer version of it";
    return false;
  }
  return true;
}

Probe absent(Probe probe, std::string reason) {
  probe.presence = Presence::kAbsent;
  probe.reason = std::move(reason);
  probe.devices.clear();
  return probe;
}

Probe present(Probe probe, const VendorRuntime& runtime) {
  if (probe.devices.empty()) {
    std::string reason =
        std::string(runtime.title) + ": " + probe.library + " works, but finds no device";
    return absent(std::move(probe), std::move(reason));
  }
  probe.presence = presence_of(runtime);
  return probe;
}

Probe probe_cuda() {
  Probe probe;
  const auto* cuda = load<cuda::Functions>(cuda::kRuntime, probe);
  if (cuda == nullptr) return probe;
  if (!has_all({{"cuDeviceGetName", cuda->cu_device_get_name != nullptr},
                {"cuDeviceGetAttribute", cuda->cu_device_get_attribute != nullptr}},
               cuda::kRuntime, probe)) {
    return probe;
  }
  std::int32_t version = 0;
  Status status =
      detail::cuda_status(*cuda, "cuDriverGetVersion", cuda->cu_driver_get_version(&version));
  probe.version = status.ok() ? "CUDA " + std::to_string(version / 1000) + "." +
                                    std::to_string(version % 1000 / 10)
                              : not_told(status);
  status = detail::cuda_status(*cuda, "cuInit", cuda->cu_init(0));
  std::int32_t count = 0;
  if (status.ok()) {
    status = detail::cuda_status(*cuda, "cuDeviceGetCount", cuda->cu_device_get_count(&count));
  }
  for (std::int32_t ordinal = 0; status.ok() && ordinal < count; ++ordinal) {
    cuda::CUdevice device = 0;
    status = detail::cuda_status(*cuda, "cuDeviceGet", cuda->cu_device_get(&device, ordinal));
    if (!status.ok()) break;
    std::int32_t managed = 0;
    status = detail::cuda_status(
        *cuda, "cuDeviceGetAttribute",
        cuda->cu_device_get_attribute(&managed, cuda::kCuDeviceAttributeManagedMemory, device));
    probe.devices.push_back({ordinal, name_of(*cuda, device), managed != 0});
  }
  if (!status.ok()) return absent(std::move(probe), status.error().message());
  return present(std::move(probe), cuda::kRuntime);
}

Probe probe_hip() {
  Probe probe;
  const auto* hip = load<hip::Functions>(hip::kRuntime, probe);
  if (hip == nullptr) return probe;
  if (!has_all({{"hipRuntimeGetVersion", hip->hip_runtime_get_version != nullptr},
                {"hipGetDeviceCount", hip->hip_get_device_count != nullptr},
                {"hipDeviceGet", hip->hip_device_get != nullptr},
                {"hipDeviceGetName", hip->hip_device_get_name != nullptr}},
               hip::kRuntime, probe)) {
    return probe;
  }
  Status status = detail::hip_status(*hip, "hipInit", hip->hip_init(0));
  std::int32_t version = 0;
  if (status.ok()) {
    const Status told =
        detail::hip_status(*hip, "hipRuntimeGetVersion", hip->hip_runtime_get_version(&version));
    probe.version = told.ok() ? "HIP " + std::to_string(version / 10'000'000) + "." +
                                    std::to_string(version / 100'000 % 100) + "." +
                                    std::to_string(version % 100'000)
                              : not_told(told);
  }
  std::int32_t count = 0;
  if (status.ok()) {
    status = detail::hip_status(*hip, "hipGetDeviceCount", hip->hip_get_device_count(&count));
  }
  for (std::int32_t ordinal = 0; status.ok() && ordinal < count; ++ordinal) {
    hip::hipDevice_t device = 0;
    status = detail::hip_status(*hip, "hipDeviceGet", hip->hip_device_get(&device, ordinal));
    if (status.ok()) probe.devices.push_back({ordinal, name_of(*hip, device)});
  }
  if (!status.ok()) return absent(std::move(probe), status.error().message());
  return present(std::move(probe), hip::kRuntime);
}

Probe probe_opencl() {
  Probe probe;
  const auto* cl = load<opencl::Functions>(opencl::kRuntime, probe);
  if (cl == nullptr) return probe;
  if (!has_all({{"clGetPlatformIDs", cl->cl_get_platform_ids != nullptr},
                {"clGetDeviceIDs", cl->cl_get_device_ids != nullptr},
                {"clGetDeviceInfo", cl->cl_get_device_info != nullptr}},
               opencl::kRuntime, probe)) {
    return probe;
  }
  constexpr opencl::cl_int kNoPlatform = -1001;  // CL_PLATFORM_NOT_FOUND_KHR
  opencl::cl_uint count = 0;
  const auto result = cl->cl_get_platform_ids(0, nullptr, &count);
  if (result == kNoPlatform || (result == opencl::kClSuccess && count == 0)) {
    std::string reason = "OpenCL: " + probe.library +
                         " is there, but no driver is registered with it; install one, "
                         "pocl-opencl-icd for example";
    return absent(std::move(probe), std::move(reason));
  }
  Status status = detail::opencl_status("clGetPlatformIDs", result);
  std::vector<opencl::cl_platform_id> platforms(count);
  if (status.ok()) {
    status = detail::opencl_status("clGetPlatformIDs",
                                   cl->cl_get_platform_ids(count, platforms.data(), nullptr));
  }
  for (std::size_t i = 0; status.ok() && i < platforms.size(); ++i) {
    status = add_devices(*cl, platforms[i], probe);
  }
  // One driver that does not work is no reason to hide the devices of another.
  if (!status.ok() && probe.devices.empty()) {
    return absent(std::move(probe), status.error().message());
  }
  return present(std::move(probe), opencl::kRuntime);
}

}  // namespace fletching::inspect
