#include "builders.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>

namespace fletching::producer {
namespace {

bool bit_at(const Bytes& bitmap, int64_t index) {
  const auto i = static_cast<size_t>(index);
  return (bitmap[i / 8] >> (i % 8) & 1) != 0;
}

// False for types that have no validity bitmap.
bool has_validity(const Node& node) {
  return node.format != "n" && node.format != "+r" && !node.format.starts_with("+u");
}

// Counts the nulls between offset and offset + length.
int64_t count_nulls(const Node& node) {
  if (node.format == "n") return node.length;
  if (!has_validity(node)) return 0;
  const std::optional<Bytes>& validity = node.buffers[0];
  if (!validity) return 0;
  int64_t nulls = 0;
  for (int64_t i = 0; i < node.length; ++i) nulls += !bit_at(*validity, node.offset + i);
  return nulls;
}

template <class Offset>
Bytes offsets_of(const Values<int32_t>& lengths) {
  std::vector<Offset> offsets = {0};
  for (const auto& length : lengths) {
    offsets.push_back(static_cast<Offset>(offsets.back() + length.value_or(0)));
  }
  return bytes_of(offsets);
}

template <class Offset>
Node text_of(std::string format, const Values<std::string>& values) {
  Node node = array(std::move(format), valid(values));
  Values<int32_t> lengths;
  Bytes data;
  for (const auto& value : values) {
    lengths.emplace_back(value ? static_cast<int32_t>(value->size()) : 0);
    if (value) data.insert(data.end(), value->begin(), value->end());
  }
  node.buffers.emplace_back(offsets_of<Offset>(lengths));
  node.buffers.emplace_back(std::move(data));
  return node;
}

template <class Offset>
Node list_of(std::string format, const Values<int32_t>& lengths, Node items) {
  Node node = array(std::move(format), valid(lengths));
  node.buffers.emplace_back(offsets_of<Offset>(lengths));
  node.children.push_back(named("item", std::move(items)));
  return node;
}

template <class Offset>
Node list_view_of(std::string format, const Values<Range>& ranges, Node items) {
  Node node = array(std::move(format), valid(ranges));
  std::vector<Offset> offsets;
  std::vector<Offset> sizes;
  for (const auto& range : ranges) {
    offsets.push_back(range ? static_cast<Offset>(range->offset) : 0);
    sizes.push_back(range ? static_cast<Offset>(range->size) : 0);
  }
  node.buffers.emplace_back(bytes_of(offsets));
  node.buffers.emplace_back(bytes_of(sizes));
  node.children.push_back(named("item", std::move(items)));
  return node;
}

// Two's complement in native byte order.
Bytes decimal_bytes(const std::string& digits, size_t width) {
  const bool negative = digits.starts_with('-');
  Bytes bytes(width);  // least significant byte first
  for (const char digit : digits.substr(negative ? 1 : 0)) {
    int carry = digit - '0';
    for (uint8_t& byte : bytes) {
      carry += byte * 10;
      byte = static_cast<uint8_t>(carry & 0xFF);
      carry >>= 8;
    }
  }
  int carry = negative ? 1 : 0;
  for (uint8_t& byte : bytes) {
    if (!negative) break;
    carry += ~byte & 0xFF;
    byte = static_cast<uint8_t>(carry & 0xFF);
    carry >>= 8;
  }
  if constexpr (std::endian::native == std::endian::big) std::ranges::reverse(bytes);
  return bytes;
}

// One element of a view array: up to 12 bytes inline, otherwise the first four bytes and the
// location of the value.
Bytes make_view(const std::string& value, size_t buffer, size_t offset) {
  std::array<int32_t, 4> words = {static_cast<int32_t>(value.size())};
  if (value.size() <= 12) {
    std::memcpy(&words[1], value.data(), value.size());
  } else {
    std::memcpy(&words[1], value.data(), sizeof(words[1]));
    words[2] = static_cast<int32_t>(buffer);
    words[3] = static_cast<int32_t>(offset);
  }
  Bytes bytes(sizeof(words));
  std::memcpy(bytes.data(), words.data(), sizeof(words));
  return bytes;
}

}  // namespace

Bytes bitmap(const std::vector<bool>& bits) {
  Bytes bytes((bits.size() + 7) / 8);
  for (size_t i = 0; i < bits.size(); ++i) {
    if (bits[i]) bytes[i / 8] = static_cast<uint8_t>(bytes[i / 8] | 1 << (i % 8));
  }
  return bytes;
}

Node array(std::string format, const std::vector<bool>& valid) {
  Node node;
  node.format = std::move(format);
  node.length = static_cast<int64_t>(valid.size());
  if (std::ranges::find(valid, false) != valid.end()) {
    node.buffers.emplace_back(bitmap(valid));
  } else {
    node.buffers.emplace_back(kNull);
  }
  node.null_count = count_nulls(node);
  return node;
}

Node boolean(const Values<bool>& values) {
  Node node = array("b", valid(values));
  std::vector<bool> plain;
  for (const auto& value : values) plain.push_back(value.value_or(false));
  node.buffers.emplace_back(bitmap(plain));
  return node;
}

Node null(int64_t length) {
  Node node;
  node.format = "n";
  node.length = length;
  node.null_count = length;
  return node;
}

Node decimal(std::string format, size_t width, const Values<std::string>& digits) {
  Node node = array(std::move(format), valid(digits));
  Bytes data;
  for (const auto& value : digits) {
    const Bytes bytes = decimal_bytes(value.value_or(""), width);
    data.insert(data.end(), bytes.begin(), bytes.end());
  }
  node.buffers.emplace_back(std::move(data));
  return node;
}

Node fixed_size_binary(std::string format, const Values<std::string>& values) {
  size_t width = 0;
  for (const auto& value : values) width = std::max(width, value.value_or("").size());
  Node node = array(std::move(format), valid(values));
  Bytes data;
  for (const auto& value : values) {
    const std::string bytes = value.value_or(std::string(width, '\0'));
    data.insert(data.end(), bytes.begin(), bytes.end());
  }
  node.buffers.emplace_back(std::move(data));
  return node;
}

Node text(std::string format, const Values<std::string>& values) {
  return text_of<int32_t>(std::move(format), values);
}

Node large_text(std::string format, const Values<std::string>& values) {
  return text_of<int64_t>(std::move(format), values);
}

Node view_array(std::string format, size_t n_variadic, const Values<std::string>& values) {
  Node node = array(std::move(format), valid(values));
  Bytes views;
  std::vector<Bytes> data(n_variadic);
  size_t next = 0;
  for (const auto& value : values) {
    const std::string bytes = value.value_or("");
    const bool is_long = bytes.size() > 12;
    const Bytes view = make_view(bytes, next, is_long ? data[next].size() : 0);
    views.insert(views.end(), view.begin(), view.end());
    if (!is_long) continue;
    data[next].insert(data[next].end(), bytes.begin(), bytes.end());
    next = (next + 1) % n_variadic;
  }
  std::vector<int64_t> sizes;
  node.buffers.emplace_back(std::move(views));
  for (Bytes& buffer : data) {
    sizes.push_back(static_cast<int64_t>(buffer.size()));
    node.buffers.emplace_back(std::move(buffer));
  }
  node.buffers.emplace_back(bytes_of(sizes));
  return node;
}

Node list(const Values<int32_t>& lengths, Node items) {
  return list_of<int32_t>("+l", lengths, std::move(items));
}

Node large_list(const Values<int32_t>& lengths, Node items) {
  return list_of<int64_t>("+L", lengths, std::move(items));
}

Node fixed_size_list(int32_t size, const std::vector<bool>& valid, Node items) {
  Node node = array("+w:" + std::to_string(size), valid);
  node.children.push_back(named("item", std::move(items)));
  return node;
}

Node list_view(const Values<Range>& ranges, Node items) {
  return list_view_of<int32_t>("+vl", ranges, std::move(items));
}

Node large_list_view(const Values<Range>& ranges, Node items) {
  return list_view_of<int64_t>("+vL", ranges, std::move(items));
}

Node structure(const std::vector<bool>& valid, std::vector<Node> children) {
  Node node = array("+s", valid);
  node.children = std::move(children);
  return node;
}

Node structure(size_t length, std::vector<Node> children) {
  return structure(std::vector<bool>(length, true), std::move(children));
}

Node map(const Values<int32_t>& lengths, Node keys, Node values) {
  const auto length = static_cast<size_t>(keys.length);
  Node node = array("+m", valid(lengths));
  node.buffers.emplace_back(offsets_of<int32_t>(lengths));
  std::vector<Node> pair = {not_nullable(named("key", std::move(keys))),
                            named("value", std::move(values))};
  node.children.push_back(not_nullable(named("entries", structure(length, std::move(pair)))));
  return node;
}

Node sparse_union(std::string format, const std::vector<int8_t>& types,
                  std::vector<Node> children) {
  Node node;
  node.format = std::move(format);
  node.length = static_cast<int64_t>(types.size());
  node.buffers.emplace_back(bytes_of(types));
  node.children = std::move(children);
  return node;
}

Node dense_union(std::string format, const std::vector<int8_t>& types,
                 const std::vector<int32_t>& offsets, std::vector<Node> children) {
  Node node = sparse_union(std::move(format), types, std::move(children));
  node.buffers.emplace_back(bytes_of(offsets));
  return node;
}

Node run_end_encoded(int64_t length, Node run_ends, Node values) {
  Node node;
  node.format = "+r";
  node.length = length;
  node.children.push_back(not_nullable(named("run_ends", std::move(run_ends))));
  node.children.push_back(named("values", std::move(values)));
  return node;
}

Node dictionary(Node indices, Node values) {
  indices.dictionary = std::make_shared<const Node>(std::move(values));
  return indices;
}

Node named(std::string name, Node node) {
  node.name = std::move(name);
  return node;
}

Node not_nullable(Node node) {
  node.flags &= ~int64_t{ARROW_FLAG_NULLABLE};
  return node;
}

Node with_flag(int64_t flag, Node node) {
  node.flags |= flag;
  return node;
}

Node with_metadata(std::vector<std::pair<std::string, std::string>> metadata, Node node) {
  node.metadata = std::move(metadata);
  return node;
}

Node skip(int64_t count, Node node) {
  node.offset += count;
  node.length -= count;
  node.null_count = count_nulls(node);
  return node;
}

Node shorten(int64_t count, Node node) {
  node.length -= count;
  node.null_count = count_nulls(node);
  return node;
}

Node uncounted(Node node) {
  node.null_count = -1;
  return node;
}

Node with_validity(Node node) {
  node.buffers[0] = bitmap(std::vector<bool>(static_cast<size_t>(node.offset + node.length), true));
  return node;
}

Node empty_as_null(Node node) {
  for (std::optional<Bytes>& buffer : node.buffers) {
    if (buffer && buffer->empty()) buffer.reset();
  }
  for (Node& child : node.children) child = empty_as_null(std::move(child));
  if (node.dictionary) {
    node.dictionary = std::make_shared<const Node>(empty_as_null(*node.dictionary));
  }
  return node;
}

}  // namespace fletching::producer
