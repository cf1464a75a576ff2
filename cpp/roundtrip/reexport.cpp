#include "reexport.hpp"

#include <atomic>
#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "check.hpp"
#include "owned.hpp"
#include "text.hpp"

namespace fletching::roundtrip {
namespace {

std::atomic<std::int64_t> g_exported{0};
std::atomic<std::int64_t> g_released{0};

/// The private data of one struct of ours. Memory is allocated first (plan), then everything is
/// moved in without a way to fail (adopt). `Struct`: ArrowSchema or ArrowArray.
template <typename Struct>
struct Node {
  Struct source{};               // moved in; its children are in nodes of their own
  std::vector<Struct> children;  // ours, as the consumer sees them
  std::vector<Struct*> child_pointers;
  Struct dictionary{};

  std::vector<std::unique_ptr<Node>> child_nodes;  // only until adopt
  std::unique_ptr<Node> dictionary_node;
};

/// `source` has been checked.
template <typename Struct>
std::unique_ptr<Node<Struct>> plan(const Struct& source) {
  auto node = std::make_unique<Node<Struct>>();
  node->children.resize(static_cast<std::size_t>(source.n_children));
  for (std::size_t i = 0; i < node->children.size(); ++i) {
    node->child_pointers.push_back(&node->children[i]);
    node->child_nodes.push_back(plan(*source.children[i]));
  }
  if (source.dictionary != nullptr) node->dictionary_node = plan(*source.dictionary);
  return node;
}

template <typename Struct>
void release_node(Struct* self) noexcept {
  const std::unique_ptr<Node<Struct>> node(static_cast<Node<Struct>*>(self->private_data));
  for (Struct& child : node->children) release(child);
  release(node->dictionary);
  release(node->source);
  self->release = nullptr;
  ++g_released;
}

template <typename Struct>
void adopt(std::unique_ptr<Node<Struct>> node, Struct& source, Struct& out) noexcept {
  out = source;
  if (source.n_children > 0) out.children = node->child_pointers.data();
  if (source.dictionary != nullptr) out.dictionary = &node->dictionary;
  for (std::size_t i = 0; i < node->children.size(); ++i) {
    adopt(std::move(node->child_nodes[i]), *source.children[i], node->children[i]);
  }
  if (source.dictionary != nullptr) {
    adopt(std::move(node->dictionary_node), *source.dictionary, node->dictionary);
  }
  node->source = moved_from(source);
  out.release = release_node<Struct>;
  out.private_data = node.release();
  ++g_exported;
}

void adopt(std::unique_ptr<Node<ArrowArray>> node, ArrowDeviceArray& source,
           ArrowDeviceArray& out) noexcept {
  out = source;
  std::memset(out.reserved, 0, sizeof(out.reserved));
  adopt(std::move(node), source.array, out.array);
}

}  // namespace

std::int64_t exported_count() noexcept { return g_exported; }
std::int64_t released_count() noexcept { return g_released; }

void reexport(ArrowSchema& source, ArrowSchema& out) {
  check(source);
  adopt(plan(source), source, out);
}

void reexport(const ArrowSchema& schema, ArrowDeviceArray& source, ArrowDeviceArray& out) {
  check(schema, source.array);
  adopt(plan(source.array), source, out);
}

void reexport(ArrowSchema& schema, ArrowDeviceArray& array, ArrowSchema& out_schema,
              ArrowDeviceArray& out_array) {
  check(schema, array.array);
  auto schema_node = plan(schema);
  auto array_node = plan(array.array);
  adopt(std::move(schema_node), schema, out_schema);
  adopt(std::move(array_node), array, out_array);
}

}  // namespace fletching::roundtrip
