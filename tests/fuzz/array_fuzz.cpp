// SPDX-License-Identifier: Apache-2.0
//
// Pairs of ArrowSchema and ArrowArray, valid and malformed: check_array must read neither buffers
// nor anything below a released struct, and arrays that pass must be safe to walk.
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "fletching/array_capacity.hpp"
#include "fletching/check_array.hpp"
#include "fletching/detail/ownership/tree.hpp"
#include "fletching/format.hpp"
#include "require.hpp"

namespace {

using fletching::fuzz::drop;
using fletching::fuzz::Input;
using fletching::fuzz::require;

/// A pointer to unmapped memory, so that a read through it faults.
template <class T>
T* nowhere() {
  return reinterpret_cast<T*>(std::uintptr_t{0x1000});
}

/// One node of both trees with its lists, which are no longer than their counts.
struct Node {
  ArrowSchema schema{};
  ArrowArray array{};
  std::string format;
  std::vector<ArrowSchema*> schemas;
  std::vector<ArrowArray*> arrays;
  std::vector<const void*> buffers;
};

/// The trees described by the input, per node: the fields to spoil, a number of children, a number
/// of buffers, a NUL-terminated format, numbers, then the children.
class Trees {
 public:
  explicit Trees(Input input) : input_(input) { root_ = &grow(0); }
  Node& root() { return *root_; }

 private:
  static constexpr int kDeepest = 40;
  static constexpr std::size_t kMost = 200;
  static constexpr std::int64_t kCounts[] = {-1, INT64_MIN, INT64_MAX, (1 << 22) + 1};

  Node& grow(int depth) {
    Node& node = nodes_.emplace_back();
    const auto spoiled = input_.take<std::uint16_t>();
    const auto children = static_cast<std::size_t>(input_.take<std::uint8_t>() % 4);
    const auto buffers = input_.take<std::uint8_t>();
    while (!input_.empty()) {
      const char c = input_.take<char>();
      if (c == '\0') break;
      node.format.push_back(c);
    }
    const auto is = [&](int bit) { return (spoiled >> bit & 1) != 0; };
    for (std::size_t i = 0; i < children && depth < kDeepest && nodes_.size() < kMost; ++i) {
      Node& child = grow(depth + 1);
      node.schemas.push_back(is(0) && i == 1 ? nullptr : &child.schema);
      node.arrays.push_back(is(1) && i == 1 ? nullptr : &child.array);
    }
    if (is(2) && depth < kDeepest && nodes_.size() < kMost) {
      Node& values = grow(depth + 1);
      if (!is(3)) node.schema.dictionary = &values.schema;
      if (!is(4)) node.array.dictionary = &values.array;
    }
    fill_schema(node, is(5), is(6), is(7));
    fill_buffers(node, buffers);
    fill_array(node, is(8), is(9), is(10), is(11));
    if (is(12)) node.schema.n_children = kCounts[buffers % 4];
    if (is(13)) node.array.n_children = kCounts[buffers % 4];
    return node;
  }

  static void fill_schema(Node& node, bool no_format, bool no_list, bool released) {
    ArrowSchema& schema = node.schema;
    schema.format = no_format ? nullptr : node.format.c_str();
    schema.n_children = static_cast<std::int64_t>(node.schemas.size());
    schema.children = no_list ? nullptr : node.schemas.data();
    schema.private_data = nowhere<void>();
    schema.release = drop<ArrowSchema>;
    if (!released) return;
    schema = {nowhere<char>(),         nowhere<char>(),        nowhere<char>(), 0,      9,
              nowhere<ArrowSchema*>(), nowhere<ArrowSchema>(), nullptr,         nullptr};
  }

