#include "describe.hpp"

#include <cstdint>
#include <cstring>
#include <vector>

#include "check.hpp"
#include "fletching/tables.hpp"
#include "layout.hpp"
#include "text.hpp"

namespace fletching::roundtrip {
namespace {

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

// --- Metadata

std::int32_t load_count(const char* block, std::int64_t at, const char* what) {
  std::int32_t count = 0;
  std::memcpy(&count, block + at, sizeof(count));  // not aligned
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
  const std::vector<std::int64_t> sizes = buffer_sizes(schema.format, array);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    text += begin + "buffer " + std::to_string(i) + " " + buffer_text(array.buffers[i], sizes[i]);
    text += '\n';
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
