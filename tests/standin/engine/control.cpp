// SPDX-License-Identifier: Apache-2.0
// The functions of standin.h, and the report at process exit.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>

#include "engine.hpp"
#include "face.hpp"

#define FLETCHING_STANDIN_API extern "C" __attribute__((visibility("default")))

namespace fletching::standin {
namespace {

constexpr int kLeaked = 86;  // exit status for leaks with FLETCHING_STANDIN_LEAKS=fail

std::int64_t total(const FletchingStandinCounts& counts) {
  return counts.primary_references + counts.contexts + counts.streams + counts.events +
         counts.modules + counts.device_memory + counts.host_memory + counts.managed_memory +
         counts.graphs + counts.abandoned;
}

// Runs at process exit and reports only if the environment asks for it.
__attribute__((destructor)) void say_what_leaked() {
  const char* wanted = std::getenv("FLETCHING_STANDIN_LEAKS");
  if (wanted == nullptr) return;
  const bool fails = std::string_view(wanted) == "fail";
  const bool leaked = total(engine().counts()) != 0;
  if (leaked || !fails) (void)std::fputs(engine().report().c_str(), stderr);
  if (!fails || !leaked) return;
  (void)std::fflush(nullptr);
  _exit(kLeaked);
}

}  // namespace

std::string Engine::report() {
  const FletchingStandinCounts alive = counts();
  std::string text = std::string("Fletching stand-in (") + face::kName +
                     "): " + std::to_string(total(alive)) + " alive\n";
  const auto line = [&](std::string_view what, std::int64_t count) {
    text.append("  ").append(what).append(" ").append(std::to_string(count)).append("\n");
  };
  line("primary_references", alive.primary_references);
  line("contexts", alive.contexts);
  line("streams", alive.streams);
  line("events", alive.events);
  line("modules", alive.modules);
  line("device_memory", alive.device_memory);
  line("host_memory", alive.host_memory);
  line("managed_memory", alive.managed_memory);
  line("graphs", alive.graphs);
  line("abandoned", alive.abandoned);
  text += "calls\n";
  for (const auto& [function, count] : faults.all_calls()) line(function, count);
  return text;
}

}  // namespace fletching::standin

using fletching::standin::engine;

FLETCHING_STANDIN_API int FletchingStandinSetFault(const char* text) {
  try {
    return text != nullptr && engine().faults.add(text) ? 0 : EINVAL;
  } catch (...) {
    return ENOMEM;
  }
}

FLETCHING_STANDIN_API void FletchingStandinResetFaults(void) { engine().faults.reset(); }

FLETCHING_STANDIN_API int64_t FletchingStandinCalls(const char* function) {
  return function == nullptr ? 0 : engine().faults.calls(function);
}

FLETCHING_STANDIN_API void FletchingStandinSettle(void) {
  while (!engine().settled()) std::this_thread::yield();
}

FLETCHING_STANDIN_API void* FletchingStandinContents(const void* address) {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  const auto found = engine().memory.find(begin);
  return found == nullptr ? nullptr : found->bytes.get() + (begin - found->address);
}

FLETCHING_STANDIN_API int64_t FletchingStandinLeaks(FletchingStandinCounts* counts) {
  const FletchingStandinCounts alive = engine().counts();
  if (counts != nullptr) *counts = alive;
  return fletching::standin::total(alive);
}

FLETCHING_STANDIN_API int64_t FletchingStandinRelaxedThreads(void) {
  return fletching::standin::relaxed_threads();
}

FLETCHING_STANDIN_API int64_t FletchingStandinStaleHandles(void) {
  return engine().handles.stale();
}

FLETCHING_STANDIN_API size_t FletchingStandinReport(char* text, size_t size) {
  try {
    const std::string report = engine().report();
    if (text != nullptr && size > 0) {
      const size_t length = std::min(report.size(), size - 1);
      std::memcpy(text, report.data(), length);
      text[length] = '\0';
    }
    return report.size();
  } catch (...) {
    if (text != nullptr && size > 0) text[0] = '\0';
    return 0;
  }
}

FLETCHING_STANDIN_API int FletchingStandinLoseDevice(int device, int error) {
  try {
    engine().lose_device(device, error);
    return 0;
  } catch (...) {
    return EINVAL;
  }
}

FLETCHING_STANDIN_API int FletchingStandinRestoreDevice(int device) {
  try {
    engine().restore_device(device);
    return 0;
  } catch (...) {
    return EINVAL;
  }
}
