// SPDX-License-Identifier: Apache-2.0
//
// Plain C functions under test (fletching/roles.h).
#ifndef FLETCHING_TESTS_CONFORMANCE_ROLES_HPP
#define FLETCHING_TESTS_CONFORMANCE_ROLES_HPP

#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>

#include "run.hpp"

namespace fletching::conformance {

// Findings without a published rule: generator/README.md explains them.
inline constexpr const char* kCallFails = "check.call-fails";
inline constexpr const char* kLeak = "check.leak";
inline constexpr const char* kUnexpected = "check.unexpected";
inline constexpr const char* kAccount = "check.account";
inline constexpr const char* kRefusesValid = "check.refuses-valid";
inline constexpr const char* kAcceptsInvalid = "check.accepts-invalid";
inline constexpr const char* kHidesError = "check.hides-error";

/// A function, its role, and the level at which the validation layer checks its structs.
struct Target {
  const char* role;
  void (*function)();
  std::int32_t level;
};

template <class Function>
Function function_of(const Target& target) {
  return reinterpret_cast<Function>(target.function);
}

struct Role {
  const char* name;
  void (*play)(Run& run, const Target& target);
};

void play_array_producer(Run& run, const Target& target);
void play_device_array_producer(Run& run, const Target& target);
void play_stream_producer(Run& run, const Target& target);
void play_device_stream_producer(Run& run, const Target& target);
void play_async_producer(Run& run, const Target& target);
void play_tensor_producer(Run& run, const Target& target);
void play_array_consumer(Run& run, const Target& target);
void play_device_array_consumer(Run& run, const Target& target);
void play_stream_consumer(Run& run, const Target& target);
void play_device_stream_consumer(Run& run, const Target& target);
void play_async_consumer(Run& run, const Target& target);
void play_tensor_consumer(Run& run, const Target& target);
void play_legacy_tensor_consumer(Run& run, const Target& target);

/// Plays one case if it is selected.
template <class Play>
void play_case(Run& run, const std::string& name, const Play& play) {
  if (!run.begin(name.c_str())) return;
  Case played(run, name);
  play(played);
}

inline void report(Case& played, const char* rule, const char* severity, const char* party,
                   const std::string& message) {
  played.found({rule, severity, party, "", message.c_str(), ""});
}

/// No published text says who owns the contents of an out-struct after a failed call.
inline const char* account_severity(const char* severity, std::string_view text) noexcept {
  return text.find("left behind") == std::string_view::npos ? severity : "warning";
}

/// Reports the mistakes that the hostile peer has counted, unless the case has a finding that says
/// more.
inline void report_mistakes(Case& played, const char* rule, const char* severity,
                            const char* party) {
  FletchingMessage message{};
  if (FletchingHostileFinish(&message) != 0 && !played.is_wrong())
    report(played, rule, account_severity(severity, message.text), party, message.text);
}

inline bool is_unsupported(int code) noexcept { return code == ENOTSUP || code == ENOSYS; }

}  // namespace fletching::conformance

#endif  // FLETCHING_TESTS_CONFORMANCE_ROLES_HPP
