// SPDX-License-Identifier: Apache-2.0
//
// Every rule that the layer does not check has a reason. places.hpp asserts that no rule is left.
#include <gtest/gtest.h>

#include "places.hpp"

namespace fletching::validate {
namespace {

TEST(RulePlacesTest, GivesReasonForEachKind) {
  for (const Unchecked& unchecked : kUnchecked) {
    EXPECT_STRNE(unchecked.reason, "") << facts(unchecked.rule).id;
  }
}

}  // namespace
}  // namespace fletching::validate
