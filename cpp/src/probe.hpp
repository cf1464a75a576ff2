// SPDX-License-Identifier: Apache-2.0
//
// What of each vendor's runtime is on this machine. Nothing here creates a context.
#ifndef FLETCHING_SRC_PROBE_HPP
#define FLETCHING_SRC_PROBE_HPP

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "fletching/detail/vendor.hpp"

namespace fletching::inspect {

enum class Presence { kAbsent, kReal, kStandIn, kUnknown };

struct FoundDevice {
  std::int64_t id = 0;
  std::string name;
  bool has_managed_memory = false;  // CUDA
};

struct Probe {
  Presence presence = Presence::kAbsent;
  std::string library;  // as it was loaded; "" when it was not
  std::string version;
  std::string reason;  // why it is absent
  std::vector<FoundDevice> devices;
};

// Each loads the library when there is one, and says what it finds. They throw std::bad_alloc.
Probe probe_cuda();
Probe probe_hip();
Probe probe_opencl();
Probe probe_vulkan();

// --- What they share

// The library's functions with what a report says of the library; one that a probe needs and the
// library lacks is an error of its own.
template <class Functions>
const Functions* load(const VendorRuntime& runtime, Probe& probe) {
  const auto library = detail::find_library(runtime);
  if (library.ok()) probe.library = library->name;
  const auto loaded = detail::loaded_runtime<Functions>(runtime);
  if (!loaded.ok()) {
    probe.reason = loaded.error().message();
    return nullptr;
  }
  probe.library = (*loaded)->library.name;
  return &(*loaded)->functions;
}

// What a library of the tests is told by: it has control functions beside the vendor's.
inline Presence presence_of(const VendorRuntime& runtime) {
  const auto library = detail::find_library(runtime);
  const bool is_stand_in =
      library.ok() && detail::find_symbol(library->handle, "FletchingStandinCalls") != nullptr;
  return is_stand_in ? Presence::kStandIn : Presence::kReal;
}

// Whether every one of the functions is there; else the reason names the first that is not.
struct Needed {
  const char* name;
  bool is_there;
};
bool has_all(std::initializer_list<Needed> functions, const VendorRuntime& runtime, Probe& probe);

// Absent, for this reason.
Probe absent(Probe probe, std::string reason);

// Present, with the devices that it has; absent without any.
Probe present(Probe probe, const VendorRuntime& runtime);

}  // namespace fletching::inspect

#endif  // FLETCHING_SRC_PROBE_HPP