  /// Adds as many buffers as the type has, or as the input says.
  static void fill_buffers(Node& node, std::uint8_t say) {
    const auto format = fletching::parse_format(std::string_view(node.format));
    const std::size_t right =
        format ? static_cast<std::size_t>(format->n_buffers + (format->is_view() ? 1 : 0)) : 0;
    node.buffers.assign((say & 1) != 0 ? say / 16U : right, nowhere<void>());
    for (std::size_t i = 0; i < node.buffers.size() && i < 3; ++i) {
      if ((say >> (i + 1) & 1) != 0) node.buffers[i] = nullptr;
    }
    node.array.n_buffers = static_cast<std::int64_t>(node.buffers.size());
    node.array.buffers = node.buffers.data();
  }

  void fill_array(Node& node, bool numbers, bool no_lists, bool released, bool no_count) {
    ArrowArray& array = node.array;
    array.length = numbers ? input_.take<std::int64_t>() : input_.take<std::uint8_t>();
    array.offset = numbers ? input_.take<std::int64_t>() : 0;
    array.null_count = numbers ? input_.take<std::int64_t>() : 0;
    array.n_children = static_cast<std::int64_t>(node.arrays.size());
    array.children = node.arrays.data();
    array.private_data = nowhere<void>();
    array.release = drop<ArrowArray>;
    if (no_count) array.n_buffers = kCounts[static_cast<std::uint64_t>(array.length) % 4];
    if (no_lists) array.buffers = nullptr;
    if (!released) return;
    array = {1,
             0,
             0,
             9,
             9,
             nowhere<const void*>(),
             nowhere<ArrowArray*>(),
             nowhere<ArrowArray>(),
             nullptr,
             nullptr};
  }

  Input input_;
  std::deque<Node> nodes_;
  Node* root_ = nullptr;
};

/// Walks an array without findings, as check_array promises that it is safe.
void walk(const ArrowSchema& schema, const ArrowArray& array, std::int64_t* structs,
          std::int64_t* buffers) {
  require(schema.release != nullptr && array.release != nullptr, "every struct is alive");
  require(array.length >= 0 && array.offset >= 0 && array.length <= INT64_MAX - array.offset,
          "offset + length is a number");
  require(array.null_count >= -1 && array.null_count <= array.length, "null_count");
  ++*structs;
  *buffers += array.n_buffers;
  const auto format = fletching::parse_format(schema.format);
  require(format.ok(), "the format is one");
  for (std::int64_t i = 0; i < array.n_buffers; ++i) {
    const bool may_be_null =
        array.length == 0 || array.buffers[i] != nullptr || i != 1 || format->bit_width == 0;
    require(may_be_null, "the values are somewhere");
  }
  require(array.n_children == schema.n_children, "the children are those of the schema");
  for (std::int64_t i = 0; i < array.n_children; ++i) {
    const ArrowArray& child = *array.children[i];
    require(format->id != fletching::TypeId::kStruct || child.length >= array.offset + array.length,
            "a struct's children are long enough");
    walk(*schema.children[i], child, structs, buffers);
  }
  require((schema.dictionary == nullptr) == (array.dictionary == nullptr), "the dictionary");
  if (schema.dictionary != nullptr) walk(*schema.dictionary, *array.dictionary, structs, buffers);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Trees trees(Input(data, size));
  Node& root = trees.root();
  const auto found = fletching::check_array(root.schema, root.array);
  require(found.ok() && found->list.size() <= fletching::kMostFindings, "the list is bounded");
  for (const fletching::ArrayFinding& finding : found->list) {
    require(!finding.rule.empty() && !finding.message.empty(), "a finding has a rule and a text");
    require(finding.path.starts_with("array") || finding.path.starts_with("schema"), "and a path");
  }
  const auto verified = fletching::verify_array(root.schema, root.array);
  require(verified.ok() == found->empty(), "both forms agree");
  require(found->status().ok() == found->empty(), "the status too");
  if (!found->empty()) return 0;
  std::int64_t structs = 0;
  std::int64_t buffers = 0;
  walk(root.schema, root.array, &structs, &buffers);
  const auto capacity = fletching::capacity_for(root.schema);
  require(capacity.ok() && capacity->arrays == structs - 1, "the capacity counts the structs");
  require(capacity->buffers <= buffers, "and the buffers without the variadic ones");
  return 0;
}
