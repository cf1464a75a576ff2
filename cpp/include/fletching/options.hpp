// SPDX-License-Identifier: Apache-2.0
//
// Options for foreign data that violates a rule but is still usable: warn or reject.
#ifndef FLETCHING_OPTIONS_HPP
#define FLETCHING_OPTIONS_HPP

#include <cerrno>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {

/// A rule violation by a foreign producer or consumer.
struct Warning {
  std::string_view rule;     ///< the id in docs/reference/rules, "device-array.reserved-zero"
  std::string_view message;  ///< UTF-8, one sentence; valid during the call
};

/// The strictness. Passed by value to every reader of foreign structs.
struct Options {
  /// Turns warnings into errors (EINVAL).
  bool strict = false;

  /// Called for each warning, on the reading thread, before the data is returned. An exception
  /// becomes the error of that call. If not set, warnings are dropped.
  std::function<void(const Warning&)> on_warning = nullptr;
};

namespace detail {

/// The error for a rule violation.
inline Error broken_rule(std::string_view rule, std::string_view text) {
  std::string message(text);
  message.append(" (rule ").append(rule).append(")");
  return {EINVAL, std::move(message)};
}

/// Warns, or returns an error in strict mode. `text` is called only if its result is used.
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
