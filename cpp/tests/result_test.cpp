// SPDX-License-Identifier: Apache-2.0
//
// Results: the members of std::expected, and conditions that must not compile.
#include "fletching/result.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "fletching/owner.hpp"
#include "fletching/stream.hpp"
#include "fletching/sync_event.hpp"
#include "fletching/vulkan_event.hpp"

namespace fletching {
namespace {

template <class T>
constexpr bool kConverts = std::is_constructible_v<bool, T>;

// `if (event.ready())` would mean "no error", even for a pending event.
static_assert(!kConverts<Result<bool>>);
static_assert(!kConverts<decltype(std::declval<const SyncEvent&>().ready())>);
static_assert(!kConverts<decltype(std::declval<const SyncEvent&>().ready(vulkan::WaitContext{}))>);
// `if (next())` would mean "no error", even at the end.
static_assert(!kConverts<Result<std::optional<DeviceArray>>>);
static_assert(!kConverts<Result<ArrayFindings>>);
// Generic code stores the result in a variable before it tests it.
static_assert(kConverts<const Result<bool>&> && kConverts<Result<std::optional<int>>&> &&
              kConverts<Result<ArrayFindings>&>);
static_assert(std::is_same_v<decltype(std::declval<DeviceArrayStreamReader&>().next()),
                             std::optional<Result<DeviceArray>>>);
static_assert(std::is_same_v<decltype(std::declval<ArrayStreamReader&>().next()),
                             std::optional<Result<Array>>>);

static_assert(kConverts<Status> && kConverts<Result<std::string>> &&
              kConverts<Result<DeviceArray>>);
static_assert(!std::is_convertible_v<Status, bool> && !std::is_convertible_v<Result<bool>, bool>);
static_assert(std::is_same_v<Result<int>::value_type, int> &&
              std::is_same_v<Status::error_type, Error>);

Error failure() { return {EIO, "no answer"}; }

/// The early return of generic code, for any result type.
template <class R>
R relay(R result) {
  if (!result) return std::move(result).error();
  if constexpr (std::is_void_v<typename R::value_type>) {
    return {};
  } else {
    return R(std::in_place, *std::move(result));
  }
}

TEST(Result, RelayKeepsValueOrErrorOfEveryType) {
  EXPECT_EQ(*relay(Result<bool>(false)), false);
  EXPECT_EQ(**relay(Result<std::optional<int>>(std::optional<int>(3))), 3);
  EXPECT_EQ(**relay(Result<std::unique_ptr<int>>(std::make_unique<int>(4))), 4);
  EXPECT_TRUE(relay(Status()));
  EXPECT_EQ(relay(Result<bool>(failure())).error().message(), "no answer");
  EXPECT_EQ(relay(Status(failure())).error().code(), EIO);
}

TEST(Result, HasValueAndOkAgree) {
  const Result<bool> no = false;
  EXPECT_TRUE(no.has_value() && no.ok());
  EXPECT_FALSE(no.value());
  const Result<bool> failed = failure();
  EXPECT_FALSE(failed.has_value() || failed.ok());
  EXPECT_TRUE(Status().has_value());
  EXPECT_FALSE(Status(failure()).has_value());
}

TEST(Result, ValueOrReturnsDefaultForError) {
  const Result<std::string> text = std::string("here");
  EXPECT_EQ(text.value_or("other"), "here");
  EXPECT_EQ(Result<std::string>(failure()).value_or("other"), "other");
  auto moved = Result<std::unique_ptr<int>>(std::make_unique<int>(5)).value_or(nullptr);
  EXPECT_EQ(*moved, 5);
}

TEST(Result, AndThenRunsOnlyForValue) {
  const auto half = [](int value) -> Result<int> {
    if (value % 2 != 0) return Error(EINVAL, "odd");
    return value / 2;
  };
  EXPECT_EQ(Result<int>(8).and_then(half).and_then(half).value(), 2);
  EXPECT_EQ(Result<int>(6).and_then(half).and_then(half).error().message(), "odd");
  const Result<int> failed = failure();
  EXPECT_EQ(failed.and_then(half).error().code(), EIO);
  EXPECT_EQ(Status().and_then([] { return Result<int>(7); }).value(), 7);
  EXPECT_EQ(Result<int>(7).and_then([](int) { return Status(failure()); }).error().code(), EIO);
}

TEST(Result, TransformWrapsReturnValue) {
  const Result<int> three = 3;
  EXPECT_EQ(three.transform([](int value) { return std::to_string(value); }).value(), "3");
  EXPECT_TRUE(three.transform([](int) {}).has_value());
  EXPECT_EQ(Status().transform([] { return 4; }).value(), 4);
  EXPECT_EQ(Status(failure()).transform([] { return 4; }).error().code(), EIO);
  auto moved = Result<std::unique_ptr<int>>(std::make_unique<int>(5))
                   .transform([](std::unique_ptr<int> pointer) { return pointer; });
  EXPECT_EQ(**moved, 5);
}

struct Point {
  int x;
  [[nodiscard]] int twice() const { return 2 * x; }
};

TEST(Result, CallableMayBeMemberPointer) {
  Point point{4};
  EXPECT_EQ(Result<Point>(point).transform(&Point::x).value(), 4);
  EXPECT_EQ(Result<Point>(point).transform(&Point::twice).value(), 8);
  EXPECT_EQ(Result<Point*>(&point).transform(&Point::x).value(), 4);
  EXPECT_EQ(Result<Point*>(&point).transform(&Point::twice).value(), 8);
  using Owned = Result<std::unique_ptr<Point>>;
  EXPECT_EQ(Owned(std::make_unique<Point>(point)).transform(&Point::twice).value(), 8);
}

TEST(Result, OrElseRunsOnlyForError) {
  const auto instead = [](const Error& error) -> Result<int> { return error.code(); };
  EXPECT_EQ(Result<int>(failure()).or_else(instead).value(), EIO);
  EXPECT_EQ(Result<int>(1).or_else(instead).value(), 1);
  const Status failed = failure();
  EXPECT_TRUE(failed.or_else([](const Error&) { return Status(); }));
}

TEST(Result, TransformErrorReplacesError) {
  const auto add_place = [](const Error& error) {
    return Error(error.code(), "column 2: " + error.message());
  };
  EXPECT_EQ(Result<int>(failure()).transform_error(add_place).error().message(),
            "column 2: no answer");
  EXPECT_EQ(Result<int>(1).transform_error(add_place).value(), 1);
  EXPECT_EQ(Status(failure()).transform_error(add_place).error().code(), EIO);
}

TEST(Result, CallablesReceiveNonConstLvalue) {
  Result<int> three = 3;
  EXPECT_EQ(three.and_then([](int& value) -> Result<int> { return ++value; }).value(), 4);
  EXPECT_EQ(three.transform([](int& value) { return ++value; }).value(), 5);
  EXPECT_EQ(*three, 5);
  Status failed = failure();
  EXPECT_EQ(failed.or_else([](Error& error) -> Status { return std::move(error); }).error(),
            failure());
}

TEST(Result, ComparesValuesAndErrors) {
  EXPECT_TRUE(Result<int>(3) == Result<int>(3));
  EXPECT_TRUE(Result<int>(3) == Result<std::int64_t>(3));
  EXPECT_TRUE(Result<int>(3) != Result<int>(4));
  EXPECT_TRUE(Result<int>(3) != Result<int>(failure()));
  EXPECT_TRUE(Result<int>(failure()) == Result<std::int64_t>(failure()));
  EXPECT_TRUE(Result<int>(failure()) != Result<int>(Error(EIO, "other")));
  EXPECT_TRUE(Result<int>(3) == 3 && 3 == Result<int>(3) && Result<int>(3) != 4);
  EXPECT_TRUE(Result<int>(failure()) == failure() && Result<int>(failure()) != 3);
  EXPECT_TRUE(Result<std::string>("a") == "a");
  EXPECT_TRUE(Status() == Status() && Status() != Status(failure()) && Status() != failure());
  EXPECT_TRUE(Status(failure()) == failure());
}

// Iterators of results are comparable even if the value has no operator==.
TEST(Result, ComparesIteratorResults) {
  std::vector<Result<DeviceArray>> batches;
  EXPECT_TRUE(batches.empty());
  batches.emplace_back(failure());
  EXPECT_NE(batches.begin(), batches.end());
}

TEST(Result, ConstructsFromValueArguments) {
  const auto text = []() -> Result<std::string> { return "text"; };
  EXPECT_EQ(text(), "text");
  static_assert(!std::is_convertible_v<std::string_view, Result<std::string>>);
  static_assert(std::is_constructible_v<Result<std::string>, std::string_view>);
  const Result<std::string_view> view = std::string_view("view");
  EXPECT_EQ(Result<std::string>(view), "view");
  const auto wide = [&]() -> Result<double> { return Result<float>(failure()); };
  EXPECT_EQ(wide(), failure());
  EXPECT_EQ(Result<int>(), 0);
  static_assert(!std::is_default_constructible_v<Result<std::reference_wrapper<int>>>);
}

TEST(Result, EmplaceAndSwapReplaceValue) {
  Result<std::string> text = failure();
  EXPECT_EQ(text.error_or(Error(EINVAL, "none")).code(), EIO);
  text.emplace() = "here";
  EXPECT_EQ(text, "here");
  EXPECT_EQ(text.error_or(Error(EINVAL, "none")).code(), EINVAL);
  Result<std::string> other = failure();
  text.swap(other);
  EXPECT_EQ(text, failure());
  EXPECT_EQ(other, "here");
  Status status = failure();
  status.emplace();
  EXPECT_TRUE(status);
}

#if defined(__cpp_exceptions)

TEST(Result, ValueOfErrorThrowsCodeAndText) {
  const Result<int> failed = Error(ENODEV, "no device");
  try {
    static_cast<void>(failed.value());
    FAIL() << "nothing was thrown";
  } catch (const std::system_error& error) {
    EXPECT_EQ(error.code(), std::errc::no_such_device);
    EXPECT_NE(std::string_view(error.what()).find("no device"), std::string_view::npos);
  }
}

template <class Thrown>
Error error_of(const Thrown& thrown) {
  // NOLINTNEXTLINE(bugprone-exception-copy-constructor-throws): Error contains a string
  return detail::guarded([&]() -> Status { throw thrown; }).error();
}

TEST(Result, ExceptionsBecomeErrnoValues) {
  EXPECT_EQ(error_of(std::bad_alloc()).code(), ENOMEM);
  EXPECT_EQ(error_of(std::invalid_argument("count")).code(), EINVAL);
  EXPECT_EQ(error_of(std::invalid_argument("count")).message(), "count");
  EXPECT_EQ(error_of(std::errc::function_not_supported).code(), ENOSYS);
  EXPECT_EQ(error_of(std::system_error(ENOSPC, std::generic_category())).code(), ENOSPC);
  EXPECT_EQ(error_of(std::system_error(ENOENT, std::system_category())).code(), ENOENT);
  EXPECT_EQ(error_of(std::future_error(std::future_errc::no_state)).code(), EIO);
  EXPECT_EQ(error_of(std::runtime_error("lost")).code(), EIO);
  EXPECT_EQ(error_of(std::runtime_error("lost")).message(), "lost");
  EXPECT_EQ(error_of(Error(EBUSY, "later")).code(), EBUSY);
  EXPECT_EQ(error_of(Error(EBUSY, "later")).message(), "later");
  EXPECT_EQ(error_of(7).code(), EIO);
}

#endif

}  // namespace
}  // namespace fletching
