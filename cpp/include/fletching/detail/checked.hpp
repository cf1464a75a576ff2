// SPDX-License-Identifier: Apache-2.0
//
// Checked arithmetic for foreign counts and sizes, which may have any value.
#ifndef FLETCHING_DETAIL_CHECKED_HPP
#define FLETCHING_DETAIL_CHECKED_HPP

#include <cstdint>
#include <optional>

#include "fletching/version.h"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

/// A non-negative count or size that fits into 63 bits. Empty if it does not.
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

/// Returns a + b, limited to INT64_MAX.
constexpr std::int64_t saturating_add(std::int64_t a, std::int64_t b) noexcept {
  return add(a, b).value_or(INT64_MAX);
}

/// Returns the stride of the next outer dimension. It overflows only if another dimension is empty;
/// the result is then meaningless.
constexpr std::int64_t next_step(std::int64_t step, std::int64_t extent) noexcept {
  return multiply(step, extent > 1 ? extent : 1).value_or(INT64_MAX);
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_DETAIL_CHECKED_HPP
