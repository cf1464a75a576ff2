// SPDX-License-Identifier: Apache-2.0
//
// Schemas from their parts, and arrays from buffers and children.
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "array_common.hpp"
#include "buffer_view.hpp"
#include "fletching/array_builder.hpp"
#include "fletching/check_array.hpp"
#include "fletching/detail/array_shape.hpp"
#include "fletching/detail/type_difference.hpp"
#include "fletching/schema_builder.hpp"
#include "fletching/stream_adapters.hpp"
#include "required_values.hpp"

namespace fletching::python {
namespace {

// --- Schemas ---

/// The texts of the node are the schema's.
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
  // Owns the memory behind the texts and nodes.
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

// The offsets of an array without values, of 32 or 64 bits.
constexpr int64_t kNoOffsets = 0;

struct Parts {
  std::vector<BufferView> buffers;
  std::vector<Array> arrays;        // children, and the dictionary
  std::vector<int64_t> variadic{};  // sizes of the buffers of a view type, which are its last one
};

/// Checks the sizes of buffers, and reads the offsets that they depend on.
class Buffers {
 public:
  Buffers(const Format& format, int64_t offset, int64_t values, nb::iterable given, Parts& parts)
      : format_(format), offset_(offset), values_(values) {
    for (const nb::handle buffer : given) {
      if (buffer.is_none()) {
        sizes_.push_back(-1);
        addresses_.push_back(nullptr);
        continue;
      }
      parts.buffers.emplace_back(buffer);
      sizes_.push_back(parts.buffers.back()->len);
      addresses_.push_back(parts.buffers.back()->buf);
    }
    const auto expected = static_cast<size_t>(format.n_buffers);
    if (format.is_view() ? sizes_.size() < expected : sizes_.size() != expected) {
      refuse("expected " + std::string(format.is_view() ? "at least " : "") +
             std::to_string(expected) + " buffers, got " + std::to_string(sizes_.size()));
    }
    for (size_t i = 0; i < expected; ++i) check(i);
    if (!format.is_view()) return;
    for (int64_t i = offset; i < values; ++i) check_view(i);
    for (size_t i = expected; i < sizes_.size(); ++i) parts.variadic.push_back(size_of(i));
    addresses_.push_back(parts.variadic.empty() ? &kNoOffsets : parts.variadic.data());
  }

  [[nodiscard]] std::span<const void* const> addresses() const { return addresses_; }
  [[nodiscard]] int64_t count_nulls() const {
    return python::count_nulls(validity(), offset_, values_ - offset_);
  }
  /// How many bytes or children the offsets refer to.
  [[nodiscard]] int64_t last_offset() const {
    int64_t last = 0, before = 0;
    for (int64_t i = 0; i <= values_; ++i) {
      last = number(1, i);
      if (last < before)
        refuse("buffer 1: offset " + std::to_string(i) + " is smaller than before");
      before = last;
    }
    return last;
  }
  /// How many children the views of lists refer to.
  [[nodiscard]] int64_t end_of_lists() const {
    int64_t end = 0;
    for (int64_t i = offset_; i < values_; ++i) {
      if (is_null(i)) continue;
      const int64_t from = number(1, i), size = number(2, i);
      if (from < 0 || size < 0 || from > INT64_MAX - size)
        refuse("buffers 1 and 2: list " + std::to_string(i) + " is negative or too large");
      end = (std::max)(end, from + size);
    }
    return end;
  }

 private:
  [[noreturn]] static void refuse(const std::string& what) {
    raise(Error(EINVAL, "from_buffers: " + what));
  }
  [[nodiscard]] const void* validity() const {
    const bool has_bits = !addresses_.empty() && detail::buffer_width(format_, 0).is_validity;
    return has_bits ? addresses_[0] : nullptr;
  }
  [[nodiscard]] bool is_null(int64_t index) const {
    return python::count_nulls(validity(), index, 1) != 0;
  }
  [[nodiscard]] int64_t size_of(size_t buffer) const {
    return (std::max)(sizes_[buffer], int64_t{0});
  }

  template <class Number>
  [[nodiscard]] Number read(size_t buffer, int64_t at) const {
    Number read = 0;
    std::memcpy(&read, static_cast<const char*>(addresses_[buffer]) + at, sizeof read);
    return read;
  }
  /// An offset or a size of 32 or 64 bits.
  [[nodiscard]] int64_t number(size_t buffer, int64_t index) const {
    const bool is_narrow = detail::buffer_width(format_, 1).bits == 32;
    return is_narrow ? read<int32_t>(buffer, index * 4) : read<int64_t>(buffer, index * 8);
  }

