// SPDX-License-Identifier: Apache-2.0
//
// The program fletching-inspect: reports the devices of this machine through libfletching's C ABI.
#include <cstdint>
#include <cstdio>
#include <exception>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fletching/c_api.h"

namespace {

constexpr int kCannotRun = 2;

constexpr const char* kUsage =
    "fletching-inspect devices [--json]\n"
    "    for each device type: what is there, and why the rest is not\n"
    "fletching-inspect --version\n"
    "Exit codes: 0 done, 2 could not run.\n";

struct DestroyReport {
  void operator()(FletchingDeviceReport* report) const { FletchingDeviceReportDestroy(report); }
};
using Report = std::unique_ptr<FletchingDeviceReport, DestroyReport>;

const char* presence_name(std::int32_t presence) {
  switch (presence) {
    case FLETCHING_PRESENCE_REAL:
      return "real";
    case FLETCHING_PRESENCE_ABSENT:
      return "absent";
    default:
      return "unknown";
  }
}

// --- Text output

// Describes the runtime: "CUDA driver API, CUDA 13.0, libcuda.so.1".
std::string runtime_text(const FletchingDeviceReportEntry& entry) {
  std::string text;
  for (std::string_view part : {entry.runtime, entry.version, entry.library}) {
    if (part.empty()) continue;
    text += (text.empty() ? "" : ", ") + std::string(part);
  }
  return text;
}

void print_text(const FletchingDeviceReportEntry& entry) {
  const std::string runtime = runtime_text(entry);
  std::printf("%-13s %s", entry.name, presence_name(entry.presence));
  std::printf("%s%s\n", runtime.empty() ? "" : ": ", runtime.c_str());
  for (std::int64_t i = 0; i < entry.n_devices; ++i) {
    std::printf("    %lld: %s\n", static_cast<long long>(entry.devices[i].id),
                entry.devices[i].name);
  }
  if (entry.reason[0] != '\0') std::printf("    %s\n", entry.reason);
}

// --- JSON output

std::string json(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted.append({'\\', c});
    } else if (byte < 0x20) {
      quoted.append({'\\', 'u', '0', '0', kDigits[byte >> 4U], kDigits[byte & 15U]});
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

std::string json(const FletchingDeviceReportEntry& entry) {
  std::string text = "  {\"device_type\": " + std::to_string(entry.device_type);
  text += ", \"name\": " + json(entry.name);
  text += ", \"presence\": " + json(presence_name(entry.presence));
  text += ", \"runtime\": " + json(entry.runtime);
  text += ", \"library\": " + json(entry.library);
  text += ", \"version\": " + json(entry.version);
  text += ", \"reason\": " + json(entry.reason);
  text += ", \"devices\": [";
  for (std::int64_t i = 0; i < entry.n_devices; ++i) {
    text += i == 0 ? "" : ", ";
    text += "{\"id\": " + std::to_string(entry.devices[i].id) +
            ", \"name\": " + json(entry.devices[i].name) + "}";
  }
  return text + "]}";
}

int devices(bool as_json) {
  FletchingDeviceReport* made = nullptr;
  FletchingMessage message{};
  if (FletchingDeviceReportCreate(&made, &message) != 0) {
    std::cerr << "fletching-inspect: " << message.text << '\n';
    return kCannotRun;
  }
  const Report report(made);
  const std::int64_t count = FletchingDeviceReportCount(made);
  if (as_json) std::puts("[");
  for (std::int64_t i = 0; i < count; ++i) {
    const FletchingDeviceReportEntry& entry = *FletchingDeviceReportGet(made, i);
    if (as_json) {
      std::printf("%s%s\n", json(entry).c_str(), i + 1 < count ? "," : "");
    } else {
      print_text(entry);
    }
  }
  if (as_json) std::puts("]");
  return 0;
}

int run(const std::vector<std::string_view>& arguments) {
  using Arguments = std::vector<std::string_view>;
  if (arguments == Arguments{"devices"}) return devices(false);
  if (arguments == Arguments{"devices", "--json"}) return devices(true);
  if (arguments == Arguments{"--version"})
    return std::puts(FletchingVersion()) < 0 ? kCannotRun : 0;
  if (arguments == Arguments{"--help"}) return std::fputs(kUsage, stdout) < 0 ? kCannotRun : 0;
  std::cerr << kUsage;
  return kCannotRun;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    return run({arguments + 1, arguments + count});
  } catch (const std::exception& error) {
    std::cerr << "fletching-inspect: " << error.what() << '\n';
    return kCannotRun;
  }
}
