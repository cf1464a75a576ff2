#include "export.hpp"

#include "dump.hpp"
#include "registry.hpp"

namespace fletching::producer {
namespace {

template <class Struct>
void release_alive(Struct& exported) {
  if (exported.release != nullptr) exported.release(&exported);
}

// The structs below one struct. Their memory is freed with the parent; a child that was moved out
// has release NULL here and lives on in its own state.
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
  SchemaState(const Node& node, std::string_view path)
      : dump(path),
        format(node.format),
        name(node.name),
        metadata(encode_metadata(node)),
        family(node.children.size()) {}

  Dump dump;
  std::string format;
  std::string name;
  std::string metadata;
  Family<ArrowSchema> family;
};

struct ArrayState {
  ArrayState(const Node& node, std::string_view path, const std::shared_ptr<Work>& work)
      : dump(path), memory(Memory::make(work)), family(node.children.size()) {}

  Dump dump;
  std::shared_ptr<Memory> memory;
  std::vector<const void*> buffers;
  Family<ArrowArray> family;
};

// Only the number in private_data is trusted: the rest of a struct released twice may point to
// freed memory.
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

void add_lines(const Node& node, SchemaState& state) {
  state.dump.bytes("format", state.format);
  state.dump.bytes("name", state.name);
  state.dump.bytes("metadata", state.metadata);
  state.dump.number("flags", node.flags);
  state.dump.number("n_children", static_cast<int64_t>(node.children.size()));
}

void add_lines(const Node& node, ArrayState& state) {
  state.dump.number("length", node.length);
  state.dump.number("null_count", node.null_count);
  state.dump.number("offset", node.offset);
  state.dump.number("n_buffers", static_cast<int64_t>(node.buffers.size()));
  state.dump.number("n_children", static_cast<int64_t>(node.children.size()));
  for (size_t i = 0; i < state.buffers.size(); ++i) {
    state.dump.address(element("buffers", i), state.buffers[i]);
  }
}

Dump device_lines(const Backend& backend, const void* sync_event) {
  Dump dump("");
  dump.number("device_id", backend.device_id());
  dump.number("device_type", backend.device_type());
  dump.address("sync_event", sync_event);
  for (size_t i = 0; i < 3; ++i) dump.number(element("reserved", i), 0);
  return dump;
}

// The children and the dictionary, by `export_one`, which returns the state of each.
template <class State, class Export>
void export_below(const Node& node, State& state, Export export_one) {
  const auto add = [&](const std::string& field, const Node& below, auto* out) {
    state.dump.add(export_one(below, state.dump.path_of(field), out)->dump);
  };
  for (size_t i = 0; i < node.children.size(); ++i) {
    add(element("children", i), node.children[i], &state.family.children[i]);
  }
  if (node.dictionary) add("dictionary", *node.dictionary, &state.family.dictionary);
}

// May throw after *out is filled: then the caller releases it.
std::shared_ptr<ArrayState> export_tree(const std::shared_ptr<Work>& work, const Node& node,
                                        std::string_view path, ArrowArray* out) {
  auto state = std::make_shared<ArrayState>(node, path, work);
  add_buffers(node, *state);
  add_lines(node, *state);
  export_below(node, *state, [&](const Node& below, std::string_view path_below, ArrowArray* to) {
    return export_tree(work, below, path_below, to);
  });

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
  state->dump.address("private_data", private_data);
  return state;
}

std::shared_ptr<SchemaState> export_tree(const Node& node, std::string_view path,
                                         ArrowSchema* out) {
  auto state = std::make_shared<SchemaState>(node, path);
  add_lines(node, *state);
  export_below(node, *state, [](const Node& below, std::string_view path_below, ArrowSchema* to) {
    return export_tree(below, path_below, to);
  });

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
  state->dump.address("private_data", private_data);
  return state;
}

void export_device(const std::shared_ptr<Work>& work, const Node& node, ArrowDeviceArray* out) {
  Dump& dump = export_tree(work, node, "array", &out->array)->dump;
  out->sync_event = work->record();
  out->device_id = work->backend().device_id();
  out->device_type = work->backend().device_type();
  dump.add(device_lines(work->backend(), out->sync_event));
}

template <class State>
std::string dump_in(const std::shared_ptr<void>& state) {
  return state == nullptr ? "" : std::static_pointer_cast<State>(state)->dump.text();
}

}  // namespace

std::string dump_of(Kind kind, const void* private_data) {
  const std::shared_ptr<void> state = find(kind, private_data);
  if (kind == Kind::kSchema) return dump_in<SchemaState>(state);
  return dump_in<ArrayState>(state);
}

void export_schema(const Node& node, ArrowSchema* out) {
  try {
    export_tree(node, "schema", out);
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
