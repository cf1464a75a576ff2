// Builders of the catalogue: functions that make or modify nodes.
#ifndef FLETCHING_PRODUCER_BUILDERS_HPP
#define FLETCHING_PRODUCER_BUILDERS_HPP

#include <cstring>

#include "catalogue.hpp"

namespace fletching::producer {

constexpr auto kNull = std::nullopt;

template <class T>
using Values = std::vector<std::optional<T>>;

template <class T>
Bytes bytes_of(const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// One bit per element, least significant bit first.
Bytes bitmap(const std::vector<bool>& bits);

template <class T>
std::vector<bool> valid(const Values<T>& values) {
  std::vector<bool> valid;
  for (const auto& value : values) valid.push_back(value.has_value());
  return valid;
}

// --- Nodes. Null slots are zeroed. An array without nulls has no validity buffer.

// Returns a node with length, null count and validity; the caller adds the other buffers.
Node array(std::string format, const std::vector<bool>& valid);

// Fixed-width values in their memory representation.
template <class T>
Node fixed(std::string format, const Values<T>& values) {
  Node node = array(std::move(format), valid(values));
  std::vector<T> plain;
  for (const auto& value : values) plain.push_back(value.value_or(T{}));
  node.buffers.emplace_back(bytes_of(plain));
  return node;
}

inline Node int8(const Values<int8_t>& values) { return fixed("c", values); }
inline Node int32(const Values<int32_t>& values) { return fixed("i", values); }
inline Node int64(const Values<int64_t>& values) { return fixed("l", values); }
Node boolean(const Values<bool>& values);
Node null(int64_t length);
// `digits` of each value, without a decimal point: "-150". `width` in bytes: 16.
Node decimal(std::string format, size_t width, const Values<std::string>& digits);

// All values must have the same size.
Node fixed_size_binary(std::string format, const Values<std::string>& values);
// Text or binary with 32-bit and 64-bit offsets.
Node text(std::string format, const Values<std::string>& values);
Node large_text(std::string format, const Values<std::string>& values);
inline Node utf8(const Values<std::string>& values) { return text("u", values); }
// Values of up to 12 bytes are inline, longer ones alternate between the `n_variadic` data buffers.
Node view_array(std::string format, size_t n_variadic, const Values<std::string>& values);

// `lengths`: one per list, null for a null list. `items`: the elements of all lists.
Node list(const Values<int32_t>& lengths, Node items);
Node large_list(const Values<int32_t>& lengths, Node items);
Node fixed_size_list(int32_t size, const std::vector<bool>& valid, Node items);

struct Range {
  int64_t offset;
  int64_t size;
};
// Ranges of `items`, in any order; they may overlap.
Node list_view(const Values<Range>& ranges, Node items);
Node large_list_view(const Values<Range>& ranges, Node items);

Node structure(const std::vector<bool>& valid, std::vector<Node> children);
Node structure(size_t length, std::vector<Node> children);
Node map(const Values<int32_t>& lengths, Node keys, Node values);
// `format` contains the type ids: "+us:0,1".
Node sparse_union(std::string format, const std::vector<int8_t>& types, std::vector<Node> children);
Node dense_union(std::string format, const std::vector<int8_t>& types,
                 const std::vector<int32_t>& offsets, std::vector<Node> children);
Node run_end_encoded(int64_t length, Node run_ends, Node values);
Node dictionary(Node indices, Node values);

// --- Modifications

Node named(std::string name, Node node);
Node not_nullable(Node node);
Node with_flag(int64_t flag, Node node);
Node with_metadata(std::vector<std::pair<std::string, std::string>> metadata, Node node);
// Skips the first `count` elements by offset; buffers and children are unchanged.
Node skip(int64_t count, Node node);
// Drops the last `count` elements; buffers and children keep their size.
Node shorten(int64_t count, Node node);
// Sets null_count to -1: not computed.
Node uncounted(Node node);
// Adds a validity buffer to a node without nulls.
Node with_validity(Node node);
// Makes empty buffers NULL, recursively. An offsets buffer always has one entry.
Node empty_as_null(Node node);

}  // namespace fletching::producer

#endif  // FLETCHING_PRODUCER_BUILDERS_HPP
