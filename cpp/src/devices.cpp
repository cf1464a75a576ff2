// SPDX-License-Identifier: Apache-2.0
//
// The report of the devices: one entry for each device type of the table.
#include <array>
#include <cerrno>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fletching/c_api.h"
#include "fletching/detail/message.hpp"
#include "fletching/result.hpp"
#include "fletching/runtimes/cuda.hpp"
#include "fletching/runtimes/hip.hpp"
#include "fletching/runtimes/opencl.hpp"
#include "fletching/runtimes/vulkan.hpp"
#include "fletching/tables.hpp"
#include "fletching/waiter.hpp"
#include "probe.hpp"

using fletching::DeviceInfo;
using fletching::Runtime;
using fletching::inspect::FoundDevice;
using fletching::inspect::Presence;
using fletching::inspect::Probe;

static_assert(static_cast<int>(Presence::kAbsent) == FLETCHING_PRESENCE_ABSENT);
static_assert(static_cast<int>(Presence::kReal) == FLETCHING_PRESENCE_REAL);
static_assert(static_cast<int>(Presence::kStandIn) == FLETCHING_PRESENCE_STAND_IN);
static_assert(static_cast<int>(Presence::kUnknown) == FLETCHING_PRESENCE_UNKNOWN);

namespace {

// An entry with the memory that it points to.
struct Owned {
  std::string name;
  const char* runtime;
  Probe probe;
  std::vector<FletchingFoundDevice> devices;
  FletchingDeviceReportEntry entry;
};

// Each runtime once, whatever number of device types it has.
struct Probes {
  Probe cuda = fletching::inspect::probe_cuda();
  Probe hip = fletching::inspect::probe_hip();
  Probe opencl = fletching::inspect::probe_opencl();
  Probe vulkan = fletching::inspect::probe_vulkan();
};

const char* title_of(Runtime runtime) {
  switch (runtime) {
    case Runtime::kCuda:
      return fletching::cuda::kRuntime.title;
    case Runtime::kHip:
      return fletching::hip::kRuntime.title;
    case Runtime::kOpencl:
      return fletching::opencl::kRuntime.title;
    case Runtime::kVulkan:
      return fletching::vulkan::kRuntime.title;
    case Runtime::kSycl:
      return "SYCL";
    case Runtime::kMetal:
      return "Metal";
    case Runtime::kNone:
      break;
  }
  return "";
}

// A device type that has no library that could be asked.
Probe unknown(const DeviceInfo& device) {
  Probe probe;
  probe.presence = Presence::kUnknown;
  if (fletching::detail::find_waiter(device.value)) {
    probe.reason = "a waiter is registered for it; which devices there are, it cannot say";
  } else if (device.event_pointer == fletching::EventPointer::kNone) {
    probe.reason = "no library of it is known here; its sync_event is always NULL";
  } else if (device.runtime == Runtime::kSycl) {
    probe.reason =
        "a sycl::event is a C++ object of the library that made it: a waiter is needed, "
        "fletching/sycl.hpp has one";
  } else if (device.runtime == Runtime::kMetal) {
    probe.reason =
        "an MTLEvent is an object of Objective-C: a waiter is needed, fletching/metal.hpp has one";
  } else {
    probe.reason =
        "its events are what the producer says they are: a waiter is needed, see "
        "FletchingRegisterWaiter";
  }
  return probe;
}

Probe host() {
  Probe probe;
  probe.presence = Presence::kReal;
  probe.devices.push_back({-1, "host memory"});
  return probe;
}

Probe with_managed_memory(Probe probe) {
  if (probe.devices.empty()) return probe;
  std::erase_if(probe.devices,
                [](const FoundDevice& device) { return !device.has_managed_memory; });
  if (!probe.devices.empty()) return probe;
  return absent(std::move(probe), "no device here has managed memory");
}

Probe probe_for(const DeviceInfo& device, const Probes& probes) {
  switch (device.runtime) {
    case Runtime::kCuda:
      return device.value == ARROW_DEVICE_CUDA_MANAGED ? with_managed_memory(probes.cuda)
                                                       : probes.cuda;
    case Runtime::kHip:
      return probes.hip;
    case Runtime::kOpencl:
      return probes.opencl;
    case Runtime::kVulkan:
      return probes.vulkan;
    default:
      return device.value == ARROW_DEVICE_CPU ? host() : unknown(device);
  }
}

void fill(const DeviceInfo& device, const Probes& probes, Owned& owned) {
  owned.name = device.name;
  owned.runtime = title_of(device.runtime);
  owned.probe = probe_for(device, probes);
  for (const FoundDevice& found : owned.probe.devices) {
    owned.devices.push_back({found.id, found.name.c_str()});
  }
  owned.entry = {device.value,
                 static_cast<int32_t>(owned.probe.presence),
                 owned.name.c_str(),
                 owned.runtime,
                 owned.probe.library.c_str(),
                 owned.probe.version.c_str(),
                 owned.probe.reason.c_str(),
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
    write_message(message, "report is NULL");
    return EINVAL;
  }
  *report = nullptr;
  const fletching::Status status = fletching::detail::guarded([&]() -> fletching::Status {
    const Probes probes;
    auto made = std::make_unique<FletchingDeviceReport>();
    for (std::size_t i = 0; i < made->entries.size(); ++i) {
      fill(fletching::kDevices[i], probes, made->entries[i]);
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
