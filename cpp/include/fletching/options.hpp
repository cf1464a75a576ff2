// SPDX-License-Identifier: Apache-2.0
//
// What the library does about foreign data that breaks a rule and can still be used: it warns, or
// refuses.
#ifndef FLETCHING_OPTIONS_HPP
#define FLETCHING_OPTIONS_HPP

#include <cerrno>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {

/// A rule that a foreign producer or consumer did not keep.
struct Warning {
  std::string_view rule;     ///< its id in docs/reference/rules, "device-array.reserved-zero"
  std::string_view message;  ///< UTF-8, one sentence; valid during the call
};

/// How strict to be. Passed by value to everything that reads foreign structs.
struct Options {
  /// What would be a warning is an error, EINVAL.
  bool strict = false;

  /// Called for each warning, on the thread that reads, before the data is handed on. What it
  /// throws becomes the error of the call that it warns about. Without it warnings are dropped.
  std::function<void(const Warning&)> on_warning = nullptr;
};

namespace detail {

/// The error of a rule that was not kept.
inline Error broken_rule(std::string_view rule, std::string_view text) {
  std::string message(text);
  message.append(" (rule ").append(rule).append(")");
  return {EINVAL, std::move(message)};
}

/// Warns, or in strict mode refuses. `text` makes the message, only when it is used.
template <class Text>
Status warn(const Options& options, std::string_view rule, const Text& text) noexcept {
  return guarded([&]() -> Status {
    if (options.strict) return broken_rule(rule, text());
    if (options.on_warning) options.on_warning(Warning{rule, text()});
    return {};
  });
}

}  // namespace detail
}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_OPTIONS_HPP
