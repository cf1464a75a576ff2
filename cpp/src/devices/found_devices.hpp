// SPDX-License-Identifier: Apache-2.0
//
// Which devices of a runtime are on this machine. Nothing here creates a context.
#ifndef FLETCHING_SRC_DEVICES_FOUND_DEVICES_HPP
#define FLETCHING_SRC_DEVICES_FOUND_DEVICES_HPP

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "fletching/detail/text.hpp"
#include "fletching/detail/vendor.hpp"
#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

struct FoundDevice {
  static constexpr std::size_t kMaxName = 256;

  std::int64_t id = 0;
  std::string name;
  bool has_managed_memory = false;  ///< CUDA
};

/// What a runtime has; without devices, the reason why.
struct FoundDevices {
  std::string library;  ///< as it was loaded; "" when it was not
  std::string version;
  std::string reason;
  std::vector<FoundDevice> devices;
};

/// What a report contains in place of a name or a version that the runtime did not return.
inline std::string in_parentheses(const Status& status) {
  return "(" + status.error().message() + ")";
}

/// The library's functions with what a report says of the library; nullptr, and a reason, without.
template <class Functions>
const Functions* load_runtime(const VendorRuntime& runtime, FoundDevices& found) {
  const auto library = find_library(runtime);
  if (library.ok()) found.library = library->name;
  const auto loaded = loaded_runtime<Functions>(runtime);
  if (!loaded.ok()) {
    found.reason = loaded.error().message();
    return nullptr;
  }
  found.library = (*loaded)->library.name;
  return &(*loaded)->functions;
}

struct Needed {
  const char* name;
  bool is_there;
};

/// Whether every one of the functions is there; else the reason names the first that is not.
inline bool has_all(std::initializer_list<Needed> functions, const VendorRuntime& runtime,
                    FoundDevices& found) {
  for (const Needed& function : functions) {
    if (function.is_there) continue;
    found.reason = std::string(runtime.title) + ": " + found.library + " has no " + function.name +
                   ", which lists its devices; hint: install a newer version";
    return false;
  }
  return true;
}

/// No device, for this reason.
inline FoundDevices absent(FoundDevices found, std::string reason) {
  found.reason = std::move(reason);
  found.devices.clear();
  return found;
}

/// The same, with a reason when there is no device.
inline FoundDevices checked(FoundDevices found, const VendorRuntime& runtime) {
  if (!found.devices.empty()) return found;
  std::string reason =
      std::string(runtime.title) + ": " + found.library + " is loaded, but finds no device";
  return absent(std::move(found), std::move(reason));
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_SRC_DEVICES_FOUND_DEVICES_HPP
