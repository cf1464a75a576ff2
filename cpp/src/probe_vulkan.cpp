// SPDX-License-Identifier: Apache-2.0
//
// Vulkan needs an instance to list its devices, and functions for it that are not in the table of
// events. Their structs are declared here, so that it does not depend on the machine of the build
// what a library can report; where the vendor's header is, they are held against it.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

#include "fletching/detail/event_handle.hpp"
#include "fletching/detail/text.hpp"
#include "fletching/detail/vulkan.hpp"
#include "fletching/runtimes/vulkan.hpp"
#include "probe.hpp"

#if __has_include(<vulkan/vulkan_core.h>)
#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>
#endif

namespace fletching::inspect {
namespace {

using fletching::vulkan::VkInstance;
using fletching::vulkan::VkPhysicalDevice;
using fletching::vulkan::VkResult;

constexpr std::int32_t kStructureTypeInstanceCreateInfo = 1;
constexpr VkResult kIncomplete = 5;

struct InstanceCreateInfo {
  std::int32_t structure_type;
  const void* next;
  std::uint32_t flags;
  const void* application;
  std::uint32_t layer_count;
  const char* const* layers;
  std::uint32_t extension_count;
  const char* const* extensions;
};

// The beginning of VkPhysicalDeviceProperties, and room for the rest of it.
struct DeviceProperties {
  std::uint32_t api_version;
  std::uint32_t driver_version;
  std::uint32_t vendor;
  std::uint32_t device;
  std::uint32_t type;
  char name[256];
  alignas(8) std::array<std::byte, 4096> rest;
};

#if defined(VK_VERSION_1_0)
static_assert(sizeof(InstanceCreateInfo) == sizeof(VkInstanceCreateInfo));
static_assert(offsetof(InstanceCreateInfo, application) ==
              offsetof(VkInstanceCreateInfo, pApplicationInfo));
static_assert(offsetof(InstanceCreateInfo, extensions) ==
              offsetof(VkInstanceCreateInfo, ppEnabledExtensionNames));
static_assert(offsetof(DeviceProperties, name) == offsetof(VkPhysicalDeviceProperties, deviceName));
static_assert(sizeof(DeviceProperties::name) == VK_MAX_PHYSICAL_DEVICE_NAME_SIZE);
static_assert(sizeof(DeviceProperties) >= sizeof(VkPhysicalDeviceProperties));
static_assert(alignof(DeviceProperties) >= alignof(VkPhysicalDeviceProperties));
static_assert(kStructureTypeInstanceCreateInfo == VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO);
static_assert(kIncomplete == VK_INCOMPLETE);
#endif

struct InstanceFunctions {
  StdcallFunction<VkResult(std::uint32_t*)> enumerate_instance_version;  // since Vulkan 1.1
  StdcallFunction<VkResult(const InstanceCreateInfo*, const void*, VkInstance*)> create_instance;
  StdcallFunction<void(VkInstance, const void*)> destroy_instance;
  StdcallFunction<VkResult(VkInstance, std::uint32_t*, VkPhysicalDevice*)>
      enumerate_physical_devices;
  StdcallFunction<void(VkPhysicalDevice, DeviceProperties*)> get_physical_device_properties;
};

template <class Function>
void find(const vulkan::Functions& vk, VkInstance instance, const char* name, Function& function) {
  function = reinterpret_cast<Function>(vk.vk_get_instance_proc_addr(instance, name));
}

std::string version_text(std::uint32_t version) {
  return "Vulkan " + std::to_string(version >> 22U & 0x7FU) + "." +
         std::to_string(version >> 12U & 0x3FFU) + "." + std::to_string(version & 0xFFFU);
}

std::string version_of(const InstanceFunctions& functions) {
  std::uint32_t version = 1U << 22U;  // of a loader that cannot be asked
  if (functions.enumerate_instance_version != nullptr) {
    const Status status = detail::vulkan_status("vkEnumerateInstanceVersion",
                                                functions.enumerate_instance_version(&version));
    if (!status.ok()) return "(" + status.error().message() + ")";
  }
  return version_text(version);
}

Status add_devices(const InstanceFunctions& functions, VkInstance instance, Probe& probe) {
  const char* name = "vkEnumeratePhysicalDevices";
  std::uint32_t count = 0;
  Status status =
      detail::vulkan_status(name, functions.enumerate_physical_devices(instance, &count, nullptr));
  if (!status.ok()) return status;
  std::vector<VkPhysicalDevice> devices(count);
  const VkResult listed = functions.enumerate_physical_devices(instance, &count, devices.data());
  // One that came in between is left out.
  if (listed != kIncomplete) status = detail::vulkan_status(name, listed);
  if (!status.ok()) return status;
  for (std::uint32_t i = 0; i < count && i < devices.size(); ++i) {
    DeviceProperties properties{};
    functions.get_physical_device_properties(devices[i], &properties);
    properties.name[sizeof properties.name - 1] = '\0';
    probe.devices.push_back({i, detail::printable(std::string_view(properties.name))});
  }
  return {};
}

// The devices of an instance that lives as long as this call.
Status look(const vulkan::Functions& vk, InstanceFunctions& functions, Probe& probe) {
  InstanceCreateInfo info{};
  info.structure_type = kStructureTypeInstanceCreateInfo;
  VkInstance instance = nullptr;
  Status status = detail::vulkan_status("vkCreateInstance",
                                        functions.create_instance(&info, nullptr, &instance));
  if (!status.ok()) return status;
  find(vk, instance, "vkDestroyInstance", functions.destroy_instance);
  // Without it the instance could not be given back.
  if (functions.destroy_instance == nullptr) {
    find(vk, instance, "vkDestroyInstance", functions.destroy_instance);
  }
  find(vk, instance, "vkEnumeratePhysicalDevices", functions.enumerate_physical_devices);
  find(vk, instance, "vkGetPhysicalDeviceProperties", functions.get_physical_device_properties);
  status = detail::guarded([&]() -> Status {
    if (functions.enumerate_physical_devices == nullptr ||
        functions.get_physical_device_properties == nullptr) {
      return Error{ENOSYS, "Vulkan: " + probe.library +
                               " has no vkEnumeratePhysicalDevices or no "
                               "vkGetPhysicalDeviceProperties; install a newer version of it"};
    }
    return add_devices(functions, instance, probe);
  });
  if (functions.destroy_instance != nullptr) functions.destroy_instance(instance, nullptr);
  return status;
}

}  // namespace

Probe probe_vulkan() {
  Probe probe;
  const auto* vk = load<vulkan::Functions>(vulkan::kRuntime, probe);
  if (vk == nullptr) return probe;
  InstanceFunctions functions{};
  find(*vk, nullptr, "vkEnumerateInstanceVersion", functions.enumerate_instance_version);
  find(*vk, nullptr, "vkCreateInstance", functions.create_instance);
  if (!has_all({{"vkCreateInstance", functions.create_instance != nullptr}}, vulkan::kRuntime,
               probe)) {
    return probe;
  }
  probe.version = version_of(functions);
  const Status status = look(*vk, functions, probe);
  if (status.ok()) return present(std::move(probe), vulkan::kRuntime);
  return absent(std::move(probe), status.error().message() +
                                      "; without a driver that works, install one, "
                                      "mesa-vulkan-drivers for example");
}

}  // namespace fletching::inspect
