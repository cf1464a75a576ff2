#include "describe.hpp"

#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "check.hpp"
#include "fletching/tables.hpp"
#include "text.hpp"

namespace fletching::roundtrip {
namespace {

// Elements whose sizes in bytes and bits are still far from overflowing.
constexpr std::int64_t kMaxElements = std::numeric_limits<std::int64_t>::max() / 64;

// What the buffers after the validity bitmap hold, from the format string.
struct Layout {
  std::string_view format;
  int value_bits = 0;    // 32 for "i", 1 for "b"; 0: no buffer of values
  int offset_bytes = 0;  // 4 for "u"; 0: no buffer of offsets
  bool has_data = false;
};

constexpr Layout kLayouts[] = {
    {"b", 1},          {"c", 8},     {"C", 8},          {"s", 16},         {"S", 16},
    {"i", 32},         {"I", 32},    {"l", 64},         {"L", 64},         {"e", 16},
    {"f", 32},         {"g", 64},    {"u", 0, 4, true}, {"z", 0, 4, true}, {"U", 0, 8, true},
    {"Z", 0, 8, true}, {"+l", 0, 4}, {"+m", 0, 4},      {"+L", 0, 8},      {"+s"},
};

const Layout& layout_of(const char* format) {
  for (const Layout& layout : kLayouts) {
    if (layout.format == format) return layout;
  }
  fail(ENOTSUP, "no description for the format '" + printable(format) + "'");
}

std::string hex(const void* data, std::int64_t size) {
  constexpr char kDigits[] = "0123456789abcdef";
  const auto* bytes = static_cast<const unsigned char*>(data);
  std::string text;
  for (std::int64_t i = 0; i < size; ++i) {
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

/// The integer of type Number at index `index` of unaligned memory.
template <typename Number>
Number load(const void* data, std::int64_t index) {
  Number number;
  std::memcpy(&number, static_cast<const char*>(data) + (index * std::int64_t{sizeof(number)}),
              sizeof(number));
  return number;
}

// --- Metadata

std::int32_t load_count(const char* block, std::int64_t at, const char* what) {
  const auto count = load<std::int32_t>(block + at, 0);
  if (count < 0) fail(EINVAL, std::string("metadata: ") + what + " is " + std::to_string(count));
  return count;
}

/// Bytes of an encoded block of key-value pairs, which says its size nowhere.
std::int64_t metadata_size(const char* block) {
  std::int64_t size = sizeof(std::int32_t);
  const std::int32_t pairs = load_count(block, 0, "the number of pairs");
  for (std::int64_t i = 0; i < 2 * std::int64_t{pairs}; ++i) {
    size += std::int64_t{sizeof(std::int32_t)} + load_count(block, size, "the length of a text");
  }
  return size;
}

// --- Buffers

std::int64_t last_offset(const Layout& layout, const void* offsets, std::int64_t index) {
  if (offsets == nullptr) return 0;
  const std::int64_t last = layout.offset_bytes == 4 ? load<std::int32_t>(offsets, index)
                                                     : load<std::int64_t>(offsets, index);
  if (last < 0) fail(EINVAL, "the last offset is " + std::to_string(last));
  return last;
}

/// The size of every buffer of the array, in bytes.
std::vector<std::int64_t> buffer_sizes(const Layout& layout, const ArrowArray& array) {
  if (array.length > kMaxElements - array.offset) {
    fail(EINVAL, "array.length is " + std::to_string(array.length));
  }
  const std::int64_t end = array.offset + array.length;
  std::vector<std::int64_t> sizes = {(end + 7) / 8};
  if (layout.value_bits > 0) sizes.push_back((end * layout.value_bits + 7) / 8);
  if (layout.offset_bytes > 0) sizes.push_back((end + 1) * layout.offset_bytes);
  const std::int64_t count = std::int64_t(sizes.size()) + (layout.has_data ? 1 : 0);
  if (array.n_buffers != count) {
    fail(EINVAL, "array.n_buffers is " + std::to_string(array.n_buffers) + ", format '" +
                     std::string(layout.format) + "' has " + std::to_string(count));
  }
  if (layout.has_data) sizes.push_back(last_offset(layout, array.buffers[1], end));
  return sizes;
}

std::string buffer_text(const void* data, std::int64_t size) {
  return data == nullptr ? "-" : std::to_string(size) + ":" + hex(data, size);
}

// --- Nodes

/// Both have been checked. The path of the root is empty here, and "/" in the text.
void append(std::string& text, const std::string& path, const ArrowSchema& schema,
            const ArrowArray& array) {
  const std::string begin = (path.empty() ? "/" : path) + " ";
  text += begin + "format=" + schema.format;
  text += std::string(" name=") + (schema.name == nullptr ? "" : schema.name);
  text += " flags=" + std::to_string(schema.flags) + " metadata=";
  text += schema.metadata == nullptr ? "-" : hex(schema.metadata, metadata_size(schema.metadata));
  text += " length=" + std::to_string(array.length);
  text += " null_count=" + std::to_string(array.null_count);
  text += " offset=" + std::to_string(array.offset) + "\n";
  const std::vector<std::int64_t> sizes = buffer_sizes(layout_of(schema.format), array);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    text += begin + "buffer " + std::to_string(i) + " " + buffer_text(array.buffers[i], sizes[i]);
    text += "\n";
  }
  for (std::int64_t i = 0; i < array.n_children; ++i) {
    append(text, path + "/" + std::to_string(i), *schema.children[i], *array.children[i]);
  }
  if (array.dictionary != nullptr) append(text, path + "/d", *schema.dictionary, *array.dictionary);
}

std::string_view first_line(std::string_view text) { return text.substr(0, text.find('\n')); }

}  // namespace

std::string describe(const ArrowSchema& schema, const ArrowDeviceArray& array) {
  check(schema, array.array);
  if (array.device_type != ARROW_DEVICE_CPU) {
    fail(ENOTSUP, "buffers on device " + device_name(array.device_type) + " cannot be read here");
  }
  if (array.sync_event != nullptr) {
    fail(EINVAL, "sync_event is not NULL, and host memory has no event to wait for");
  }
  std::string text;
  append(text, "", schema, array.array);
  return text;
}

void require_same_text(std::string_view seen, std::string_view expected) {
  while (seen != expected) {
    const std::string_view seen_line = first_line(seen);
    const std::string_view expected_line = first_line(expected);
    if (seen_line != expected_line) {
      fail(EBADMSG, "'" + printable(seen_line) + "', expected '" + printable(expected_line) + "'");
    }
    seen.remove_prefix(std::min(seen.size(), seen_line.size() + 1));
    expected.remove_prefix(std::min(expected.size(), expected_line.size() + 1));
  }
}

}  // namespace fletching::roundtrip
