// SPDX-License-Identifier: Apache-2.0
//
// Arrays of valid shape with hostile buffers: check_data must stay within the buffers, and each
// value of an array without findings must be readable.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "fletching/check_data.hpp"
#include "fletching/format.hpp"
#include "require.hpp"

namespace {

using fletching::Format;
using fletching::TypeId;
using fletching::detail::item_at;
using fletching::detail::Validity;
using fletching::detail::View;
using fletching::fuzz::drop;
using fletching::fuzz::Input;
using fletching::fuzz::require;

/// One node of both trees with its lists. Each buffer has exactly its required size.
struct Node {
  ArrowSchema schema{};
  ArrowArray array{};
  Format format;
  std::vector<ArrowSchema*> schemas;
  std::vector<ArrowArray*> arrays;
  std::vector<const void*> buffers;
};

constexpr std::array kFormats{"n",    "b",    "c",   "C",   "s",   "S",       "i",      "I",
                              "l",    "L",    "tin", "w:3", "w:0", "d:5,2",   "z",      "u",
                              "Z",    "U",    "vz",  "vu",  "+l",  "+L",      "+vl",    "+vL",
                              "+w:2", "+w:0", "+s",  "+m",  "+r",  "+ud:0,5", "+us:5,0"};

class Trees {
 public:
  explicit Trees(Input input) : input_(input) { root_ = &grow(pick_format(), 0, 0); }
  Node& root() { return *root_; }

 private:
  /// The role of a node in its parent.
  enum class Kind { kAny, kEntries, kKeys, kRunEnds };
  static constexpr int kDeepest = 8;
  static constexpr std::size_t kMost = 60;

  std::int64_t below(std::int64_t end) { return input_.take<std::uint8_t>() % end; }
  const char* pick_format() { return kFormats[static_cast<std::size_t>(below(kFormats.size()))]; }
  /// A format without children if the tree is large enough.
  const char* pick_child(int depth) {
    const bool is_small = depth < kDeepest && nodes_.size() < kMost;
    return kFormats[static_cast<std::size_t>(below(is_small ? kFormats.size() : 20))];
  }

  Node& grow(const char* text, int depth, std::int64_t least, Kind kind = Kind::kAny) {
    Node& node = nodes_.emplace_back();
    node.format = *fletching::parse_format(std::string_view(text));
    node.schema.format = text;
    node.schema.release = drop<ArrowSchema>;
    node.array.release = drop<ArrowArray>;
    node.array.offset = below(9);
    node.array.length = least + below(12);
    add_children(node, depth, kind);
    if (node.format.is_integer() && kind != Kind::kRunEnds && below(4) == 0) {
      Node& values = grow(pick_child(depth + 1), depth + 1, 0);
      node.schema.dictionary = &values.schema;
      node.array.dictionary = &values.array;
    }
    fill_buffers(node, kind == Kind::kAny && !node.format.has_no_nulls());
    return node;
  }

  void add(Node& node, Node& child) {
    node.schemas.push_back(&child.schema);
    node.arrays.push_back(&child.array);
  }

  void add_children(Node& node, int depth, Kind kind) {
    const std::int64_t values = node.array.offset + node.array.length;
    if (node.format.id == TypeId::kMap) {
      add(node, grow("+s", depth + 1, 0, Kind::kEntries));
    } else if (node.format.id == TypeId::kRunEndEncoded) {
      constexpr std::array kEnds{"s", "i", "l"};
      Node& ends = grow(kEnds[static_cast<std::size_t>(below(3))], depth + 1, values > 0 ? 1 : 0,
                        Kind::kRunEnds);
      add(node, ends);
      add(node, grow(pick_child(depth + 1), depth + 1, ends.array.length));
    } else {
      const bool is_struct = node.format.id == TypeId::kStruct;
      const bool is_entry = kind == Kind::kEntries;
      const std::int64_t count = is_entry ? 2 : is_struct ? below(4) : node.format.n_children;
      const std::int64_t least =
          fletching::detail::least_child_length(node.format, values).value_or(0);
      for (std::int64_t i = 0; i < count; ++i) {
        add(node, grow(pick_child(depth + 1), depth + 1, least,
                       is_entry && i == 0 ? Kind::kKeys : Kind::kAny));
      }
    }
    node.schema.n_children = node.array.n_children = static_cast<std::int64_t>(node.arrays.size());
    node.schema.children = node.schemas.data();
    node.array.children = node.arrays.data();
  }

