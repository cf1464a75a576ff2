// SPDX-License-Identifier: Apache-2.0
//
// The error message of a call, "" on success.
#pragma once

#include <string>
#include <utility>

#include "fletching/c_api.h"
#include "fletching/result.hpp"

namespace fletching::faults {

inline std::string text_of(int code, const FletchingMessage& message) {
  if (code == 0) return "";
  const std::string text = message.text;
  return text.empty() ? "error " + std::to_string(code) + " without words" : text;
}

template <class T>
std::string text_of(const Result<T>& result) {
  return result.ok() ? "" : result.error().message();
}

// Moves the result's value into `into`.
template <class T>
std::string keep(Result<T> made, T& into) {
  if (!made.ok()) return made.error().message();
  into = *std::move(made);
  return "";
}

// Calls a function whose last argument is a message.
template <class Function, class... Arguments>
std::string call(Function function, Arguments... arguments) {
  FletchingMessage message{};
  const int code = function(arguments..., &message);
  return text_of(code, message);
}

}  // namespace fletching::faults
