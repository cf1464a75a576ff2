// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic on foreign counts and sizes, which may be anything.
#ifndef FLETCHING_DETAIL_CHECKED_HPP
#define FLETCHING_DETAIL_CHECKED_HPP

#include <cstdint>
#include <optional>

#include "fletching/version.h"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

/// A count or a size that is not negative and fits into 63 bits; none when it does not.
using Size = std::optional<std::int64_t>;

constexpr Size size_of(std::int64_t value) noexcept { return value < 0 ? Size{} : Size{value}; }

constexpr Size add(Size a, Size b) noexcept {
  if (!a || !b || *a > INT64_MAX - *b) return {};
  return *a + *b;
}

constexpr Size multiply(Size a, Size b) noexcept {
  if (!a || !b) return {};
  if (*b != 0 && *a > INT64_MAX / *b) return {};
  return *a * *b;
}

/// a + b of counts, or INT64_MAX when that is less.
constexpr std::int64_t saturating_add(std::int64_t a, std::int64_t b) noexcept {
  return add(a, b).value_or(INT64_MAX);
}

/// The distance one dimension further out. It only overflows when another dimension is empty, and
/// then it means nothing.
constexpr std::int64_t next_step(std::int64_t step, std::int64_t extent) noexcept {
  return multiply(step, extent > 1 ? extent : 1).value_or(INT64_MAX);
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_DETAIL_CHECKED_HPP
