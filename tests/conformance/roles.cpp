// SPDX-License-Identifier: Apache-2.0
#include "roles.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>

#include "fletching/detail/message.hpp"
#include "fletching/roles.h"

namespace fletching::conformance {
namespace {

constexpr std::array kRoles{
    Role{"array-producer", play_array_producer},
    Role{"device-array-producer", play_device_array_producer},
    Role{"stream-producer", play_stream_producer},
    Role{"device-stream-producer", play_device_stream_producer},
    Role{"async-producer", play_async_producer},
    Role{"tensor-producer", play_tensor_producer},
    Role{"array-consumer", play_array_consumer},
    Role{"device-array-consumer", play_device_array_consumer},
    Role{"stream-consumer", play_stream_consumer},
    Role{"device-stream-consumer", play_device_stream_consumer},
    Role{"async-consumer", play_async_consumer},
    Role{"tensor-consumer", play_tensor_consumer},
    Role{"legacy-tensor-consumer", play_legacy_tensor_consumer},
};

int failed(FletchingMessage* message, int code, std::string_view text) noexcept {
  fletching::detail::write_message(message, text);
  return code;
}

}  // namespace
}  // namespace fletching::conformance

extern "C" {

const char* FletchingConformanceRole(int32_t index) {
  using fletching::conformance::kRoles;
  const auto at = static_cast<std::size_t>(index);
  return index < 0 || at >= kRoles.size() ? nullptr : kRoles[at].name;
}

int FletchingConformanceRunFunction(const char* role, void (*function)(void), int32_t level,
                                    const FletchingConformanceOptions* options, int64_t* wrong,
                                    FletchingMessage* message) {
  using namespace fletching::conformance;
  if (role == nullptr || function == nullptr) {
    return failed(message, EINVAL, "role, function: expected both, got NULL");
  }
  const auto* const found =
      std::ranges::find(kRoles, std::string_view(role), [](const Role& each) { return each.name; });
  if (found == kRoles.end()) return failed(message, EINVAL, "role: is unknown");
  if (level < FLETCHING_VALIDATE_PROTOCOL || level > FLETCHING_VALIDATE_DATA) {
    return failed(message, EINVAL, "level: is unknown: expected a FLETCHING_VALIDATE_ value");
  }
  FletchingConformanceOptions chosen{};
  if (options != nullptr && !copy_options(*options, &chosen)) {
    return failed(message, EINVAL, "options: size is unknown");
  }
  try {
    FletchingSubject subject{};
    subject.name = role;
    Run run(subject, chosen);
    run.enter(role);
    found->play(run, {role, function, level});
    if (run.begun() == 0) return failed(message, EINVAL, run.unknown_case());
    if (wrong != nullptr) *wrong = run.wrong();
  } catch (const std::bad_alloc&) {
    return failed(message, ENOMEM, "no memory for a case");
  }
  return failed(message, 0, "");
}
}
