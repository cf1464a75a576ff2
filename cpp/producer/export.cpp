#include "export.hpp"

#include "registry.hpp"

namespace fletching::producer {
namespace {

template <class Struct>
void release_alive(Struct& exported) {
  if (exported.release != nullptr) exported.release(&exported);
}

// The child structs of one struct. Their memory is freed with the parent. A child that was moved
// out has release NULL here and lives on in its own state.
template <class Struct>
struct Family {
  explicit Family(size_t size) : children(size), dictionary() {
    for (Struct& child : children) pointers.push_back(&child);
  }
  Family(const Family&) = delete;
  Family& operator=(const Family&) = delete;
  ~Family() {
    for (Struct& child : children) release_alive(child);
    release_alive(dictionary);
  }

  std::vector<Struct> children;
  std::vector<Struct*> pointers;
  Struct dictionary;
};

struct SchemaState {
  explicit SchemaState(const Node& node)
      : format(node.format),
        name(node.name),
        metadata(encode_metadata(node)),
        family(node.children.size()) {}

  std::string format;
  std::string name;
  std::string metadata;
  Family<ArrowSchema> family;
};

struct ArrayState {
  ArrayState(const Node& node, const std::shared_ptr<Work>& work)
      : memory(Memory::make(work)), family(node.children.size()) {}

  std::shared_ptr<Memory> memory;
  std::vector<const void*> buffers;
  Family<ArrowArray> family;
};

// Only the number in private_data is trusted: the other fields of a struct that is released twice
// may point to freed memory.
void release_schema(ArrowSchema* self) noexcept {
  if (self == nullptr) return;
  self->release = nullptr;
  unregister_struct(Kind::kSchema, self->private_data);
}

void release_array(ArrowArray* self) noexcept {
  if (self == nullptr) return;
  self->release = nullptr;
  unregister_struct(Kind::kArray, self->private_data);
}

void add_buffers(const Node& node, ArrayState& state) {
  for (size_t i = 0; i < node.buffers.size(); ++i) {
    const std::optional<Bytes>& bytes = node.buffers[i];
    const void* buffer = nullptr;
    if (bytes) {
      buffer = is_in_host_memory(node, i) ? state.memory->add_on_host(*bytes)
                                          : state.memory->add(*bytes);
    }
    state.buffers.push_back(buffer);
  }
}

// May throw after *out is filled; the caller must release it then.
void export_tree(const std::shared_ptr<Work>& work, const Node& node, ArrowArray* out) {
  auto state = std::make_shared<ArrayState>(node, work);
  add_buffers(node, *state);
  for (size_t i = 0; i < node.children.size(); ++i) {
    export_tree(work, node.children[i], &state->family.children[i]);
  }
  if (node.dictionary) export_tree(work, *node.dictionary, &state->family.dictionary);

  void* private_data = register_struct(Kind::kArray, state);
  out->length = node.length;
  out->null_count = node.null_count;
  out->offset = node.offset;
  out->n_buffers = static_cast<int64_t>(node.buffers.size());
  out->n_children = static_cast<int64_t>(node.children.size());
  out->buffers = state->buffers.empty() ? nullptr : state->buffers.data();
  out->children = node.children.empty() ? nullptr : state->family.pointers.data();
  out->dictionary = node.dictionary ? &state->family.dictionary : nullptr;
  out->release = release_array;
  out->private_data = private_data;
}

void export_tree(const Node& node, ArrowSchema* out) {
  auto state = std::make_shared<SchemaState>(node);
  for (size_t i = 0; i < node.children.size(); ++i) {
    export_tree(node.children[i], &state->family.children[i]);
  }
  if (node.dictionary) export_tree(*node.dictionary, &state->family.dictionary);

  void* private_data = register_struct(Kind::kSchema, state);
  out->format = state->format.c_str();
  out->name = state->name.empty() ? nullptr : state->name.c_str();
  out->metadata = state->metadata.empty() ? nullptr : state->metadata.data();
  out->flags = node.flags;
  out->n_children = static_cast<int64_t>(node.children.size());
  out->children = node.children.empty() ? nullptr : state->family.pointers.data();
  out->dictionary = node.dictionary ? &state->family.dictionary : nullptr;
  out->release = release_schema;
  out->private_data = private_data;
}

void export_device(const std::shared_ptr<Work>& work, const Node& node, ArrowDeviceArray* out) {
  export_tree(work, node, &out->array);
  out->sync_event = work->record();
  out->device_id = work->backend().device_id();
  out->device_type = work->backend().device_type();
}

}  // namespace

void export_schema(const Node& node, ArrowSchema* out) {
  try {
    export_tree(node, out);
  } catch (...) {
    release_alive(*out);
    zero(out);
    throw;
  }
}

void export_array(std::shared_ptr<Filler> filler, const Node& node, ArrowDeviceArray* out) {
  try {
    export_device(std::make_shared<Work>(std::move(filler)), node, out);
  } catch (...) {
    release_alive(out->array);
    zero(out);
    throw;
  }
}

void export_case(std::shared_ptr<Filler> filler, const Case& what, ArrowSchema* schema,
                 ArrowDeviceArray* array) {
  export_schema(what.node, schema);
  try {
    export_array(std::move(filler), what.node, array);
  } catch (...) {
    schema->release(schema);
    zero(schema);
    throw;
  }
}

}  // namespace fletching::producer