  /// Returns a buffer at the end of its allocation, with any alignment.
  char* block(std::int64_t size) {
    const std::int64_t gap = below(2);
    blocks_.push_back(std::make_unique<char[]>(static_cast<std::size_t>(size + gap)));
    return blocks_.back().get() + gap;
  }
  const void* bytes(std::int64_t size) {
    char* const out = block(size);
    const std::string_view from = input_.take_bytes(static_cast<std::size_t>(size));
    std::ranges::copy(from, out);
    return out;
  }

  /// Numbers that ascend by 0 to 3, one of them hostile.
  template <class Number>
  const void* ascending(std::int64_t count, std::int64_t step_from) {
    char* const out = block(count * std::int64_t{sizeof(Number)});
    const std::int64_t hostile = below(24);
    auto number = static_cast<Number>(below(3));
    for (std::int64_t i = 0; i < count; ++i) {
      const Number item = i == hostile ? input_.take<Number>() : number;
      std::memcpy(out + i * std::int64_t{sizeof item}, &item, sizeof item);
      number = static_cast<Number>(number + step_from + below(3));
    }
    return out;
  }

  void fill_buffers(Node& node, bool has_nulls) {
    ArrowArray& array = node.array;
    const std::int64_t values = array.offset + array.length;
    if (node.format.n_buffers > 0) {
      const void* const first = bytes(node.format.is_union() ? values : (values + 7) / 8);
      node.buffers.push_back(first);
      set_null_count(node, has_nulls);
      if (node.format.is_union()) {
        for (std::int64_t i = 0; i < values && below(8) != 0; ++i) {
          const_cast<char*>(static_cast<const char*>(first))[i] = below(2) == 0 ? 0 : 5;
        }
      }
      add_buffers(node, values);
    }
    array.n_buffers = static_cast<std::int64_t>(node.buffers.size());
    array.buffers = node.buffers.data();
  }

  void set_null_count(Node& node, bool has_nulls) {
    ArrowArray& array = node.array;
    switch (below(3)) {
      case 0:
        array.null_count = -1;
        break;
      case 1:
        array.null_count =
            has_nulls ? Validity{node.buffers[0], array.offset}.nulls(array.length) : 0;
        break;
      default:
        array.null_count = has_nulls ? below(array.length + 1) : 0;
    }
    if (!node.format.is_union() && array.null_count <= 0 && below(2) == 0)
      node.buffers[0] = nullptr;
  }

  void add_buffers(Node& node, std::int64_t values) {
    switch (node.format.id) {
      case TypeId::kBinary:
      case TypeId::kString:
        return add_binary<std::int32_t>(node, values);
      case TypeId::kLargeBinary:
      case TypeId::kLargeString:
        return add_binary<std::int64_t>(node, values);
      case TypeId::kList:
      case TypeId::kMap:
        return node.buffers.push_back(ascending<std::int32_t>(values + 1, 0));
      case TypeId::kLargeList:
        return node.buffers.push_back(ascending<std::int64_t>(values + 1, 0));
      case TypeId::kListView:
        node.buffers.push_back(ascending<std::int32_t>(values, 0));
        return node.buffers.push_back(ascending<std::int32_t>(values, 0));
      case TypeId::kLargeListView:
        node.buffers.push_back(ascending<std::int64_t>(values, 0));
        return node.buffers.push_back(ascending<std::int64_t>(values, 0));
      case TypeId::kDenseUnion:
        return node.buffers.push_back(ascending<std::int32_t>(values, 0));
      case TypeId::kBinaryView:
      case TypeId::kStringView:
        return add_views(node, values);
      case TypeId::kInt16:
        return node.buffers.push_back(ascending<std::int16_t>(values, 1));
      case TypeId::kInt32:
        return node.buffers.push_back(ascending<std::int32_t>(values, 1));
      case TypeId::kInt64:
        return node.buffers.push_back(ascending<std::int64_t>(values, 1));
      default:
        if (node.format.n_buffers > 1) {
          node.buffers.push_back(bytes((values * node.format.bit_width + 7) / 8));
        }
    }
  }

