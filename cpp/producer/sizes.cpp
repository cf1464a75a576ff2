// Computes the readable bytes of a node's buffers from its format.
#include <algorithm>
#include <cstring>
#include <ranges>
#include <string_view>

#include "catalogue.hpp"

namespace fletching::producer {
namespace {

struct Width {
  std::string_view format;  // prefix
  int64_t bits;
};

// The types with a single values buffer after the validity bitmap.
constexpr Width kWidths[] = {
    {"b", 1},    {"c", 8},    {"C", 8},    {"s", 16},   {"S", 16},    {"e", 16},
    {"i", 32},   {"I", 32},   {"f", 32},   {"l", 64},   {"L", 64},    {"g", 64},
    {"tdD", 32}, {"tdm", 64}, {"tts", 32}, {"ttm", 32}, {"ttu", 64},  {"ttn", 64},
    {"ts", 64},  {"tD", 64},  {"tiM", 32}, {"tiD", 64}, {"tin", 128},
};

int64_t value_bits(const std::string& format) {
  if (format.starts_with("w:")) return 8 * std::stoll(format.substr(2));
  if (format.starts_with("d:")) {
    const bool has_bits = std::ranges::count(format, ',') == 2;
    return has_bits ? std::stoll(format.substr(format.rfind(',') + 1)) : 128;
  }
  for (const Width& width : kWidths) {
    if (format.starts_with(width.format)) return width.bits;
  }
  return 0;
}

bool is_one_of(const std::string& format, std::initializer_list<std::string_view> formats) {
  return std::ranges::find(formats, format) != formats.end();
}

int64_t offset_at(const std::optional<Bytes>& offsets, int64_t width, int64_t index) {
  if (!offsets) return 0;
  const uint8_t* at = offsets->data() + width * index;
  int32_t narrow = 0;
  int64_t wide = 0;
  std::memcpy(&narrow, at, sizeof(narrow));
  if (width == sizeof(narrow)) return narrow;
  std::memcpy(&wide, at, sizeof(wide));
  return wide;
}

bool is_view(const Node& node) { return is_one_of(node.format, {"vz", "vu"}); }

}  // namespace

std::vector<int64_t> seen_sizes(const Node& node) {
  const std::string& format = node.format;
  const int64_t end = node.offset + node.length;
  const int64_t bitmap = (end + 7) / 8;
  const int64_t offset = is_one_of(format, {"U", "Z", "+L", "+vL"}) ? 8 : 4;
  if (is_one_of(format, {"n", "+r"})) return {};
  if (format.starts_with("+us:")) return {end};
  if (format.starts_with("+ud:")) return {end, 4 * end};
  if (format == "+s" || format.starts_with("+w:")) return {bitmap};
  if (is_one_of(format, {"+l", "+L", "+m"})) return {bitmap, offset * (end + 1)};
  if (is_one_of(format, {"+vl", "+vL"})) return {bitmap, offset * end, offset * end};
  if (is_one_of(format, {"u", "U", "z", "Z"})) {
    return {bitmap, offset * (end + 1), offset_at(node.buffers[1], offset, end)};
  }
  if (!is_view(node)) return {bitmap, (end * value_bits(format) + 7) / 8};
  std::vector<int64_t> sizes = {bitmap, 16 * end};
  for (const std::optional<Bytes>& buffer : node.buffers | std::views::drop(2)) {
    sizes.push_back(buffer ? static_cast<int64_t>(buffer->size()) : 0);
  }
  return sizes;
}

bool is_in_host_memory(const Node& node, size_t buffer) {
  return is_view(node) && buffer + 1 == node.buffers.size();
}

}  // namespace fletching::producer
