// The vocabulary of the catalogue: nodes from values, and the few changes that a case makes to one.
#pragma once

#include <cstring>

#include "catalogue.hpp"

namespace fletching::producer {

constexpr auto kNull = std::nullopt;

template <class T>
using Values = std::vector<std::optional<T>>;

template <class T>
Bytes BytesOf(const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// One bit per element, the first in the lowest bit of the first byte.
Bytes Bitmap(const std::vector<bool>& bits);

template <class T>
std::vector<bool> Valid(const Values<T>& values) {
  std::vector<bool> valid;
  for (const auto& value : values) valid.push_back(value.has_value());
  return valid;
}

// --- Nodes. The bytes below a null are zero, and there is no validity buffer where nothing is null

// Length, null count and validity; the other buffers are still to come.
Node Array(std::string format, const std::vector<bool>& valid);

// Values of one width, as they lie in memory.
template <class T>
Node Fixed(std::string format, const Values<T>& values) {
  Node node = Array(std::move(format), Valid(values));
  std::vector<T> plain;
  for (const auto& value : values) plain.push_back(value.value_or(T{}));
  node.buffers.emplace_back(BytesOf(plain));
  return node;
}

inline Node Int8(const Values<int8_t>& values) { return Fixed("c", values); }
inline Node Int32(const Values<int32_t>& values) { return Fixed("i", values); }
inline Node Int64(const Values<int64_t>& values) { return Fixed("l", values); }
Node Bool(const Values<bool>& values);
Node Null(int64_t length);
// `digits` of each value, without a decimal point: "-150". `width` in bytes: 16.
Node Decimal(std::string format, size_t width, const Values<std::string>& digits);

// All values have the same size.
Node FixedSizeBinary(std::string format, const Values<std::string>& values);
// Text or binary with offsets of 32 and of 64 bits.
Node Text(std::string format, const Values<std::string>& values);
Node LargeText(std::string format, const Values<std::string>& values);
inline Node Utf8(const Values<std::string>& values) { return Text("u", values); }
// Values of up to 12 bytes lie in the view, longer ones by turns in the `n_variadic` data buffers.
Node Views(std::string format, size_t n_variadic, const Values<std::string>& values);

// `lengths`: of each list, null for a null list. `items` holds the elements of all.
Node List(const Values<int32_t>& lengths, Node items);
Node LargeList(const Values<int32_t>& lengths, Node items);
Node FixedSizeList(int32_t size, const std::vector<bool>& valid, Node items);

struct Range {
  int64_t offset;
  int64_t size;
};
// Ranges of `items`, in any order; they may overlap.
Node ListView(const Values<Range>& ranges, Node items);
Node LargeListView(const Values<Range>& ranges, Node items);

Node Struct(const std::vector<bool>& valid, std::vector<Node> children);
Node Struct(size_t length, std::vector<Node> children);
Node Map(const Values<int32_t>& lengths, Node keys, Node values);
// `format` names the type ids: "+us:0,1".
Node SparseUnion(std::string format, const std::vector<int8_t>& types, std::vector<Node> children);
Node DenseUnion(std::string format, const std::vector<int8_t>& types,
                const std::vector<int32_t>& offsets, std::vector<Node> children);
Node RunEndEncoded(int64_t length, Node run_ends, Node values);
Node Dictionary(Node indices, Node values);

// --- Changes

Node Named(std::string name, Node node);
Node NotNullable(Node node);
Node WithFlag(int64_t flag, Node node);
Node WithMetadata(std::vector<std::pair<std::string, std::string>> metadata, Node node);
// Without its first `count` elements, by offset: buffers and children stay as they are.
Node Skip(int64_t count, Node node);
// Without its last `count` elements: buffers and children stay longer than what is seen of them.
Node Shorten(int64_t count, Node node);
// null_count is -1: not counted yet.
Node Uncounted(Node node);
// A validity buffer although nothing is null.
Node WithValidity(Node node);
// Buffers of no bytes are NULL, here and below. An offsets buffer has one entry even so.
Node EmptyAsNull(Node node);

}  // namespace fletching::producer