  /// Adds the data that the last offset demands, or none if that is too much.
  template <class Offset>
  void add_binary(Node& node, std::int64_t values) {
    node.buffers.push_back(ascending<Offset>(values + 1, 0));
    const auto last = std::int64_t{item_at<Offset>(node.buffers[1], values)};
    const bool is_small = last >= 0 && last < 4096;
    node.buffers.push_back(is_small ? bytes(last) : nullptr);
  }

  void add_views(Node& node, std::int64_t values) {
    char* const views = block(values * 16);
    const std::int64_t count = below(3);
    const std::string_view data = "some longer text of bytes";
    for (std::int64_t i = 0; i < values; ++i) {
      const auto length =
          static_cast<std::int32_t>(below(8) == 0 ? input_.take<std::int32_t>() : below(20));
      std::array<char, 16> view{};
      std::memcpy(view.data(), &length, sizeof length);
      if (length > 12 && below(8) != 0) {
        const std::int32_t place[2]{static_cast<std::int32_t>(below(2)),
                                    static_cast<std::int32_t>(below(9))};
        data.copy(view.data() + 4, 4, static_cast<std::size_t>(place[1]));
        std::memcpy(view.data() + 8, place, sizeof place);
      } else if (below(2) == 0) {
        const std::string_view from = input_.take_bytes(12);
        std::ranges::copy(from, view.data() + 4);
      }
      std::memcpy(views + i * 16, view.data(), view.size());
    }
    node.buffers.push_back(views);
    char* const sizes = block(count * 8);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t real = below(static_cast<std::int64_t>(data.size()) + 1);
      const std::int64_t size = below(16) == 0 ? -below(3) : real;
      char* const out = block(real);
      data.copy(out, static_cast<std::size_t>(real));
      node.buffers.push_back(below(16) == 0 ? nullptr : out);
      std::memcpy(sizes + i * 8, &size, sizeof size);
    }
    node.buffers.push_back(sizes);
  }

  Input input_;
  std::deque<Node> nodes_;
  std::vector<std::unique_ptr<char[]>> blocks_;
  Node* root_ = nullptr;
};

volatile unsigned char read_byte;

void read(const char* from, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) read_byte = static_cast<unsigned char>(from[i]);
}

/// Reads value `i` of an array without findings, as check_data promises that it is safe.
class Reader {
 public:
  Reader(const ArrowSchema& schema, const ArrowArray& array)
      : format_(*fletching::parse_format(schema.format)), array_(array) {
    const bool has_bitmap = format_.n_buffers > 0 && !format_.is_union() && array.length > 0;
    if (has_bitmap) validity_ = {array.buffers[0], array.offset};
    for (std::int64_t i = 0; i < array.length; ++i) value(schema, i);
    for (std::int64_t i = 0; i < array.n_children; ++i) {
      Reader(*schema.children[i], *array.children[i]);
    }
    if (schema.dictionary != nullptr) Reader(*schema.dictionary, *array.dictionary);
  }

 private:
  template <class Item>
  [[nodiscard]] std::int64_t item(int buffer, std::int64_t i) const {
    return static_cast<std::int64_t>(item_at<Item>(array_.buffers[buffer], array_.offset + i));
  }
  [[nodiscard]] std::int64_t child_length(std::int64_t i) const {
    return array_.children[i]->length;
  }

  void in_child(std::int64_t begin, std::int64_t end, std::int64_t child) const {
    require(0 <= begin && begin <= end && end <= child_length(child), "a list is in its child");
  }

  void value(const ArrowSchema& schema, std::int64_t i) const {
    const bool is_valid = validity_.at(i);
    if (schema.dictionary != nullptr) return index(i, is_valid);
    switch (format_.id) {
      case TypeId::kBinary:
      case TypeId::kString:
        return text(item<std::int32_t>(1, i), item<std::int32_t>(1, i + 1));
      case TypeId::kLargeBinary:
      case TypeId::kLargeString:
        return text(item<std::int64_t>(1, i), item<std::int64_t>(1, i + 1));
      case TypeId::kList:
      case TypeId::kMap:
        return in_child(item<std::int32_t>(1, i), item<std::int32_t>(1, i + 1), 0);
      case TypeId::kLargeList:
        return in_child(item<std::int64_t>(1, i), item<std::int64_t>(1, i + 1), 0);
      case TypeId::kListView:
        return in_child(item<std::int32_t>(1, i),
                        item<std::int32_t>(1, i) + item<std::int32_t>(2, i), 0);
      case TypeId::kLargeListView:
        return in_child(item<std::int64_t>(1, i),
                        item<std::int64_t>(1, i) + item<std::int64_t>(2, i), 0);
      case TypeId::kBinaryView:
      case TypeId::kStringView:
        return is_valid ? view(i) : void();
      case TypeId::kDenseUnion:
        return in_union(i, item<std::int32_t>(1, i));
      case TypeId::kSparseUnion:
        return in_union(i, array_.offset + i);
      case TypeId::kRunEndEncoded:
        return run(schema, i);
      default:
        return;
    }
  }

