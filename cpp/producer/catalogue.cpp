#include "catalogue.hpp"

#include <cmath>
#include <cstring>
#include <limits>

namespace fletching::producer {
namespace {

constexpr auto kNull = std::nullopt;

template <class T>
using Values = std::vector<std::optional<T>>;

// --- Buffers
// ---------------------------------------------------------------------------------------

template <class T>
Bytes BytesOf(const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

Bytes Bitmap(const std::vector<bool>& bits) {
  Bytes bytes((bits.size() + 7) / 8);
  for (size_t i = 0; i < bits.size(); ++i) {
    if (bits[i]) bytes[i / 8] = static_cast<uint8_t>(bytes[i / 8] | 1 << (i % 8));
  }
  return bytes;
}

bool BitAt(const Bytes& bitmap, int64_t index) {
  const auto i = static_cast<size_t>(index);
  return (bitmap[i / 8] >> (i % 8) & 1) != 0;
}

// From the validity buffer, over the elements that the node shows.
int64_t CountNulls(const Node& node) {
  const std::optional<Bytes>& validity = node.buffers[0];
  if (!validity) return 0;
  int64_t nulls = 0;
  for (int64_t i = 0; i < node.length; ++i) nulls += !BitAt(*validity, node.offset + i);
  return nulls;
}

// --- Nodes: give each array its values, then change what the case needs changed
// ----------------------

Node Array(std::string format, const std::vector<bool>& valid) {
  Node node;
  node.format = std::move(format);
  node.length = static_cast<int64_t>(valid.size());
  bool any_null = false;
  for (const bool is_valid : valid) any_null |= !is_valid;
  if (any_null) {
    node.buffers.emplace_back(Bitmap(valid));
  } else {
    node.buffers.emplace_back(kNull);
  }
  node.null_count = CountNulls(node);
  return node;
}

template <class T>
std::vector<bool> Valid(const Values<T>& values) {
  std::vector<bool> valid;
  for (const auto& value : values) valid.push_back(value.has_value());
  return valid;
}

template <class T>
Node Fixed(std::string format, const Values<T>& values) {
  Node node = Array(std::move(format), Valid(values));
  std::vector<T> plain;
  for (const auto& value : values) plain.push_back(value.value_or(T{}));
  node.buffers.emplace_back(BytesOf(plain));
  return node;
}

Node Int8(const Values<int8_t>& values) { return Fixed("c", values); }
Node Int32(const Values<int32_t>& values) { return Fixed("i", values); }
Node Int64(const Values<int64_t>& values) { return Fixed("l", values); }
Node Float64(const Values<double>& values) { return Fixed("g", values); }

Node Bool(const Values<bool>& values) {
  Node node = Array("b", Valid(values));
  std::vector<bool> plain;
  for (const auto& value : values) plain.push_back(value.value_or(false));
  node.buffers.emplace_back(Bitmap(plain));
  return node;
}

template <class Offset>
Node Text(std::string format, const Values<std::string>& values) {
  Node node = Array(std::move(format), Valid(values));
  std::vector<Offset> offsets = {0};
  Bytes data;
  for (const auto& value : values) {
    if (value) data.insert(data.end(), value->begin(), value->end());
    offsets.push_back(static_cast<Offset>(data.size()));
  }
  node.buffers.emplace_back(BytesOf(offsets));
  node.buffers.emplace_back(std::move(data));
  return node;
}

Node Utf8(const Values<std::string>& values) { return Text<int32_t>("u", values); }
Node LargeUtf8(const Values<std::string>& values) { return Text<int64_t>("U", values); }

// `lengths`: of each list, null for a null list. `items` holds the elements of all.
Node List(const Values<int32_t>& lengths, Node items) {
  Node node = Array("+l", Valid(lengths));
  std::vector<int32_t> offsets = {0};
  for (const auto& length : lengths) offsets.push_back(offsets.back() + length.value_or(0));
  node.buffers.emplace_back(BytesOf(offsets));
  items.name = "item";
  node.children.push_back(std::move(items));
  return node;
}

Node Struct(const std::vector<bool>& valid, std::vector<Node> children) {
  Node node = Array("+s", valid);
  node.children = std::move(children);
  return node;
}

Node Struct(size_t length, std::vector<Node> children) {
  return Struct(std::vector<bool>(length, true), std::move(children));
}

Node Dictionary(Node indices, Node values) {
  indices.dictionary = std::make_shared<const Node>(std::move(values));
  return indices;
}

Node Named(std::string name, Node node) {
  node.name = std::move(name);
  return node;
}

Node NotNullable(Node node) {
  node.flags &= ~int64_t{ARROW_FLAG_NULLABLE};
  return node;
}

Node WithMetadata(std::vector<std::pair<std::string, std::string>> metadata, Node node) {
  node.metadata = std::move(metadata);
  return node;
}

// The array without its first `count` elements, by offset: the buffers and children stay as they
// are.
Node Skip(int64_t count, Node node) {
  node.offset += count;
  node.length -= count;
  node.null_count = CountNulls(node);
  return node;
}

// --- Cases
// -----------------------------------------------------------------------------------------

Node NestedStruct() {
  Node inner = Struct({true, false, true}, {Named("x", Int64({7, kNull, -7})),
                                            Named("y", Utf8({"p", kNull, "\u03c0"}))});
  return Struct({true, true, false},
                {Named("a", Int32({1, kNull, 3})), Named("b", Bool({true, kNull, false})),
                 Named("inner", std::move(inner))});
}

Node Colors() { return Dictionary(Int8({2, 0, kNull, 1, 2}), Utf8({"red", "green", "blue"})); }

Node RecordBatch() {
  Node batch =
      Struct(5, {NotNullable(Named("id", Int32({10, 11, 12, 13, 14}))),
                 WithMetadata({{"unit", "gr\u00f6\u00dfe"}, {"empty", ""}},
                              Named("na\u00efve", Utf8({"one", kNull, "", "four", "f\u00fcnf"}))),
                 Named("list", List({2, 0, kNull, 1, 3}, Int32({1, 2, kNull, 4, 5, 6}))),
                 Named("color", Colors()), Named("flag", Bool({true, false, kNull, true, true}))});
  return NotNullable(WithMetadata({{"origin", "fletching"}, {"version", "1"}}, std::move(batch)));
}

std::vector<Case> MakeCases() {
  constexpr int32_t kMin32 = std::numeric_limits<int32_t>::min();
  constexpr int32_t kMax32 = std::numeric_limits<int32_t>::max();
  constexpr int64_t kMin64 = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMax64 = std::numeric_limits<int64_t>::max();
  std::vector<Case> cases;
  const auto add = [&](std::string name, Node node) {
    std::string text = Describe(node);
    cases.push_back({std::move(name), std::move(node), std::move(text)});
  };
  add("int32", Int32({1, 2, kMin32, kMax32}));
  add("int64", Int64({1, -2, kMin64, kMax64}));
  add("float64", Float64({0.5, -0.0, 1e300, HUGE_VAL}));
  add("bool", Bool({true, false, kNull, true, true, false, true, false, true}));
  add("utf8", Utf8({"a", "", kNull, "h\u00e9llo", "\U0001F3F9"}));
  add("large_utf8", LargeUtf8({"large", kNull, "", "\u77e2"}));
  add("list", List({2, 0, kNull, 3}, Int32({1, 2, 3, kNull, 5})));
  add("struct", NestedStruct());
  add("dictionary", Colors());
  add("nulls", Int32({kNull, 1, kNull, 3, kNull, kNull, 6, 7, 8, kNull}));
  // The null is skipped: null_count is 0 beside a validity bitmap.
  add("offset", Skip(3, Int32({0, kNull, 2, 3, 4, 5, 6, 7, 8, 9, 10})));
  add("struct_offset",
      Skip(1, Struct({true, true, false, true},
                     {Named("a", Skip(2, Int32({0, 1, 2, 3, kNull, 5}))),
                      Named("b", Skip(3, Utf8({"a", "bb", kNull, "dddd", "", kNull, "ggg"})))})));
  add("zero_length", Struct(0, {Named("a", Int32({})), Named("b", Utf8({}))}));
  add("record_batch", RecordBatch());
  return cases;
}

}  // namespace

const std::vector<Case>& Catalogue() {
  static const std::vector<Case> cases = MakeCases();
  return cases;
}

}  // namespace fletching::producer
