#include "layout.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>

#include "text.hpp"

namespace fletching::roundtrip {
namespace {

enum class Kind {
  kValues,   // of `width` bits, as many as there are elements
  kOffsets,  // of `width` bytes, one more than there are elements
  kData,     // as many bytes as the last offset of the buffer before says
  kViewed,   // the data buffers of a view array, and behind them their sizes
};

struct Part {
  Kind kind;
  std::int64_t width = 0;
};
using Parts = std::vector<Part>;

struct Width {
  std::string_view format;
  std::int64_t bits;
};

// Types with one buffer of values behind the validity bitmap.
constexpr Width kWidths[] = {
    {"b", 1},    {"c", 8},    {"C", 8},    {"s", 16},    {"S", 16},   {"e", 16},   {"i", 32},
    {"I", 32},   {"f", 32},   {"l", 64},   {"L", 64},    {"g", 64},   {"tdD", 32}, {"tdm", 64},
    {"tts", 32}, {"ttm", 32}, {"ttu", 64}, {"ttn", 64},  {"tDs", 64}, {"tDm", 64}, {"tDu", 64},
    {"tDn", 64}, {"tiM", 32}, {"tiD", 64}, {"tin", 128},
};

[[noreturn]] void fail_unknown(std::string_view format) {
  fail(ENOTSUP, "no description for the format '" + printable(format) + "'");
}

/// The number behind the last ',' or ':' of the format.
std::int64_t last_number(std::string_view format) {
  const char* const end = format.data() + format.size();
  const char* const begin = format.data() + format.find_last_of(",:") + 1;
  std::int32_t number = 0;
  const auto [stopped, error] = std::from_chars(begin, end, number);
  if (error != std::errc{} || stopped != end || number < 0) fail_unknown(format);
  return number;
}

std::int64_t value_bits(std::string_view format) {
  for (const Width& width : kWidths) {
    if (width.format == format) return width.bits;
  }
  if (format.starts_with("w:")) return 8 * last_number(format);
  if (format.starts_with("d:")) {
    return std::ranges::count(format, ',') == 2 ? last_number(format) : 128;
  }
  const bool is_timestamp = format.size() >= 4 && format.starts_with("ts") && format[3] == ':';
  if (is_timestamp && std::strchr("smun", format[2]) != nullptr) return 64;
  fail_unknown(format);
}

Parts parts_of(std::string_view format) {
  constexpr Part kBitmap{Kind::kValues, 1};
  if (format == "n" || format == "+r") return {};
  if (format == "+s" || format.starts_with("+w:")) return {kBitmap};
  if (format.starts_with("+us:")) return {{Kind::kValues, 8}};
  if (format.starts_with("+ud:")) return {{Kind::kValues, 8}, {Kind::kValues, 32}};
  if (format == "+l" || format == "+m") return {kBitmap, {Kind::kOffsets, 4}};
  if (format == "+L") return {kBitmap, {Kind::kOffsets, 8}};
  if (format == "+vl") return {kBitmap, {Kind::kValues, 32}, {Kind::kValues, 32}};
  if (format == "+vL") return {kBitmap, {Kind::kValues, 64}, {Kind::kValues, 64}};
  if (format == "u" || format == "z") return {kBitmap, {Kind::kOffsets, 4}, {Kind::kData}};
  if (format == "U" || format == "Z") return {kBitmap, {Kind::kOffsets, 8}, {Kind::kData}};
  if (format == "vu" || format == "vz") return {kBitmap, {Kind::kValues, 128}, {Kind::kViewed}};
  return {kBitmap, {Kind::kValues, value_bits(format)}};
}

/// The integer of type Number at index `index` of unaligned memory.
template <typename Number>
std::int64_t load(const void* data, std::int64_t index) {
  Number number;
  std::memcpy(&number, static_cast<const char*>(data) + (index * std::int64_t{sizeof(number)}),
              sizeof(number));
  return number;
}

std::int64_t last_offset(const void* offsets, std::int64_t width, std::int64_t index) {
  if (offsets == nullptr) return 0;
  const std::int64_t last =
      width == 4 ? load<std::int32_t>(offsets, index) : load<std::int64_t>(offsets, index);
  if (last < 0) fail(EINVAL, "the last offset is " + std::to_string(last));
  return last;
}

std::vector<std::int64_t> viewed_sizes(const ArrowArray& array) {
  const std::int64_t count = array.n_buffers - 3;
  const void* const last = array.buffers[array.n_buffers - 1];
  if (count > 0 && last == nullptr) fail(EINVAL, "the sizes of the data buffers are NULL");
  std::vector<std::int64_t> sizes;
  for (std::int64_t i = 0; i < count; ++i) {
    sizes.push_back(load<std::int64_t>(last, i));
    if (sizes.back() >= 0) continue;
    fail(EINVAL,
         "the size of data buffer " + std::to_string(i) + " is " + std::to_string(sizes.back()));
  }
  sizes.push_back(count * 8);
  return sizes;
}

void check_number(const Parts& parts, const char* format, const ArrowArray& array) {
  const bool is_view = !parts.empty() && parts.back().kind == Kind::kViewed;
  const auto count = static_cast<std::int64_t>(parts.size());
  if (is_view ? array.n_buffers >= count : array.n_buffers == count) return;
  fail(EINVAL, "array.n_buffers is " + std::to_string(array.n_buffers) + ", format '" +
                   printable(format) + "' has " + std::to_string(count) +
                   (is_view ? " or more" : ""));
}

}  // namespace

std::vector<std::int64_t> buffer_sizes(const char* format, const ArrowArray& array) {
  const Parts parts = parts_of(format);
  std::int64_t widest = 64;
  for (const Part& part : parts) widest = std::max(widest, part.width);
  // Sizes in bits, with one element more than there are, must not overflow.
  const std::int64_t most = (std::numeric_limits<std::int64_t>::max() / widest) - 2;
  if (array.length > most || array.offset > most - array.length) {
    fail(EINVAL, "array.length is " + std::to_string(array.length));
  }
  check_number(parts, format, array);
  const std::int64_t end = array.offset + array.length;
  std::vector<std::int64_t> sizes;
  std::int64_t last = 0;
  for (const Part& part : parts) {
    if (part.kind == Kind::kValues) {
      sizes.push_back(((end * part.width) + 7) / 8);
    } else if (part.kind == Kind::kOffsets) {
      last = last_offset(array.buffers[sizes.size()], part.width, end);
      sizes.push_back((end + 1) * part.width);
    } else if (part.kind == Kind::kData) {
      sizes.push_back(last);
    } else {
      std::ranges::copy(viewed_sizes(array), std::back_inserter(sizes));
    }
  }
  return sizes;
}

}  // namespace fletching::roundtrip
