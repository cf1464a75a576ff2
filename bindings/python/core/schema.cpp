// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <utility>

#include "capsule.hpp"
#include "core.hpp"
#include "fletching/detail/ownership/tree.hpp"

namespace fletching::python {
namespace {

const ArrowSchema& raw(const PySchema& self) { return *(**self.shared).get(); }

nb::str text(std::string_view bytes) { return to_str(bytes, "surrogateescape"); }

nb::dict metadata(const PySchema& self) {
  return to_dictionary(unwrap((**self.shared).metadata()));
}

PySchema child(const PySchema& self, int64_t index) {
  Schema view = unwrap(self.shared->column(index));
  return PySchema{Foreign(unwrap(share(std::move(view))))};
}

nb::list children(const PySchema& self) {
  nb::list found = empty<nb::list>();
  for (int64_t i = 0; i < raw(self).n_children; ++i) found.append(nb::cast(child(self, i)));
  return found;
}

nb::object dictionary(const PySchema& self) {
  if (raw(self).dictionary == nullptr) return nb::none();
  Schema view = unwrap(self.shared->view());
  Schema values = unwrap(view.take_dictionary());
  return nb::cast(PySchema{Foreign(unwrap(share(std::move(values))))});
}

nb::str shown(const PySchema& self) {
  const std::string_view name = (**self.shared).name();
  std::string text("<fletching.Schema ");
  if (!name.empty()) text.append(name).append(": ");
  text.append(type_text(raw(self)));
  if ((raw(self).flags & ARROW_FLAG_NULLABLE) == 0) text.append(", not nullable");
  return to_str(text.append(">"));
}

constinit Name kMethod("__arrow_c_schema__");

PySchema from_arrow(nb::handle object) {
  std::optional<PySchema> schema = import_schema(object);
  if (!schema) raise_without("Schema", "schema", kMethod.text(), object);
  return *std::move(schema);
}

[[noreturn]] void raise_lookup(PyObject* type, const std::string& what) {
  PyErr_SetObject(type, to_str("Schema: " + what).ptr());
  throw nb::python_error();
}

/// Returns a field by index or name. An IndexError ends an iteration by index.
PySchema field(const PySchema& self, nb::handle which) {
  const int64_t index = find_column(raw(self), which);
  if (index >= 0) return child(self, index);
  const bool is_index = PyIndex_Check(which.ptr()) != 0;
  raise_lookup(is_index ? PyExc_IndexError : PyExc_KeyError,
               "no such field: expected one of " + std::to_string(raw(self).n_children) +
                   " fields, got " + to_utf8(nb::str(which)));
}

}  // namespace

PySchema to_schema(nb::handle object) {
  if (nb::isinstance<PySchema>(object)) {
    return PySchema{Foreign(SharedSchema(*nb::cast<const PySchema&>(object).shared))};
  }
  return from_arrow(object);
}

Status check_schema(const ArrowSchema& schema, const char* method) noexcept {
  return detail::guarded([&] {
    const std::string operation = std::string(method) + ": ArrowSchema";
    return detail::walk(operation.c_str(), &schema, [](const ArrowSchema& node) -> const char* {
      if (node.release == nullptr) return "is released or moved out";
      return node.format == nullptr ? "has format NULL: expected a format string" : nullptr;
    });
  });
}

Result<SharedSchema> share_checked(Schema&& schema, const char* method) noexcept {
  Status checked = check_schema(*schema, method);
  if (!checked) return std::move(checked).error();
  return share(std::move(schema));
}

std::optional<PySchema> import_schema(nb::handle object) {
  const nb::object capsule = call_protocol(object, kMethod);
  if (!capsule.is_valid()) return std::nullopt;
  auto* raw = look_into<ArrowSchema>(capsule, kMethod);
  unwrap(check_schema(*raw, kMethod));
  return PySchema{Foreign(unwrap(share(Schema(raw))))};
}

nb::dict to_dictionary(const MetadataView& metadata) {
  nb::dict found = empty<nb::dict>();
  for (const KeyValue& pair : metadata) {
    found[nb::bytes(pair.key.data(), pair.key.size())] =
        nb::bytes(pair.value.data(), pair.value.size());
  }
  return found;
}

int64_t find_column(const ArrowSchema& schema, nb::handle column) {
  const int64_t count = schema.children == nullptr ? 0 : schema.n_children;
  if (PyIndex_Check(column.ptr()) != 0) {
    const nb::object number = nb::steal(PyNumber_Index(column.ptr()));
    if (!number.is_valid()) throw nb::python_error();
    int overflow = 0;
    const int64_t index = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
    if (overflow != 0 || index < -count || index >= count) return -1;
    return index < 0 ? index + count : index;
  }
  std::string_view name;
  if (!nb::try_cast(column, name)) {
    raise_type_error("column: expected an index or a name, got " + name_of_type(column.type()));
  }
  for (int64_t i = 0; i < count; ++i) {
    const ArrowSchema* field = schema.children[i];
    if (field != nullptr && field->name != nullptr && name == field->name) return i;
  }
  return -1;
}

int64_t column_index(const ArrowSchema& schema, nb::handle column) {
  const int64_t index = find_column(schema, column);
  if (index >= 0) return index;
  const std::string got = to_utf8(nb::str(column));
  if (PyIndex_Check(column.ptr()) == 0) raise(Error(EINVAL, "column: no such name: got " + got));
  raise(Error(EINVAL, "column: no such index: expected one of " +
                          std::to_string(schema.n_children) + " columns, got " + got));
}

void bind_schema(nb::module_& module) {
  nb::class_<PySchema>(
      module, "Schema", nb::is_final(), nb::type_slots(no_constructor),
      "The type of an array, or the schema of a record batch.\n"
      "\n"
      "Owns an ArrowSchema and shares it with its children and exports, each of which keeps it\n"
      "alive. Immutable; any thread may use it. Arrow C data interface, \"The ArrowSchema\n"
      "structure\".")
      .def_static("from_arrow", &from_arrow, nb::arg("object").none(),
                  nb::sig("def from_arrow(object: object) -> Schema"),
                  "Imports the schema of an object that has __arrow_c_schema__, and consumes\n"
                  "its capsule. Raises TypeError for other objects and capsules, and Error for\n"
                  "a consumed capsule.")
      .def_prop_ro(
          "format", [](const PySchema& self) { return text((**self.shared).format()); },
          "The format string. Bytes that are not UTF-8 become surrogates.")
      .def_prop_ro(
          "name", [](const PySchema& self) { return text((**self.shared).name()); },
          "The name of the field; empty if it has none.")
      .def_prop_ro(
          "flags", [](const PySchema& self) { return raw(self).flags; },
          "The ARROW_FLAG_ values of fletching.abi, combined into one number.")
      .def_prop_ro(
          "nullable",
          [](const PySchema& self) { return (raw(self).flags & ARROW_FLAG_NULLABLE) != 0; },
          "Whether values may be null.")
      .def_prop_ro("metadata", &metadata,
                   "The metadata, with keys and values as bytes. If a key is repeated, its last\n"
                   "value is returned. Raises Error for a malformed block.",
                   nb::sig("def metadata(self) -> dict[bytes, bytes]"))
      .def_prop_ro("children", &children, "The schemas of the fields, or of the values of a list.",
                   nb::sig("def children(self) -> list[Schema]"))
      .def_prop_ro("dictionary", &dictionary,
                   "The schema of the dictionary's values; None for other types.",
                   nb::sig("def dictionary(self) -> Schema | None"))
      .def_prop_ro(
          "type", [](const PySchema& self) { return to_str(type_text(raw(self))); },
          "The type in words, such as 'list<int32>'; 'unknown(x)' for an unknown format.")
      .def("__repr__", &shown)
      .def(
          "__len__", [](const PySchema& self) { return raw(self).n_children; },
          "The number of fields.")
      .def("__getitem__", &field, nb::arg("field"),
           nb::sig("def __getitem__(self, field: int | str) -> Schema"),
           "Returns a field by name or index; a negative index counts from the end. Raises\n"
           "KeyError or IndexError if there is no such field.")
      .def(
          "__contains__",
          [](const PySchema& self, nb::handle name) {
            return PyUnicode_Check(name.ptr()) && find_column(raw(self), name) >= 0;
          },
          nb::arg("name").none(), nb::sig("def __contains__(self, name: object) -> bool"),
          "Whether a field has this name.")
      .def(
          "__arrow_c_schema__",
          [](const PySchema& self) { return to_capsule(unwrap(self.shared->view())); },
          "Returns an arrow_schema capsule, which owns a share of the schema. Arrow PyCapsule\n"
          "interface.",
          nb::sig("def __arrow_c_schema__(self) -> typing_extensions.CapsuleType"));
}

}  // namespace fletching::python