  void text(std::int64_t begin, std::int64_t end) const {
    require(0 <= begin && begin <= end, "a value has its bytes");
    if (end > begin) read(static_cast<const char*>(array_.buffers[2]) + begin, end - begin);
  }

  void view(std::int64_t i) const {
    const auto view = item_at<View>(array_.buffers[1], array_.offset + i);
    require(view.length() >= 0, "a view has a length");
    if (view.length() <= 12) return;
    require(view.buffer() >= 0 && view.buffer() < array_.n_buffers - 3, "a view has its buffer");
    read(static_cast<const char*>(array_.buffers[2 + view.buffer()]) + view.offset(),
         view.length());
  }

  void in_union(std::int64_t i, std::int64_t place) const {
    const std::int64_t id = item<std::int8_t>(0, i);
    require(id == 0 || id == 5, "a type id is one of the format");
    const bool is_first = (id == 0) == (format_.id == TypeId::kDenseUnion);
    require(place >= 0 && place < child_length(is_first ? 0 : 1), "a union value is in its child");
  }

  void run(const ArrowSchema& schema, std::int64_t i) const {
    const ArrowArray& ends = *array_.children[0];
    for (std::int64_t run = 0; run < ends.length; ++run) {
      if (end(*schema.children[0], ends, run) > array_.offset + i) return;
    }
    require(false, "a value has its run");
  }
  static std::int64_t end(const ArrowSchema& schema, const ArrowArray& ends, std::int64_t run) {
    const std::int64_t at = ends.offset + run;
    if (*schema.format == 's') return item_at<std::int16_t>(ends.buffers[1], at);
    if (*schema.format == 'i') return item_at<std::int32_t>(ends.buffers[1], at);
    return item_at<std::int64_t>(ends.buffers[1], at);
  }

  void index(std::int64_t i, bool is_valid) const {
    if (!is_valid) return;
    const auto in_dictionary = [&](auto number) {
      require(std::cmp_greater_equal(number, 0) && std::cmp_less(number, array_.dictionary->length),
              "an index is in the dictionary");
    };
    const std::int64_t at = array_.offset + i;
    const void* const indices = array_.buffers[1];
    switch (format_.id) {
      case TypeId::kInt8:
        return in_dictionary(item_at<std::int8_t>(indices, at));
      case TypeId::kUInt8:
        return in_dictionary(item_at<std::uint8_t>(indices, at));
      case TypeId::kInt16:
        return in_dictionary(item_at<std::int16_t>(indices, at));
      case TypeId::kUInt16:
        return in_dictionary(item_at<std::uint16_t>(indices, at));
      case TypeId::kInt32:
        return in_dictionary(item_at<std::int32_t>(indices, at));
      case TypeId::kUInt32:
        return in_dictionary(item_at<std::uint32_t>(indices, at));
      case TypeId::kInt64:
        return in_dictionary(item_at<std::int64_t>(indices, at));
      default:
        return in_dictionary(item_at<std::uint64_t>(indices, at));
    }
  }

  Format format_;
  const ArrowArray& array_;
  Validity validity_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Trees trees(Input(data, size));
  const Node& root = trees.root();
  require(fletching::check_array(root.schema, root.array).value().empty(), "the shape is right");
  const auto found = fletching::check_data(root.schema, root.array);
  require(found.ok() && found->list.size() <= fletching::kMostFindings, "the list is bounded");
  for (const fletching::ArrayFinding& finding : found->list) {
    require(!finding.rule.empty() && !finding.message.empty(), "a finding has a rule and a text");
    require(finding.path.starts_with("array"), "and a path");
  }
  const auto verified = fletching::verify_data(root.schema, root.array);
  require(verified.ok() == found->empty(), "both forms agree");
  if (found->empty()) Reader(root.schema, root.array);
  return 0;
}
