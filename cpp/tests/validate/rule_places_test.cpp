// SPDX-License-Identifier: Apache-2.0
//
// Every rule not checked by the layer has a reason; places.hpp asserts that none is missing.
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
