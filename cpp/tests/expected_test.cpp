// SPDX-License-Identifier: Apache-2.0
//
// Result and C++23's std::expected: the same members, value categories and traits, tested by one
// set of concepts. Compiled as C++23 if the compiler supports it.
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <concepts>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <version>

#include "fletching/owner.hpp"
#include "fletching/result.hpp"

#if defined(__cpp_lib_expected)
#include <expected>
#endif

namespace fletching {
namespace {

template <class R>
concept HasStateAndError = requires(R& result, const R& constant) {
  requires std::same_as<typename R::error_type, Error>;
  { constant.has_value() } noexcept -> std::same_as<bool>;
  requires std::is_constructible_v<bool, const R&> && !std::is_convertible_v<const R&, bool>;
  { result.error() } noexcept -> std::same_as<Error&>;
  { constant.error() } noexcept -> std::same_as<const Error&>;
  { std::move(result).error() } noexcept -> std::same_as<Error&&>;
  { result.swap(result) } noexcept -> std::same_as<void>;
};

template <class R>
concept HasValue =
    HasStateAndError<R> && requires(R& result, const R& constant, typename R::value_type value) {
      { *result } noexcept -> std::same_as<decltype(value)&>;
      { *constant } noexcept -> std::same_as<const decltype(value)&>;
      { *std::move(result) } noexcept -> std::same_as<decltype(value)&&>;
      { result.value() } -> std::same_as<decltype(value)&>;
      { constant.value() } -> std::same_as<const decltype(value)&>;
      { std::move(result).value() } -> std::same_as<decltype(value)&&>;
      { result.operator->() } noexcept -> std::same_as<decltype(value)*>;
      { constant.operator->() } noexcept -> std::same_as<const decltype(value)*>;
      { std::move(result).value_or(std::move(value)) };
      { result.emplace(std::move(value)) } -> std::same_as<decltype(value)&>;
      R(std::in_place, std::move(value));
    };

template <class R>
concept HasNoValue = HasStateAndError<R> && requires(R& result, const R& constant) {
  requires std::same_as<typename R::value_type, void>;
  { *constant } noexcept -> std::same_as<void>;
  { constant.value() } -> std::same_as<void>;
  { result.emplace() } noexcept -> std::same_as<void>;
  R(std::in_place);
};

/// The callables receive the value and the error in the value category of the result.
template <class R>
concept HasOperations = requires(R& result, const R& constant) {
  result.and_then([](int&) -> R { throw 0; });
  constant.and_then([](const int&) -> R { throw 0; });
  std::move(result).and_then([](int&&) -> R { throw 0; });
  result.transform([](int&) {});
  constant.transform([](const int&) { return std::string(); });
  std::move(result).transform([](int&&) { return 1.5; });
  result.or_else([](Error&) -> R { throw 0; });
  constant.or_else([](const Error&) -> R { throw 0; });
  std::move(result).or_else([](Error&&) -> R { throw 0; });
  result.transform_error([](Error& error) { return error; });
  constant.transform_error([](const Error& error) { return error; });
  std::move(result).transform_error([](Error&& error) { return std::move(error); });
};

static_assert(HasValue<Result<int>> && HasValue<Result<std::unique_ptr<int>>> &&
              HasValue<Result<DeviceArray>> && HasNoValue<Status> && HasOperations<Result<int>>);

#if defined(__cpp_lib_expected)

template <class T>
using Expected = std::expected<T, Error>;

static_assert(HasValue<Expected<int>> && HasValue<Expected<std::unique_ptr<int>>> &&
              HasValue<Expected<DeviceArray>> && HasNoValue<Expected<void>>);
#if __cpp_lib_expected >= 202211L
static_assert(HasOperations<Expected<int>>);
#endif

template <template <class> class R, class T>
constexpr auto traits() {
  return std::array{std::is_default_constructible_v<R<T>>,
                    std::is_copy_constructible_v<R<T>>,
                    std::is_nothrow_move_constructible_v<R<T>>,
                    std::is_copy_assignable_v<R<T>>,
                    std::is_nothrow_move_assignable_v<R<T>>,
                    std::is_nothrow_swappable_v<R<T>>,
                    std::equality_comparable<R<T>>,
                    std::is_convertible_v<int, R<T>>,
                    std::is_convertible_v<const char*, R<T>>,
                    std::is_convertible_v<std::string_view, R<T>>,
                    std::is_constructible_v<R<T>, std::string_view>,
                    std::is_convertible_v<R<float>, R<T>>,
                    std::is_convertible_v<R<const char*>, R<T>>,
                    std::is_convertible_v<R<std::string_view>, R<T>>,
                    std::is_constructible_v<R<T>, R<std::string_view>>,
                    std::is_constructible_v<R<T>, std::in_place_t>};
}
template <class T>
constexpr bool kSameTraits = traits<Result, T>() == traits<Expected, T>();
static_assert(kSameTraits<int> && kSameTraits<double> && kSameTraits<std::string> &&
              kSameTraits<std::unique_ptr<int>> && kSameTraits<void> &&
              kSameTraits<std::pair<int, std::string>>);

#endif

/// Code that uses only members of std::expected.
template <class R>
R half(const R& result) {
  if (!result.has_value() || *result % 2 != 0) return result;
  return R(std::in_place, *result / 2);
}

TEST(Expected, GenericCodeAcceptsResult) {
  EXPECT_EQ(half(Result<int>(6)), 3);
  EXPECT_EQ(half(Result<int>(Error(EIO, "lost"))).error().code(), EIO);
#if defined(__cpp_lib_expected)
  EXPECT_EQ(half(Expected<int>(6)), 3);
  EXPECT_EQ(half(Expected<int>(std::unexpected(Error(EIO, "lost")))).error().code(), EIO);
#endif
}

}  // namespace
}  // namespace fletching