  void check(size_t index) {
    const detail::BufferWidth width = detail::buffer_width(format_, static_cast<int64_t>(index));
    if (addresses_[index] == nullptr && width.is_validity) return;
    const bool has_offsets = width.extra_values > 0;
    if (addresses_[index] == nullptr && has_offsets && values_ == 0) {
      addresses_[index] = &kNoOffsets;
      return;
    }
    int64_t needed = 0;
    if (index == 2 && width.bits == 0) {
      needed = last_offset();
    } else {
      const detail::Size bits =
          detail::multiply(detail::add(values_, has_offsets ? width.extra_values : 0), width.bits);
      if (!bits || *bits > INT64_MAX - 7) refuse("length: too large");
      needed = (*bits + 7) / 8;
    }
    if (sizes_[index] >= needed || (addresses_[index] == nullptr && needed == 0)) return;
    const std::string got = sizes_[index] < 0 ? std::string("None") : std::to_string(sizes_[index]);
    refuse("buffer " + std::to_string(index) + ": too small: expected at least " +
           std::to_string(needed) + " bytes, got " + got);
  }

  /// A view of text: its size, and of a long one four bytes, the number of the buffer and the place
  /// in it.
  void check_view(int64_t index) {
    constexpr int32_t kInView = 12;
    if (is_null(index)) return;
    const auto size = read<int32_t>(1, index * 16);
    const auto buffer = read<int32_t>(1, index * 16 + 8), from = read<int32_t>(1, index * 16 + 12);
    if (size >= 0 && size <= kInView) return;
    const int64_t variadic = static_cast<int64_t>(sizes_.size()) - format_.n_buffers;
    if (size >= 0 && buffer >= 0 && buffer < variadic && from >= 0 &&
        int64_t{from} + size <= size_of(static_cast<size_t>(format_.n_buffers + buffer))) {
      return;
    }
    refuse("buffer 1: view " + std::to_string(index) + " is outside of the buffers: got " +
           std::to_string(size) + " bytes at " + std::to_string(from) + " of buffer " +
           std::to_string(buffer) + " after it");
  }

  const Format& format_;
  const int64_t offset_;
  const int64_t values_;  // offset + length
  std::vector<int64_t> sizes_;
  std::vector<const void*> addresses_;
};

void count_structs(const ArrowArray& array, ArrayCapacity& capacity) {
  ++capacity.arrays;
  capacity.buffers += array.n_buffers;
  for (const ArrowArray* child : detail::children_of(array)) count_structs(*child, capacity);
  if (array.dictionary != nullptr) count_structs(*array.dictionary, capacity);
}

/// Adds what is below a child. Its structs and buffers are those of an array that the object of the
/// builder owns.
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

/// An imported child, whose type is the one of the schema.
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

/// How many values of child 0 the buffers refer to; 0 where they do not say.
int64_t needed_values(TypeId type, const Buffers& buffers) {
  switch (type) {
    case TypeId::kList:
    case TypeId::kLargeList:
    case TypeId::kMap:
      return buffers.last_offset();
    case TypeId::kListView:
    case TypeId::kLargeListView:
      return buffers.end_of_lists();
    default:
      return 0;
  }
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
  if (const int64_t needed = needed_values(format.id, checked);
      needed > 0 && parts.arrays[0]->length < needed) {
    raise(Error(EINVAL, "from_buffers: child 0: too short: expected at least " +
                            std::to_string(needed) + " values, got " +
                            std::to_string(parts.arrays[0]->length)));
  }
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
      "A schema of a format string of the C data interface, such as 'i', 'u' or '+s'. "
      "`dictionary`\n"
      "is the type of the values, where `format` is the one of the indices. Error for a text with\n"
      "a NUL in it, and for the children that maps, run ends and dictionaries cannot have.");
  module.def(
      "from_buffers", &from_buffers, nb::arg("schema"), nb::arg("length"), nb::arg("buffers"),
      nb::kw_only(), nb::arg("children") = nb::make_tuple(), nb::arg("dictionary") = nb::none(),
      nb::arg("offset") = 0,
      nb::sig("def from_buffers(schema: _HasSchema, length: int, buffers: "
              "collections.abc.Iterable[object], *, children: collections.abc.Iterable[object] = "
              "(), dictionary: object = None, offset: int = 0) -> Array"),
      "An array of `schema` over memory of objects that have the buffer protocol, None for a\n"
      "buffer that is not there: validity as bits, then offsets and values as Arrow has them. Of\n"
      "views the buffers of long texts follow; the list of their sizes is made.\n"
      "Nothing is copied: do not change the values while the array or an export of it is used.\n"
      "`children` and `dictionary` are arrays of any library. Error for a buffer that is too\n"
      "small, for offsets that decrease and for children of another type or number.");
}

}  // namespace fletching::python
