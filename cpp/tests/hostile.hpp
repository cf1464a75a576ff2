// SPDX-License-Identifier: Apache-2.0
//
// The catalogue of the hostile peer, with helpers to iterate over its cases
// (tests/hostile/README.md).
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

/// Number of batches that the peer's async producer sends if its case is accepted.
inline int batches_of_producer(const HostileCase& played) {
  if (played.is("producer.empty")) return 0;
  return played.is("producer.release-with-tasks") ? 2 : 3;
}

/// Ends the case and checks for leaks and for faults of the library.
inline void finish(const HostileCase& played) {
  FletchingMessage message;
  EXPECT_EQ(FletchingHostileFinish(&message), 0) << played.name << ": " << message.text;
}

/// Compares the result of a case, an error or none, with the catalogue.
inline void check_outcome(const HostileCase& played, const std::optional<Error>& error) {
  const int code = error ? error->code() : 0;
  const std::string message = error ? error->message() : std::string();
  const std::string text = played.name + ": " + std::to_string(code) + ", " + message;
  switch (played.outcome) {
    case kFletchingHostileAccepted:
      EXPECT_EQ(code, 0) << text;
      break;
    case kFletchingHostileRefused:
      EXPECT_GT(code, 0) << text;
      EXPECT_NE(message, "") << text;
      break;
    case kFletchingHostileReported:
      EXPECT_EQ(code, played.code) << text;
      break;
    default:
      break;
  }
  // The message is printable and bounded, whatever the peer's text is.
  EXPECT_LE(message.size(), 64U * 1024U) << played.name;
}

}  // namespace fletching::testing

#endif  // FLETCHING_TESTS_HOSTILE_HPP
