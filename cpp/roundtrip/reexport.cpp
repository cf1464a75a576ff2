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

// --- Schemas and arrays

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

// --- Streams

struct StreamState {
  Owned<ArrowDeviceArrayStream> source;
  Owned<ArrowSchema> schema;
  BatchObserver observe;
  std::string last_error;
};

StreamState& state_of(const ArrowDeviceArrayStream* stream) {
  return *static_cast<StreamState*>(stream->private_data);
}

/// Calls one of the source's callbacks and throws what it failed with. What a failed call left in
/// `out` has no owner.
template <typename Struct>
void pull(ArrowDeviceArrayStream& source, int (*callback)(ArrowDeviceArrayStream*, Struct*),
          Struct& out) {
  const int code = callback(&source, &out);
  if (code == 0) return;
  out = Struct{};
  fail(code, printable(source.get_last_error(&source)));
}

int get_schema(ArrowDeviceArrayStream* self, ArrowSchema* out) noexcept {
  StreamState& state = state_of(self);
  return guarded(state.last_error, [&] {
    if (out == nullptr) fail(EINVAL, "get_schema: out is NULL");
    Owned<ArrowSchema> schema;
    pull(state.source.value, state.source.value.get_schema, schema.value);
    reexport(schema.value, *out);
  });
}

int get_next(ArrowDeviceArrayStream* self, ArrowDeviceArray* out) noexcept {
  StreamState& state = state_of(self);
  return guarded(state.last_error, [&] {
    if (out == nullptr) fail(EINVAL, "get_next: out is NULL");
    Owned<ArrowDeviceArray> batch;
    pull(state.source.value, state.source.value.get_next, batch.value);
    if (is_released(batch.value)) {
      *out = ArrowDeviceArray{};  // the end
      return;
    }
    state.observe(state.schema.value, batch.value);
    reexport(state.schema.value, batch.value, *out);
  });
}

const char* get_last_error(ArrowDeviceArrayStream* self) noexcept {
  const StreamState& state = state_of(self);
  return state.last_error.empty() ? nullptr : state.last_error.c_str();
}

void release_stream(ArrowDeviceArrayStream* self) noexcept {
  const std::unique_ptr<StreamState> state(&state_of(self));
  self->release = nullptr;
  ++g_released;
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

void reexport(ArrowDeviceArrayStream& source, BatchObserver observe, ArrowDeviceArrayStream& out) {
  check(source);
  auto state = std::make_unique<StreamState>();
  pull(source, source.get_schema, state->schema.value);
  check(state->schema.value);
  state->observe = std::move(observe);
  out = source;
  out.get_schema = get_schema;
  out.get_next = get_next;
  out.get_last_error = get_last_error;
  out.release = release_stream;
  state->source.value = moved_from(source);
  out.private_data = state.release();
  ++g_exported;
}

}  // namespace fletching::roundtrip
