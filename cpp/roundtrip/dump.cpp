#include "dump.hpp"

#include <cstdint>
#include <cstdio>
#include <cstring>

#include "check.hpp"
#include "text.hpp"

namespace fletching::roundtrip {
namespace {

// --- Values

std::string number(std::int64_t value) { return std::to_string(value); }

std::string address(const void* value) {
  char text[32];
  std::snprintf(text, sizeof(text), "0x%jx",
                static_cast<std::uintmax_t>(reinterpret_cast<std::uintptr_t>(value)));
  return text;
}

std::string bytes(const char* data, std::size_t size) {
  std::string text = "\"";
  for (std::size_t i = 0; i < size; ++i) {
    const bool is_plain = data[i] >= 0x20 && data[i] <= 0x7E && data[i] != '"' && data[i] != '%';
    char escaped[4];
    std::snprintf(escaped, sizeof(escaped), "%%%02x", static_cast<unsigned char>(data[i]));
    text += is_plain ? std::string(1, data[i]) : escaped;
  }
  return text + '"';
}

std::string text_of(const char* text) {
  return text == nullptr ? "NULL" : bytes(text, std::strlen(text));
}

std::size_t load_count(const char* block, std::size_t at) {
  std::int32_t count = 0;
  std::memcpy(&count, block + at, sizeof(count));  // not aligned
  if (count < 0) fail(EINVAL, "schema.metadata has a count of " + std::to_string(count));
  return static_cast<std::size_t>(count);
}

/// An encoded block of key-value pairs, which says its size nowhere.
std::string metadata(const char* block) {
  if (block == nullptr) return "NULL";
  std::size_t size = sizeof(std::int32_t);
  for (std::size_t texts = 2 * load_count(block, 0); texts > 0; --texts) {
    size += sizeof(std::int32_t) + load_count(block, size);
  }
  return bytes(block, size);
}

// --- Structs

/// One struct: `path` is "schema.children[0]." with its dot.
struct Lines {
  std::string& text;
  std::string path;

  void add(const std::string& field, const std::string& value) const {
    text += path + field + "=" + value + "\n";
  }
  [[nodiscard]] Lines below(const std::string& field) const { return {text, path + field + "."}; }
};

std::string element(const char* field, std::int64_t index) {
  return std::string(field) + "[" + std::to_string(index) + "]";
}

void write(const Lines& lines, const ArrowSchema& schema) {
  lines.add("format", text_of(schema.format));
  lines.add("name", text_of(schema.name));
  lines.add("metadata", metadata(schema.metadata));
  lines.add("flags", number(schema.flags));
  lines.add("n_children", number(schema.n_children));
  for (std::int64_t i = 0; i < schema.n_children; ++i) {
    write(lines.below(element("children", i)), *schema.children[i]);
  }
  if (schema.dictionary != nullptr) write(lines.below("dictionary"), *schema.dictionary);
  lines.add("private_data", address(schema.private_data));
}

void write(const Lines& lines, const ArrowArray& array) {
  lines.add("length", number(array.length));
  lines.add("null_count", number(array.null_count));
  lines.add("offset", number(array.offset));
  lines.add("n_buffers", number(array.n_buffers));
  lines.add("n_children", number(array.n_children));
  for (std::int64_t i = 0; i < array.n_buffers; ++i) {
    lines.add(element("buffers", i), address(array.buffers[i]));
  }
  for (std::int64_t i = 0; i < array.n_children; ++i) {
    write(lines.below(element("children", i)), *array.children[i]);
  }
  if (array.dictionary != nullptr) write(lines.below("dictionary"), *array.dictionary);
  lines.add("private_data", address(array.private_data));
}

}  // namespace

std::string dump(const ArrowSchema& schema, const ArrowDeviceArray& array) {
  check(schema, array.array);
  std::string text;
  write({text, "schema."}, schema);
  write({text, "array."}, array.array);
  const Lines lines{text, ""};
  lines.add("device_id", number(array.device_id));
  lines.add("device_type", number(array.device_type));
  lines.add("sync_event", address(array.sync_event));
  for (std::int64_t i = 0; i < 3; ++i) lines.add(element("reserved", i), number(array.reserved[i]));
  return text;
}

}  // namespace fletching::roundtrip
