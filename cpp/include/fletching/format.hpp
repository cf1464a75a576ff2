// SPDX-License-Identifier: Apache-2.0
//
// Parser for the format strings of ArrowSchema: the type, and the buffers and children of its
// arrays. C Data Interface, "Data type description - format strings".
#ifndef FLETCHING_FORMAT_HPP
#define FLETCHING_FORMAT_HPP

#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "fletching/detail/text.hpp"
#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {

/// The type of a format string. For an extension type this is the storage type, for a
/// dictionary-encoded type the index type.
enum class TypeId : std::uint8_t {
  kNull,
  kBool,
  kInt8,
  kUInt8,
  kInt16,
  kUInt16,
  kInt32,
  kUInt32,
  kInt64,
  kUInt64,
  kFloat16,
  kFloat32,
  kFloat64,
  kBinary,
  kLargeBinary,
  kBinaryView,
  kString,
  kLargeString,
  kStringView,
  kDecimal,
  kFixedSizeBinary,
  kDate32,
  kDate64,
  kTime32,
  kTime64,
  kTimestamp,
  kDuration,
  kIntervalMonths,
  kIntervalDayTime,
  kIntervalMonthDayNano,
  kList,
  kLargeList,
  kListView,
  kLargeListView,
  kFixedSizeList,
  kStruct,
  kMap,
  kDenseUnion,
  kSparseUnion,
  kRunEndEncoded,
};

/// The unit of a time, a timestamp or a duration.
enum class TimeUnit : std::uint8_t { kNone, kSecond, kMilli, kMicro, kNano };

/// A parsed format string. Its text members point into the format string.
struct Format {
  /// n_children of a type with any number of children: a struct.
  static constexpr std::int32_t kAnyNumber = -1;

  TypeId id = TypeId::kNull;
  TimeUnit unit = TimeUnit::kNone;
  /// The width of a value in buffers[1], in bits: 1 for a boolean, 64 for an int64. 0 for a type
  /// whose values are not in buffers[1], or that has none.
  std::int64_t bit_width = 0;
  std::int32_t precision = 0;   ///< digits of a decimal, at least 1
  std::int32_t scale = 0;       ///< digits after the decimal point; may be negative
  std::int32_t size = 0;        ///< bytes of a fixed-size binary, elements of a fixed-size list
  std::string_view timezone;    ///< a timestamp's time zone; may be empty
  std::string_view type_ids;    ///< a union's type ids, "0,5,7": one per child, 0 to 127
  std::int32_t n_buffers = 0;   ///< the required ArrowArray::n_buffers; see is_view
  std::int32_t n_children = 0;  ///< the required n_children, or kAnyNumber

  /// Whether an array has variadic buffers for long values after the first n_buffers. The buffer of
  /// their sizes follows them.
  [[nodiscard]] constexpr bool is_view() const noexcept {
    return id == TypeId::kBinaryView || id == TypeId::kStringView;
  }
  [[nodiscard]] constexpr bool is_union() const noexcept {
    return id == TypeId::kDenseUnion || id == TypeId::kSparseUnion;
  }
  /// Whether arrays have neither a validity bitmap nor nulls: unions and run-end encoded types.
  [[nodiscard]] constexpr bool has_no_nulls() const noexcept {
    return is_union() || id == TypeId::kRunEndEncoded;
  }
  /// Whether the type is an integer of 8 to 64 bits, as required for dictionary indices.
  [[nodiscard]] constexpr bool is_integer() const noexcept {
    return id >= TypeId::kInt8 && id <= TypeId::kUInt64;
  }
};

