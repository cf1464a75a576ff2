// SPDX-License-Identifier: Apache-2.0
//
// Results: what `if (result)` means, and where it does not compile.
#include "fletching/result.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "fletching/owner.hpp"
#include "fletching/stream.hpp"
#include "fletching/sync_event.hpp"
#include "fletching/vulkan_event.hpp"

namespace fletching {
namespace {

template <class T>
constexpr bool kConverts = std::is_constructible_v<bool, T>;

// `if (event.ready())` would mean "no error", also for an event that is pending.
static_assert(!kConverts<Result<bool>>);
static_assert(!kConverts<const Result<bool>&>);
static_assert(!kConverts<decltype(std::declval<const SyncEvent&>().ready())>);
static_assert(!kConverts<decltype(std::declval<const SyncEvent&>().ready(vulkan::WaitContext{}))>);
// `while (auto batch = next())` would mean "no error", also at the end.
static_assert(!kConverts<Result<std::optional<DeviceArray>>>);
static_assert(!kConverts<Result<ArrayFindings>>);
static_assert(std::is_same_v<decltype(std::declval<DeviceArrayStreamReader&>().next()),
                             std::optional<Result<DeviceArray>>>);
static_assert(std::is_same_v<decltype(std::declval<ArrayStreamReader&>().next()),
                             std::optional<Result<Array>>>);

static_assert(kConverts<Status> && kConverts<Result<std::string>> &&
              kConverts<Result<DeviceArray>>);
static_assert(!std::is_convertible_v<Status, bool> && !std::is_convertible_v<Result<bool>, bool>);

TEST(Result, OfABoolIsAskedInTwoSteps) {
  const Result<bool> no = false;
  EXPECT_TRUE(no.ok());
  EXPECT_FALSE(*no);
  EXPECT_FALSE(no.value());
  const Result<bool> failed = Error(EIO, "no answer");
  EXPECT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code(), EIO);
}

}  // namespace
}  // namespace fletching
