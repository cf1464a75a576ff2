// SPDX-License-Identifier: Apache-2.0
//
// The devices that Vulkan lists.
#ifndef FLETCHING_SRC_DEVICES_VULKAN_HPP
#define FLETCHING_SRC_DEVICES_VULKAN_HPP

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "devices/found_devices.hpp"
#include "devices/status.hpp"
#include "fletching/detail/text.hpp"
#include "fletching/runtimes/vulkan.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

// An instance is needed to list the devices, and functions for it that are not in the table of
// events. Their structs are declared here, so that it does not depend on the machine of the build
// what a library can report; cpp/tests/vendor holds them against the vendor's header.

inline constexpr std::int32_t kVkStructureTypeInstanceCreateInfo = 1;
inline constexpr vulkan::VkResult kVkIncomplete = 5;

struct VulkanInstanceCreateInfo {
  std::int32_t structure_type;
  const void* next;
  std::uint32_t flags;
  const void* application;
  std::uint32_t layer_count;
  const char* const* layers;
  std::uint32_t extension_count;
  const char* const* extensions;
};

/// The beginning of VkPhysicalDeviceProperties, and room for the rest of it.
struct VulkanDeviceProperties {
  std::uint32_t api_version;
  std::uint32_t driver_version;
  std::uint32_t vendor;
  std::uint32_t device;
  std::uint32_t type;
  char name[256];
  alignas(8) std::array<std::byte, 4096> rest;
};

struct VulkanInstanceFunctions {
  StdcallFunction<vulkan::VkResult(std::uint32_t*)> enumerate_instance_version;  // since Vulkan 1.1
  StdcallFunction<vulkan::VkResult(const VulkanInstanceCreateInfo*, const void*,
                                   vulkan::VkInstance*)>
      create_instance;
  StdcallFunction<void(vulkan::VkInstance, const void*)> destroy_instance;
  StdcallFunction<vulkan::VkResult(vulkan::VkInstance, std::uint32_t*, vulkan::VkPhysicalDevice*)>
      enumerate_physical_devices;
  StdcallFunction<void(vulkan::VkPhysicalDevice, VulkanDeviceProperties*)>
      get_physical_device_properties;
};

template <class Function>
void find_vulkan(const vulkan::Functions& vk, vulkan::VkInstance instance, const char* name,
                 Function& function) {
  function = reinterpret_cast<Function>(vk.vk_get_instance_proc_addr(instance, name));
}

inline std::string vulkan_version(std::uint32_t version) {
  return "Vulkan " + std::to_string(version >> 22U & 0x7FU) + "." +
         std::to_string(version >> 12U & 0x3FFU) + "." + std::to_string(version & 0xFFFU);
}

inline std::string version_of(const VulkanInstanceFunctions& functions) {
  std::uint32_t version = 1U << 22U;  // of a loader that cannot be asked
  if (functions.enumerate_instance_version != nullptr) {
    const Status status =
        vulkan_status("vkEnumerateInstanceVersion", functions.enumerate_instance_version(&version));
    if (!status.ok()) return "(" + status.error().message() + ")";
  }
  return vulkan_version(version);
}

inline Status add_devices(const VulkanInstanceFunctions& functions, vulkan::VkInstance instance,
                          FoundDevices& found) {
  const char* name = "vkEnumeratePhysicalDevices";
  std::uint32_t count = 0;
  Status status =
      vulkan_status(name, functions.enumerate_physical_devices(instance, &count, nullptr));
  if (!status.ok()) return status;
  std::vector<vulkan::VkPhysicalDevice> devices(count);
  const vulkan::VkResult listed =
      functions.enumerate_physical_devices(instance, &count, devices.data());
  // One that was added in between is left out.
  if (listed != kVkIncomplete) status = vulkan_status(name, listed);
  if (!status.ok()) return status;
  for (std::uint32_t i = 0; i < count && i < devices.size(); ++i) {
    VulkanDeviceProperties properties{};
    functions.get_physical_device_properties(devices[i], &properties);
    properties.name[sizeof properties.name - 1] = '\0';
    found.devices.push_back({i, printable(std::string_view(properties.name))});
  }
  return {};
}

/// The devices of an instance that lives as long as this call.
inline Status find_in_instance(const vulkan::Functions& vk, VulkanInstanceFunctions& functions,
                               FoundDevices& found) {
  VulkanInstanceCreateInfo info{};
  info.structure_type = kVkStructureTypeInstanceCreateInfo;
  vulkan::VkInstance instance = nullptr;
  Status status =
      vulkan_status("vkCreateInstance", functions.create_instance(&info, nullptr, &instance));
  if (!status.ok()) return status;
  find_vulkan(vk, instance, "vkDestroyInstance", functions.destroy_instance);
  // Without it the instance could not be destroyed.
  if (functions.destroy_instance == nullptr) {
    find_vulkan(vk, instance, "vkDestroyInstance", functions.destroy_instance);
  }
  find_vulkan(vk, instance, "vkEnumeratePhysicalDevices", functions.enumerate_physical_devices);
  find_vulkan(vk, instance, "vkGetPhysicalDeviceProperties",
              functions.get_physical_device_properties);
  status = guarded([&]() -> Status {
    if (functions.enumerate_physical_devices == nullptr ||
        functions.get_physical_device_properties == nullptr) {
      return Error{ENOSYS, "Vulkan: " + found.library +
                               " has no vkEnumeratePhysicalDevices or no "
                               "vkGetPhysicalDeviceProperties; hint: install a newer version"};
    }
    return add_devices(functions, instance, found);
  });
  if (functions.destroy_instance != nullptr) functions.destroy_instance(instance, nullptr);
  return status;
}

inline FoundDevices find_vulkan_devices() {
  FoundDevices found;
  const auto* vk = load_runtime<vulkan::Functions>(vulkan::kRuntime, found);
  if (vk == nullptr) return found;
  VulkanInstanceFunctions functions{};
  find_vulkan(*vk, nullptr, "vkEnumerateInstanceVersion", functions.enumerate_instance_version);
  find_vulkan(*vk, nullptr, "vkCreateInstance", functions.create_instance);
  if (!has_all({{"vkCreateInstance", functions.create_instance != nullptr}}, vulkan::kRuntime,
               found)) {
    return found;
  }
  found.version = version_of(functions);
  const Status status = find_in_instance(*vk, functions, found);
  if (status.ok()) return checked(std::move(found), vulkan::kRuntime);
  return absent(std::move(found), status.error().message() +
                                      "; hint: install a driver, for example mesa-vulkan-drivers");
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_SRC_DEVICES_VULKAN_HPP
