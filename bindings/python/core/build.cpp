// SPDX-License-Identifier: Apache-2.0
//
// Builds schemas from their parts, and arrays from buffers and children.
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <cerrno>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "array_common.hpp"
#include "checked_buffers.hpp"
#include "fletching/array_builder.hpp"
#include "fletching/check_array.hpp"
#include "fletching/detail/type_difference.hpp"
#include "fletching/schema_builder.hpp"
#include "fletching/stream_adapters.hpp"
#include "required_values.hpp"

namespace fletching::python {
namespace {

// --- Schemas ---

/// The node refers to the schema's strings.
SchemaNode node_of(const ArrowSchema& schema) {
  SchemaNode node{.format = schema.format, .flags = schema.flags};
  if (schema.name != nullptr) node.name = schema.name;
  for (const KeyValue& pair : unwrap(MetadataView::read(schema.metadata))) {
    node.metadata.push_back(pair);
  }
  for (const ArrowSchema* child : detail::children_of(schema)) {
    node.children.push_back(node_of(*child));
  }
  if (schema.dictionary != nullptr) node.dictionary.push_back(node_of(*schema.dictionary));
  return node;
}

PySchema build_schema(std::string_view format, std::string_view name, bool nullable,
                      nb::handle metadata, nb::iterable children, nb::handle dictionary) {
  // Owns the memory behind the strings and nodes.
  std::vector<PySchema> kept;
  std::vector<std::string> texts;
  SchemaNode node{.format = format, .name = name, .flags = nullable ? ARROW_FLAG_NULLABLE : 0};
  for (const nb::handle child : children) {
    kept.push_back(to_schema(child));
    node.children.push_back(node_of(*(**kept.back().shared).get()));
  }
  if (!dictionary.is_none()) {
    kept.push_back(to_schema(dictionary));
    node.dictionary.push_back(node_of(*(**kept.back().shared).get()));
  }
  const std::string block = metadata.is_none() ? std::string() : encode_metadata_of(metadata);
  const MetadataView pairs = unwrap(MetadataView::read(block.empty() ? nullptr : block.data()));
  for (const KeyValue& pair : pairs) node.metadata.push_back(pair);
  return PySchema{Foreign(unwrap(share(unwrap(make_schema(node)))))};
}

// --- Arrays ---

void count_structs(const ArrowArray& array, ArrayCapacity& capacity) {
  ++capacity.arrays;
  capacity.buffers += array.n_buffers;
  for (const ArrowArray* child : detail::children_of(array)) count_structs(*child, capacity);
  if (array.dictionary != nullptr) count_structs(*array.dictionary, capacity);
}

/// Adds the descendants of a child. Its structs and buffers belong to an array that the builder's
/// object owns.
template <class Builder>
void copy_struct(Builder& builder, const ArrowArray& from, ArrowArray& to) {
  const std::span<const void* const> buffers(from.buffers, static_cast<size_t>(from.n_buffers));
  builder.set(to, {from.length, from.null_count, from.offset}, buffers);
  const auto below = detail::children_of(from);
  auto added = builder.add_children(to, static_cast<int64_t>(below.size()));
  for (size_t i = 0; i < below.size(); ++i) copy_struct(builder, *below[i], added[i]);
  if (from.dictionary != nullptr) {
    copy_struct(builder, *from.dictionary, builder.add_dictionary(to));
  }
}

/// Adds an imported child, whose type must match the schema.
void add_array(Parts& parts, nb::handle object, const ArrowSchema& expected,
               const std::string& name) {
  const nb::object array = nb::type<PyArray>().attr("from_arrow")(object);
  const auto& imported = nb::cast<const PyArray&>(array);
  const std::string difference = detail::type_difference(expected, schema_of(imported));
  if (!difference.empty()) {
    raise(Error(EINVAL, "from_buffers: " + name + ": " + difference));
  }
  Array view = unwrap(imported.shared->view());
  const Status sound = verify_array(expected, *view);
  if (!sound.ok()) {
    raise(Error(EINVAL, "from_buffers: " + name + ": " + sound.error().message()));
  }
  parts.arrays.push_back(std::move(view));
}

PyArray from_buffers(nb::handle given_schema, int64_t length, nb::iterable buffers,
                     nb::iterable given_children, nb::handle dictionary, int64_t offset) {
  const PySchema py_schema = to_schema(given_schema);
  const ArrowSchema& schema = *(**py_schema.shared).get();
  const Format format = unwrap(parse_format(schema.format));
  const detail::Size values = detail::add(detail::size_of(offset), detail::size_of(length));
  if (!values) raise(Error(EINVAL, "from_buffers: offset or length: expected 0 or more"));
  Parts parts;
  const Buffers checked(format, offset, *values, buffers, parts);
  const nb::list children(given_children);
  const int64_t n_children = schema.n_children;
  if (static_cast<int64_t>(nb::len(children)) != n_children) {
    raise(Error(EINVAL, "from_buffers: expected " + std::to_string(n_children) + " children, got " +
                            std::to_string(nb::len(children))));
  }
  for (int64_t i = 0; i < n_children; ++i) {
    add_array(parts, children[static_cast<size_t>(i)], *schema.children[i],
              "child " + std::to_string(i));
  }
  if ((schema.dictionary != nullptr) == dictionary.is_none()) {
    raise(Error(EINVAL, std::string("from_buffers: dictionary: expected ") +
                            (dictionary.is_none() ? "an array" : "None, as in the schema")));
  }
  if (schema.dictionary != nullptr) add_array(parts, dictionary, *schema.dictionary, "dictionary");
  checked.check_children(schema, parts.arrays);
  std::vector<PyObject*> owners;
  for (const BufferView& view : parts.buffers) owners.push_back(view->obj);
  const int64_t nulls = checked.count_nulls();
  ArrayCapacity capacity{.buffers = static_cast<int64_t>(checked.addresses().size())};
  for (const Array& array : parts.arrays) count_structs(*array.get(), capacity);
  auto builder = unwrap(build_array(capacity, std::move(parts)));
  builder.set(builder.root(), {length, format.id == TypeId::kNull ? length : nulls, offset},
              checked.addresses());
  const std::vector<Array>& arrays = builder.object().arrays;
  auto added = builder.add_children(builder.root(), n_children);
  for (int64_t i = 0; i < n_children; ++i) {
    copy_struct(builder, *arrays[static_cast<size_t>(i)].get(), added[static_cast<size_t>(i)]);
  }
  if (schema.dictionary != nullptr) {
    copy_struct(builder, *arrays.back().get(), builder.add_dictionary(builder.root()));
  }
  Array array = unwrap(builder.finish());
  unwrap(verify_array(schema, *array));
  refuse_hidden_nulls("from_buffers", schema, *array);
  if (format.id == TypeId::kRunEndEncoded) check_run_ends(schema, *array);
  auto made = make_object<PyArray>(unwrap(py_schema.shared->view()), std::move(array));
  made.owners = std::make_shared<const std::vector<PyObject*>>(std::move(owners));
  return made;
}

}  // namespace

void bind_build(nb::module_& module) {
  module.def(
      "make_schema", &build_schema, nb::arg("format"), nb::arg("name") = "", nb::kw_only(),
      nb::arg("nullable") = true, nb::arg("metadata") = nb::none(),
      nb::arg("children") = nb::make_tuple(), nb::arg("dictionary") = nb::none(),
      nb::sig("def make_schema(format: str, name: str = \"\", *, nullable: bool = True, metadata: "
              "collections.abc.Mapping[str, str | bytes] | collections.abc.Mapping[bytes, str | "
              "bytes] | None = None, children: collections.abc.Iterable[_HasSchema] = (), "
              "dictionary: _HasSchema | None = None) -> Schema"),
      "Makes a schema from a format string of the C data interface, such as 'i', 'u' or '+s'.\n"
      "With `dictionary`, the type of the values, `format` is the indices' format. Raises Error\n"
      "for a string that contains a NUL, and for maps, run ends and dictionaries with wrong\n"
      "children.");
  module.def(
      "from_buffers", &from_buffers, nb::arg("schema"), nb::arg("length"), nb::arg("buffers"),
      nb::kw_only(), nb::arg("children") = nb::make_tuple(), nb::arg("dictionary") = nb::none(),
      nb::arg("offset") = 0,
      nb::sig("def from_buffers(schema: _HasSchema, length: int, buffers: "
              "collections.abc.Iterable[object], *, children: collections.abc.Iterable[object] = "
              "(), dictionary: object = None, offset: int = 0) -> Array"),
      "Makes an array of `schema` over the memory of objects that have the buffer protocol, or\n"
      "None for a missing buffer. The buffers are in Arrow's order: validity bits, then offsets\n"
      "and values; for views, then the variadic buffers, without the buffer of their sizes,\n"
      "which is added. Does not copy: do not change the values while the array or an export of\n"
      "it is used. `children` and `dictionary` are arrays of any library. Raises Error for a\n"
      "buffer that is too small, for offsets, views, type ids, run ends and indices that are\n"
      "out of range, for views that do not match their text, and for children of another type\n"
      "or number.");
}

}  // namespace fletching::python
