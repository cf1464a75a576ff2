// SPDX-License-Identifier: Apache-2.0
//
// Which rules the validation layer does not place yet. places.hpp asserts that the files of the
// three stream interfaces are complete.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "places.hpp"

namespace fletching::validate {
namespace {

TEST(RulePlacesTest, CountsRulesWithoutCheckerOrKindByFile) {
  std::map<std::string, int> left;
  std::size_t at = 0;
  for (const RuleFacts& entry : kRules) {
    const Rule rule = static_cast<Rule>(at++);
    if (!is_checked(rule) && !has_kind(rule)) ++left[entry.family];
  }
  // A new checker makes a number smaller; a new rule of the spec needs a checker or a kind.
  const std::map<std::string, int> expected{
      {"c-data", 28}, {"c-device-data", 15}, {"cuda-array-interface", 13}, {"pycapsule", 2}};
  EXPECT_EQ(left, expected);
}

TEST(RulePlacesTest, GivesReasonForEachKind) {
  for (const Unchecked& unchecked : kUnchecked) {
    EXPECT_STRNE(unchecked.reason, "") << facts(unchecked.rule).id;
  }
}

}  // namespace
}  // namespace fletching::validate
