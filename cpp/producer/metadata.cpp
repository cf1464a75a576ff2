// Encodes the metadata of a catalogue node.
#include <cstring>

#include "catalogue.hpp"

namespace fletching::producer {
namespace {

void append_length(std::string& block, size_t length) {
  const auto value = static_cast<int32_t>(length);
  char raw[sizeof(value)];
  std::memcpy(raw, &value, sizeof(value));  // the format requires native byte order
  block.append(raw, sizeof(raw));
}

void append_text(std::string& block, const std::string& text) {
  append_length(block, text.size());
  block += text;
}

}  // namespace

std::string encode_metadata(const Node& node) {
  std::string block;
  if (node.metadata.empty()) return block;
  append_length(block, node.metadata.size());
  for (const auto& [key, value] : node.metadata) {
    append_text(block, key);
    append_text(block, value);
  }
  return block;
}

}  // namespace fletching::producer
