// SPDX-License-Identifier: Apache-2.0
//
// Trees of ArrowSchema, valid and malformed: parses format strings; a view of a schema must be the
// same tree or fail.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fletching/format.hpp"
#include "fletching/shared.hpp"
#include "require.hpp"

namespace {

using fletching::fuzz::Input;
using fletching::fuzz::require;

/// One node and the memory it points to.
struct Node {
  ArrowSchema schema{};
  std::string format;
  std::vector<ArrowSchema*> children;
};

/// The tree described by the input, per node: a byte of flags, a byte with the number of children,
/// a NUL-terminated format, then the children.
class Tree {
 public:
  explicit Tree(Input input) : input_(input) { root_ = grow(0); }
  ArrowSchema* root() { return root_; }

 private:
  static constexpr int kDeepest = 40;
  static constexpr std::size_t kMost = 200;

  ArrowSchema* grow(int depth) {
    Node& node = nodes_.emplace_back();
    const auto flags = input_.take<std::uint8_t>();
    const auto children = static_cast<std::size_t>(input_.take<std::uint8_t>() % 5);
    node.format = take_text();
    ArrowSchema& schema = node.schema;
    schema.format = (flags & 1) != 0 ? nullptr : node.format.c_str();
    schema.release =
        (flags & 2) != 0 ? nullptr : [](ArrowSchema* self) { self->release = nullptr; };
    for (std::size_t i = 0; i < children && depth < kDeepest && nodes_.size() < kMost; ++i) {
      node.children.push_back((flags & 4) != 0 && i == 1 ? nullptr : grow(depth + 1));
    }
    schema.n_children = static_cast<std::int64_t>(node.children.size());
    schema.children = node.children.data();
    if ((flags & 8) != 0) schema.children = nullptr;
    if ((flags & 16) != 0) schema.n_children = -schema.n_children;
    if ((flags & 32) != 0 && depth < kDeepest) schema.dictionary = grow(depth + 1);
    return &schema;
  }

  std::string take_text() {
    std::string text;
    while (!input_.empty()) {
      const char c = input_.take<char>();
      if (c == '\0') break;
      text.push_back(c);
    }
    return text;
  }

  Input input_;
  std::deque<Node> nodes_;
  ArrowSchema* root_ = nullptr;
};

bool inside(std::string_view part, std::string_view whole) {
  return part.empty() ||
         (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

void read_format(const char* text) {
  const auto format = fletching::parse_format(text);
  if (!format) {
    require(!format.error().message().empty(), "an error has words");
    return;
  }
  require(inside(format->timezone, text) && inside(format->type_ids, text),
          "the parts of a format lie in it");
  require(format->n_buffers >= 0 && format->n_buffers <= 3, "n_buffers");
  require(format->n_children >= fletching::Format::kAnyNumber, "n_children");
  require(format->bit_width >= 0 && format->size >= 0, "widths");
}

void compare(const ArrowSchema& left, const ArrowSchema& right) {
  require(std::strcmp(left.format, right.format) == 0, "formats agree");
  require(left.n_children == right.n_children, "numbers of children agree");
  read_format(left.format);
  for (std::int64_t i = 0; i < left.n_children; ++i) compare(*left.children[i], *right.children[i]);
  require((left.dictionary == nullptr) == (right.dictionary == nullptr), "dictionaries agree");
  if (left.dictionary != nullptr) compare(*left.dictionary, *right.dictionary);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Tree tree(Input(data, size));
  const ArrowSchema original = *tree.root();
  if (original.format != nullptr) read_format(original.format);
  auto shared = fletching::share(fletching::Schema(tree.root()));
  if (!shared) return 0;
  auto view = shared->view();
  if (!view) {
    require(!view.error().message().empty(), "an error has words");
    return 0;
  }
  compare(original, **view);
  if (original.n_children > 0) {
    // A child that was moved out must outlive the rest.
    const fletching::Schema child((*view)->children[0]);
    view->release();
    compare(*original.children[0], *child.get());
  }
  return 0;
}
