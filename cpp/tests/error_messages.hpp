// SPDX-License-Identifier: Apache-2.0
//
// Error messages for expectations.
#ifndef FLETCHING_TESTS_ERROR_MESSAGES_HPP
#define FLETCHING_TESTS_ERROR_MESSAGES_HPP

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "fletching/result.hpp"

namespace fletching::testing {

/// Returns the error message, or "no error".
template <class T>
std::string message(const Result<T>& result) {
  return result.ok() ? std::string("no error") : result.error().message();
}

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

inline void expect_mentions(const Error& error, std::string_view text) {
  EXPECT_TRUE(contains(error.message(), text)) << error.message();
}

}  // namespace fletching::testing

#endif  // FLETCHING_TESTS_ERROR_MESSAGES_HPP
