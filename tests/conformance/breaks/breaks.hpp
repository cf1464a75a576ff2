// SPDX-License-Identifier: Apache-2.0
//
// Subjects with a fault, and the suite's reports about them.
//
// A test in this folder is named after a group of the suite and a rule of spec/rules/. It violates
// the rule in the C++ subject, and the group must find it. Other languages then need no test of
// that rule (tests/rules/rule_tables.py).
#ifndef FLETCHING_TESTS_CONFORMANCE_BREAKS_HPP
#define FLETCHING_TESTS_CONFORMANCE_BREAKS_HPP

#include <gtest/gtest.h>

#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <regex>
#include <string>
#include <string_view>

#include "fletching/conformance.h"

extern "C" const FletchingSubject* FletchingConformanceSubject(std::int32_t index);

namespace fletching::conformance {

inline const FletchingSubject& good() { return *FletchingConformanceSubject(0); }

/// The messages of the wrong results by case, each with its rule in brackets.
using Wrong = std::map<std::string, std::string>;

inline Wrong run(const FletchingSubject& subject, const char* group, const char* name = nullptr) {
  Wrong wrong;
  const FletchingConformanceOptions options{
      sizeof options,
      group,
      name,
      [](void* context, const FletchingConformanceResult* result) {
        if (std::string_view(result->verdict) != "wrong") return;
        (*static_cast<Wrong*>(context))[result->name] =
            std::string(result->message) + " [" + result->rule + "]";
      },
      &wrong,
      nullptr,
      nullptr,
      nullptr};
  EXPECT_EQ(FletchingConformanceRun(&subject, &options, nullptr, nullptr), 0);
  return wrong;
}

/// "device-streams" for a test of "DeviceStreams".
inline std::string group_of_test() {
  std::string group;
  const char* const name = testing::UnitTest::GetInstance()->current_test_info()->test_suite_name();
  for (const char* at = name; *at != '\0'; ++at) {
    const bool is_upper = std::isupper(static_cast<unsigned char>(*at)) != 0;
    if (is_upper && at != name) group += '-';
    group += static_cast<char>(std::tolower(static_cast<unsigned char>(*at)));
  }
  return group;
}

/// The lowercase letters and digits of a name, equal for a rule and its test: "streamerrnocodes".
inline std::string letters(std::string_view name) {
  std::string letters;
  for (const char each : name) {
    const auto byte = static_cast<unsigned char>(each);
    if (std::isalnum(byte) != 0) letters += static_cast<char>(std::tolower(byte));
  }
  return letters;
}

inline std::string_view name_of_test() {
  return testing::UnitTest::GetInstance()->current_test_info()->name();
}

/// Expects the case to find the fault, and no fault in the correct subject. `what` is a regular
/// expression for the message; if it is empty, the message must name the test's rule.
inline void finds(const FletchingSubject& faulty, const char* case_name,
                  const std::string& what = "") {
  const std::string group = group_of_test();
  EXPECT_EQ(run(good(), group.c_str(), case_name), Wrong());
  setenv("FLETCHING_HOSTILE_SECONDS", "1", 1);  // a missing call times out sooner
  const Wrong wrong = run(faulty, group.c_str(), case_name);
  unsetenv("FLETCHING_HOSTILE_SECONDS");
  const auto found = wrong.find(case_name);
  ASSERT_NE(found, wrong.end()) << "not found";
  const std::string& message = found->second;
  if (what.empty()) {
    EXPECT_EQ(letters(message.substr(message.rfind('['))), letters(name_of_test())) << message;
  } else {
    EXPECT_TRUE(std::regex_search(message, std::regex(what))) << message;
  }
}

}  // namespace fletching::conformance

#endif  // FLETCHING_TESTS_CONFORMANCE_BREAKS_HPP
