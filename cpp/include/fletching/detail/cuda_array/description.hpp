// SPDX-License-Identifier: Apache-2.0
//
// Struct for a CUDA Array Interface dictionary, and its type strings. Touches no device memory and
// needs no GPU. Only functions that return a string or a vector throw, and only std::bad_alloc.

#ifndef FLETCHING_DETAIL_CUDA_ARRAY_DESCRIPTION_HPP
#define FLETCHING_DETAIL_CUDA_ARRAY_DESCRIPTION_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fletching/detail/cuda_array/tables.hpp"
#include "fletching/version.h"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::cuda_array_interface {

// --- Type strings ------------------------------------------------------------------------------

/// Returns the kind with this character; empty if the character is unknown.
constexpr std::optional<Kind> find_kind(char character) noexcept {
  for (const Kind& kind : kKinds) {
    if (kind.character == character) return kind;
  }
  return {};
}

/// Parts of a type string.
struct Typestr {
  char order;                           ///< kLittleEndian, kBigEndian or kIrrelevant
  char kind;                            ///< the character of one of kKinds
  std::optional<std::uint64_t> number;  ///< the size of an item, in the unit that the kind counts
  std::uint64_t multiple = 1;           ///< 25 in "<M8[25s]"
  std::string_view unit;                ///< the text of one of kUnits, or empty

  /// The size of an item in bytes.
  [[nodiscard]] constexpr std::uint64_t item_bytes() const noexcept {
    const std::optional<Kind> info = find_kind(kind);
    if (!info) return 0;
    const std::uint64_t size = number.value_or(info->no_number);
    switch (info->counts) {
      case Counts::kBits:
        return (size + 7) / 8;
      case Counts::kCharacters:
        return size * 4;
      case Counts::kBytes:
        break;
    }
    return size;
  }
};

namespace detail {

template <typename Range, typename Value>
constexpr bool contains(const Range& range, const Value& value) noexcept {
  return std::ranges::find(range, value) != range.end();
}

constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

/// Removes a number from the front: at most `digits` digits and no leading zeros.
constexpr std::optional<std::uint64_t> take_number(std::string_view& text,
                                                   std::size_t digits) noexcept {
  std::uint64_t number = 0;
  std::size_t length = 0;
  for (; length < text.size() && is_digit(text[length]); ++length) {
    if (length == digits || (length > 0 && text[0] == '0')) return std::nullopt;
    number = number * 10 + static_cast<std::uint64_t>(text[length] - '0');
  }
  text.remove_prefix(length);
  return number;
}

/// Reads a unit in brackets with an optional multiple.
constexpr bool read_unit(std::string_view text, Typestr& out) noexcept {
  if (text.size() < 3 || text.front() != '[' || text.back() != ']') return false;
  text = text.substr(1, text.size() - 2);
  if (is_digit(text[0])) {
    const std::optional<std::uint64_t> multiple = take_number(text, 9);
    if (!multiple || *multiple == 0) return false;
    out.multiple = *multiple;
  }
  for (const Unit& unit : kUnits) {
    if (unit.text == text) out.unit = unit.text;
  }
  return !out.unit.empty();
}

}  // namespace detail

/// Returns the parts of a type string; empty if it is malformed.
constexpr std::optional<Typestr> parse_typestr(std::string_view text) noexcept {
  if (text.size() < 2 || detail::kOrders.find(text[0]) == std::string_view::npos) return {};
  const std::optional<Kind> kind = find_kind(text[1]);
  if (!kind) return {};
  Typestr parsed{text[0], text[1], {}, 1, {}};
  text.remove_prefix(2);
  if (!text.empty() && detail::is_digit(text[0])) {
    parsed.number = detail::take_number(text, 10);
    if (!parsed.number) return {};
  } else if (kind->no_number == 0) {
    return {};
  }
  if (!text.empty() && !(kind->has_unit && detail::read_unit(text, parsed))) return {};
  if (parsed.item_bytes() > detail::kItemBytes) return {};
  return parsed;
}

/// Returns the type string for these parts.
inline std::string format_typestr(const Typestr& parts) {
  std::string text{parts.order, parts.kind};
  if (parts.number) text += std::to_string(*parts.number);
  if (parts.unit.empty()) return text;
  text += '[';
  if (parts.multiple != 1) text += std::to_string(parts.multiple);
  return text.append(parts.unit) + ']';
}

// --- Descriptions ------------------------------------------------------------------------------

/// A field of an element. Field and Interface are views without ownership.
struct Field {
  std::string_view name;     ///< empty for padding
  std::string_view typestr;  ///< empty when the field has fields itself
  const Field* fields = nullptr;
  std::size_t field_count = 0;
  std::span<const std::int64_t> shape;  ///< repetitions in each dimension; may be empty
};

/// Contents of a CUDA Array Interface dictionary.
struct Interface {
  std::span<const std::int64_t> shape;  ///< the size of each dimension
  std::string_view typestr;             ///< "<f4"
  std::uint64_t pointer = 0;            ///< the address of the first element; 0 without elements
  bool read_only = false;
  std::int64_t version = kVersion;
  std::optional<std::span<const std::int64_t>> strides;  ///< bytes; none: C-contiguous
  std::optional<std::span<const Field>> descr;
  const Interface* mask = nullptr;
  std::optional<std::int64_t> stream;  ///< a cudaStream_t as an integer; none: nothing to wait for
};

/// Returns the strides in bytes for a description without strides. The array must fit into memory.
inline std::vector<std::int64_t> contiguous_strides(std::span<const std::int64_t> shape,
                                                    std::uint64_t item_bytes) {
  std::vector<std::int64_t> strides(shape.size());
  std::uint64_t step = item_bytes;
  for (std::size_t i = shape.size(); i-- > 0;) {
    strides[i] = static_cast<std::int64_t>(step);
    step *= static_cast<std::uint64_t>(shape[i]);
  }
  return strides;
}

/// Whether the elements are contiguous in C order. Ignores the strides of dimensions of size 1 and
/// of arrays without elements, because they are never used.
constexpr bool is_contiguous(std::span<const std::int64_t> shape,
                             std::span<const std::int64_t> strides,
                             std::uint64_t item_bytes) noexcept {
  if (shape.size() != strides.size()) return false;
  if (detail::contains(shape, 0)) return true;
  std::uint64_t step = item_bytes;
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != 1 && static_cast<std::uint64_t>(strides[i]) != step) return false;
    step *= static_cast<std::uint64_t>(shape[i]);
  }
  return true;
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::cuda_array_interface

#endif  // FLETCHING_DETAIL_CUDA_ARRAY_DESCRIPTION_HPP