namespace detail {

struct PlainFormat {
  std::string_view text;
  TypeId id;
  std::uint8_t bit_width;
  std::uint8_t n_buffers;
  std::int8_t n_children;
  TimeUnit unit = TimeUnit::kNone;
};

/// Formats without parameters.
inline constexpr std::array<PlainFormat, 39> kPlainFormats{{
    {"n", TypeId::kNull, 0, 0, 0},
    {"b", TypeId::kBool, 1, 2, 0},
    {"c", TypeId::kInt8, 8, 2, 0},
    {"C", TypeId::kUInt8, 8, 2, 0},
    {"s", TypeId::kInt16, 16, 2, 0},
    {"S", TypeId::kUInt16, 16, 2, 0},
    {"i", TypeId::kInt32, 32, 2, 0},
    {"I", TypeId::kUInt32, 32, 2, 0},
    {"l", TypeId::kInt64, 64, 2, 0},
    {"L", TypeId::kUInt64, 64, 2, 0},
    {"e", TypeId::kFloat16, 16, 2, 0},
    {"f", TypeId::kFloat32, 32, 2, 0},
    {"g", TypeId::kFloat64, 64, 2, 0},
    {"z", TypeId::kBinary, 0, 3, 0},
    {"Z", TypeId::kLargeBinary, 0, 3, 0},
    {"vz", TypeId::kBinaryView, 0, 2, 0},
    {"u", TypeId::kString, 0, 3, 0},
    {"U", TypeId::kLargeString, 0, 3, 0},
    {"vu", TypeId::kStringView, 0, 2, 0},
    {"tdD", TypeId::kDate32, 32, 2, 0},
    {"tdm", TypeId::kDate64, 64, 2, 0},
    {"tts", TypeId::kTime32, 32, 2, 0, TimeUnit::kSecond},
    {"ttm", TypeId::kTime32, 32, 2, 0, TimeUnit::kMilli},
    {"ttu", TypeId::kTime64, 64, 2, 0, TimeUnit::kMicro},
    {"ttn", TypeId::kTime64, 64, 2, 0, TimeUnit::kNano},
    {"tDs", TypeId::kDuration, 64, 2, 0, TimeUnit::kSecond},
    {"tDm", TypeId::kDuration, 64, 2, 0, TimeUnit::kMilli},
    {"tDu", TypeId::kDuration, 64, 2, 0, TimeUnit::kMicro},
    {"tDn", TypeId::kDuration, 64, 2, 0, TimeUnit::kNano},
    {"tiM", TypeId::kIntervalMonths, 32, 2, 0},
    {"tiD", TypeId::kIntervalDayTime, 64, 2, 0},
    {"tin", TypeId::kIntervalMonthDayNano, 128, 2, 0},
    {"+l", TypeId::kList, 0, 2, 1},
    {"+L", TypeId::kLargeList, 0, 2, 1},
    {"+vl", TypeId::kListView, 0, 3, 1},
    {"+vL", TypeId::kLargeListView, 0, 3, 1},
    {"+s", TypeId::kStruct, 0, 1, Format::kAnyNumber},
    {"+m", TypeId::kMap, 0, 2, 1},
    {"+r", TypeId::kRunEndEncoded, 0, 0, 2},
}};

/// The widths of decimals and the maximum precision of each.
inline constexpr std::array<std::pair<std::int32_t, std::int32_t>, 4> kDecimals{
    {{32, 9}, {64, 18}, {128, 38}, {256, 76}}};

inline Format make_format(TypeId id, std::int64_t bit_width, std::int32_t n_buffers,
                          std::int32_t n_children = 0) noexcept {
  Format format;
  format.id = id;
  format.bit_width = bit_width;
  format.n_buffers = n_buffers;
  format.n_children = n_children;
  return format;
}

inline Error bad_format(std::string_view text, std::string_view why) {
  return {EINVAL, "ArrowSchema.format: " + std::string(why) + ", got " + quote(text)};
}

/// Removes an int32 and a following comma, if any, from the front of `text`.
inline bool take_int32(std::string_view& text, std::int32_t& out) noexcept {
  const char* begin = text.data();
  const char* end = begin + text.size();
  const auto [stop, error] = std::from_chars(begin, end, out);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<std::size_t>(stop - begin));
  if (text.empty()) return true;
  if (text.front() != ',' || text.size() == 1) return false;
  text.remove_prefix(1);
  return true;
}

inline Result<Format> parse_decimal(std::string_view text) {
  Format format = make_format(TypeId::kDecimal, 128, 2);
  std::string_view rest = text.substr(2);
  if (!take_int32(rest, format.precision) || rest.empty() || !take_int32(rest, format.scale)) {
    return bad_format(text, "no precision or scale: expected the form 'd:19,10'");
  }
  std::int32_t bits = 128;
  if (!rest.empty() && (!take_int32(rest, bits) || !rest.empty())) {
    return bad_format(text, "malformed width: expected a number at the end");
  }
  for (const auto& [width, digits] : kDecimals) {
    if (width != bits) continue;
    if (format.precision < 1 || format.precision > digits) {
      return bad_format(
          text, "precision out of range for the width: expected 1 to " + std::to_string(digits));
    }
    format.bit_width = width;
    return format;
  }
  return bad_format(text, "unknown width: expected 32, 64, 128 or 256");
}

