// SPDX-License-Identifier: Apache-2.0
//
// The report of the devices: one entry for each device type of the table.
#include <array>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "devices/cuda.hpp"
#include "devices/found_devices.hpp"
#include "devices/hip.hpp"
#include "devices/opencl.hpp"
#include "devices/vulkan.hpp"
#include "fletching/c_api.h"
#include "fletching/detail/message.hpp"
#include "fletching/device_type.hpp"
#include "fletching/result.hpp"
#include "fletching/tables.hpp"

using fletching::DeviceInfo;
using fletching::Runtime;
using fletching::detail::absent;
using fletching::detail::FoundDevice;
using fletching::detail::FoundDevices;

namespace {

// An entry with the memory that it points to.
struct Owned {
  std::string name;
  FoundDevices found;
  std::vector<FletchingFoundDevice> devices;
  FletchingDeviceReportEntry entry;
};

// How the devices of a runtime are found, or why they cannot be.
struct Finder {
  FoundDevices (*find)() = nullptr;
  const char* why_not = nullptr;
};

Finder finder_of(Runtime runtime) {
  switch (runtime) {
    case Runtime::kCuda:
      return {&fletching::detail::find_cuda_devices};
    case Runtime::kHip:
      return {&fletching::detail::find_hip_devices};
    case Runtime::kOpencl:
      return {&fletching::detail::find_opencl_devices};
    case Runtime::kVulkan:
      return {&fletching::detail::find_vulkan_devices};
    case Runtime::kSycl:
      return {nullptr,
              "a sycl::event is a C++ object of the SYCL implementation; hint: register the waiter "
              "of fletching/sycl.hpp"};
    case Runtime::kMetal:
      return {nullptr,
              "an MTLEvent is an object of Objective-C; hint: register the waiter of "
              "fletching/metal.hpp"};
    case Runtime::kNone:
      break;
  }
  return {nullptr,
          "the producer defines its events; hint: register a waiter (FletchingRegisterWaiter)"};
}

// The names of the runtimes in a report, by number.
constexpr std::array kTitles{
    "",
    fletching::cuda::kRuntime.title,
    fletching::hip::kRuntime.title,
    fletching::opencl::kRuntime.title,
    fletching::vulkan::kRuntime.title,
    "SYCL",
    "Metal",
};
static_assert(kTitles.size() == static_cast<std::size_t>(Runtime::kMetal) + 1);

// Each runtime once, whatever number of device types it has.
using FoundByRuntime = std::array<FoundDevices, kTitles.size()>;

FoundByRuntime find_all() {
  FoundByRuntime found;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const Finder finder = finder_of(static_cast<Runtime>(i));
    if (finder.find != nullptr) found[i] = finder.find();
  }
  return found;
}

// Why a device type has no library that could be asked.
const char* why_unknown(const DeviceInfo& device) {
  if (FletchingHasWaiter(device.value) != 0) {
    return "a waiter is registered; it cannot list devices";
  }
  if (device.event_pointer == fletching::EventPointer::kNone) {
    return "no known library; its sync_event is always NULL";
  }
  return finder_of(device.runtime).why_not;
}

FoundDevices with_managed_memory(FoundDevices found) {
  if (found.devices.empty()) return found;
  std::erase_if(found.devices,
                [](const FoundDevice& device) { return !device.has_managed_memory; });
  if (!found.devices.empty()) return found;
  return absent(std::move(found), "no device with managed memory");
}

int32_t look(const DeviceInfo& device, const FoundByRuntime& by_runtime, FoundDevices& found) {
  if (device.value == ARROW_DEVICE_CPU) {
    found.devices.push_back({-1, "host memory"});
  } else if (finder_of(device.runtime).find == nullptr) {
    found.reason = why_unknown(device);
    return FLETCHING_PRESENCE_UNKNOWN;
  } else {
    found = by_runtime[static_cast<std::size_t>(device.runtime)];
  }
  if (device.value == ARROW_DEVICE_CUDA_MANAGED) found = with_managed_memory(std::move(found));
  return found.devices.empty() ? FLETCHING_PRESENCE_ABSENT : FLETCHING_PRESENCE_REAL;
}

void fill(const DeviceInfo& device, const FoundByRuntime& by_runtime, Owned& owned) {
  owned.name = device.name;
  const int32_t presence = look(device, by_runtime, owned.found);
  for (const FoundDevice& found : owned.found.devices) {
    owned.devices.push_back({found.id, found.name.c_str()});
  }
  owned.entry = {device.value,
                 presence,
                 owned.name.c_str(),
                 kTitles[static_cast<std::size_t>(device.runtime)],
                 owned.found.library.c_str(),
                 owned.found.version.c_str(),
                 owned.found.reason.c_str(),
                 static_cast<int64_t>(owned.devices.size()),
                 owned.devices.data()};
}

}  // namespace

struct FletchingDeviceReport {
  std::array<Owned, fletching::kDevices.size()> entries;
};

int FletchingDeviceReportCreate(FletchingDeviceReport** report, FletchingMessage* message) {
  using fletching::detail::write_message;
  if (report == nullptr) {
    write_message(message, "report: NULL: expected an address for the report");
    return EINVAL;
  }
  *report = nullptr;
  const fletching::Status status = fletching::detail::guarded([&]() -> fletching::Status {
    const FoundByRuntime by_runtime = find_all();
    auto made = std::make_unique<FletchingDeviceReport>();
    for (std::size_t i = 0; i < made->entries.size(); ++i) {
      fill(fletching::kDevices[i], by_runtime, made->entries[i]);
    }
    *report = made.release();
    return {};
  });
  write_message(message, status.ok() ? std::string_view() : status.error().message());
  return status.ok() ? 0 : status.error().code();
}

int64_t FletchingDeviceReportCount(const FletchingDeviceReport* report) {
  return report == nullptr ? 0 : static_cast<int64_t>(report->entries.size());
}

const FletchingDeviceReportEntry* FletchingDeviceReportGet(const FletchingDeviceReport* report,
                                                           int64_t index) {
  if (index < 0 || index >= FletchingDeviceReportCount(report)) return nullptr;
  return &report->entries[static_cast<std::size_t>(index)].entry;
}

void FletchingDeviceReportDestroy(FletchingDeviceReport* report) { delete report; }
