// Prints a node of the catalogue as text.
#include "catalogue_text.hpp"

#include <algorithm>
#include <span>

#include "catalogue.hpp"

namespace fletching::producer {
namespace {

template <class Range>
std::string hex(const Range& bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const auto element : bytes) {
    const auto byte = static_cast<uint8_t>(element);
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

std::string buffer_text(const std::optional<Bytes>& buffer, int64_t size) {
  if (!buffer) return "-";
  const std::span<const uint8_t> seen(buffer->data(), static_cast<size_t>(size));
  return std::to_string(size) + ":" + hex(seen);
}

// The root's `path` is empty here and "/" in the text.
void append(std::string& text, const Node& node, const std::string& path) {
  const std::string begin = (path.empty() ? "/" : path) + " ";
  const std::string metadata = encode_metadata(node);
  text += begin + "format=" + node.format + " name=" + node.name;
  text += " flags=" + std::to_string(node.flags);
  text += " metadata=" + (metadata.empty() ? "-" : hex(metadata));
  text += " length=" + std::to_string(node.length);
  text += " null_count=" + std::to_string(node.null_count);
  text += " offset=" + std::to_string(node.offset) + "\n";
  const std::vector<int64_t> sizes = seen_sizes(node);
  for (size_t i = 0; i < node.buffers.size(); ++i) {
    text += begin + "buffer " + std::to_string(i) + " ";
    text += buffer_text(node.buffers[i], sizes[i]) + "\n";
  }
  for (size_t i = 0; i < node.children.size(); ++i) {
    append(text, node.children[i], path + "/" + std::to_string(i));
  }
  if (node.dictionary) append(text, *node.dictionary, path + "/d");
}

}  // namespace

std::string case_text(const std::string& name) {
  static const std::vector<Case>& cases = catalogue();
  const auto found = std::ranges::find(cases, name, &Case::name);
  std::string text;
  if (found != cases.end()) append(text, found->node, "");
  return text;
}

}  // namespace fletching::producer