/// "w:42" and "+w:42".
inline Result<Format> parse_sized(std::string_view text, Format format) {
  std::string_view rest = text.substr(text.find(':') + 1);
  if (!take_int32(rest, format.size) || !rest.empty() || format.size < 0) {
    return bad_format(text,
                      "malformed size: expected one number from 0 to 2147483647 after the colon");
  }
  if (format.id == TypeId::kFixedSizeBinary) format.bit_width = std::int64_t{8} * format.size;
  return format;
}

inline Result<Format> parse_timestamp(std::string_view text) {
  constexpr std::string_view units = "smun";
  const std::size_t unit = text.size() < 3 ? std::string_view::npos : units.find(text[2]);
  if (unit == std::string_view::npos)
    return bad_format(text, "unknown unit: expected s, m, u or n");
  if (text.size() < 4 || text[3] != ':') {
    return bad_format(text, "no colon: expected one after the unit, even without a time zone");
  }
  const std::string_view timezone = text.substr(4);
  if (timezone.starts_with('"') || timezone.starts_with('\'')) {
    return bad_format(text, "time zone in quotes: expected it without");
  }
  Format format = make_format(TypeId::kTimestamp, 64, 2);
  format.unit = static_cast<TimeUnit>(unit + 1);
  format.timezone = timezone;
  return format;
}

/// "+ud:0,5" and "+us:0,5".
inline Result<Format> parse_union(std::string_view text) {
  const bool dense = text[2] == 'd';
  Format format = make_format(dense ? TypeId::kDenseUnion : TypeId::kSparseUnion, 0, dense ? 2 : 1);
  format.type_ids = text.substr(4);
  std::array<bool, 128> seen{};
  std::string_view rest = format.type_ids;
  while (!rest.empty()) {
    std::int32_t id = 0;
    if (!take_int32(rest, id) || id < 0 || id > 127) {
      return bad_format(
          text, "malformed type ids: expected numbers from 0 to 127 with commas between them");
    }
    if (std::exchange(seen[static_cast<std::size_t>(id)], true)) {
      return bad_format(text, "duplicate type id: expected each once");
    }
    ++format.n_children;
  }
  return format;
}

inline Result<Format> parse_known_format(std::string_view text) {
  if (text.empty()) return bad_format(text, "empty: expected a type such as 'i' for int32");
  for (const PlainFormat& plain : kPlainFormats) {
    if (plain.text != text) continue;
    Format format = make_format(plain.id, plain.bit_width, plain.n_buffers, plain.n_children);
    format.unit = plain.unit;
    return format;
  }
  if (text.starts_with("d:")) return parse_decimal(text);
  if (text.starts_with("w:")) {
    return parse_sized(text, make_format(TypeId::kFixedSizeBinary, 0, 2));
  }
  if (text.starts_with("+w:")) {
    return parse_sized(text, make_format(TypeId::kFixedSizeList, 0, 1, 1));
  }
  if (text.starts_with("ts")) return parse_timestamp(text);
  if (text.starts_with("+ud:") || text.starts_with("+us:")) return parse_union(text);
  return bad_format(text, "unknown: expected a format string of the C Data Interface");
}

}  // namespace detail

/// Parses a format string. The result points into `text`.
///
/// Errors: EINVAL for any text that is not exactly a format string of the specification: unknown
/// letters, missing or extra parameters, numbers out of range.
inline Result<Format> parse_format(std::string_view text) noexcept {
  return detail::guarded([&] { return detail::parse_known_format(text); });
}

/// Overload for ArrowSchema::format. EINVAL also for NULL.
inline Result<Format> parse_format(const char* text) noexcept {
  return detail::guarded([&]() -> Result<Format> {
    if (text == nullptr) {
      return Error{EINVAL, "ArrowSchema.format: NULL: expected a format string"};
    }
    return detail::parse_known_format(text);
  });
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_FORMAT_HPP
