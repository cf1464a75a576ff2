// SPDX-License-Identifier: Apache-2.0
//
// The catalogue of the hostile peer, for loops over its cases (tests/hostile/README.md).
#ifndef FLETCHING_TESTS_HOSTILE_HPP
#define FLETCHING_TESTS_HOSTILE_HPP

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fletching/result.hpp"
#include "hostile.h"

namespace fletching::testing {

struct HostileCase {
  std::string name;
  std::int32_t outcome;
  std::int32_t code;

  [[nodiscard]] const char* c_str() const noexcept { return name.c_str(); }
  [[nodiscard]] bool is(const char* other) const noexcept { return name == other; }
};

inline std::vector<HostileCase> hostile_cases(std::int32_t party) {
  std::vector<HostileCase> cases;
  for (std::int32_t i = 0; i < FletchingHostileCaseCount(); ++i) {
    if (FletchingHostileCaseParty(i) != party) continue;
    cases.push_back(
        {FletchingHostileCaseName(i), FletchingHostileCaseOutcome(i), FletchingHostileCaseCode(i)});
  }
  EXPECT_FALSE(cases.empty()) << "party " << party;
  return cases;
}

/// Ends the case: nothing has leaked, and we have done nothing wrong.
inline void finish(const HostileCase& played) {
  FletchingMessage message;
  EXPECT_EQ(FletchingHostileFinish(&message), 0) << played.name << ": " << message.text;
}

/// Compares what came of a case with the catalogue: an error, or none.
inline void check_outcome(const HostileCase& played, const std::optional<Error>& error) {
  const std::string text =
      played.name + ": " +
      (error ? std::to_string(error->code()) + ", " + error->message() : "no error");
  switch (played.outcome) {
    case kFletchingHostileAccepted:
      EXPECT_FALSE(error) << text;
      break;
    case kFletchingHostileRefused:
      ASSERT_TRUE(error) << text;
      EXPECT_GT(error->code(), 0) << text;
      break;
    case kFletchingHostileReported:
      ASSERT_TRUE(error) << text;
      EXPECT_EQ(error->code(), played.code) << text;
      break;
    default:
      break;
  }
  if (error) {
    // Whatever the peer said, it can be printed and has an end.
    EXPECT_LE(error->message().size(), 64U * 1024U) << played.name;
  }
}

}  // namespace fletching::testing

#endif  // FLETCHING_TESTS_HOSTILE_HPP
