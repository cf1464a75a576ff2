// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <utility>

#include "capsule.hpp"
#include "core.hpp"
#include "fletching/detail/tree.hpp"

namespace fletching::python {
namespace {

const ArrowSchema& raw(const PySchema& self) { return *(**self.shared).get(); }

nb::str text(std::string_view bytes) { return to_str(bytes, "surrogateescape"); }

nb::dict metadata(const PySchema& self) {
  nb::dict found;
  for (const KeyValue& pair : unwrap((**self.shared).metadata())) {
    found[nb::bytes(pair.key.data(), pair.key.size())] =
        nb::bytes(pair.value.data(), pair.value.size());
  }
  return found;
}

PySchema child(const PySchema& self, int64_t index) {
  Schema view = unwrap(self.shared->column(index));
  return PySchema{Foreign(unwrap(share(std::move(view))))};
}

nb::list children(const PySchema& self) {
  nb::list found;
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
  if (!schema) raise_type_error(std::string("Schema: object without ") + kMethod.text());
  return *std::move(schema);
}

}  // namespace

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
  Status checked = check_schema(*schema.get(), method);
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

int64_t column_index(const ArrowSchema& schema, nb::handle column) {
  const int64_t count = schema.children == nullptr ? 0 : schema.n_children;
  if (PyLong_Check(column.ptr())) {
    const auto index = nb::cast<int64_t>(column);
    return index < 0 ? index + count : index;
  }
  const auto name = nb::cast<std::string_view>(column);
  for (int64_t i = 0; i < count; ++i) {
    const ArrowSchema* field = schema.children[i];
    if (field != nullptr && field->name != nullptr && name == field->name) return i;
  }
  raise(Error(EINVAL, "column: no such name: got " + std::string(name)));
}

void bind_schema(nb::module_& module) {
  nb::class_<PySchema>(module, "Schema", "The type of an array, or the schema of a record batch.")
      .def_static("from_arrow", &from_arrow, nb::arg("object"),
                  "The schema of an object that has __arrow_c_schema__.")
      .def_prop_ro(
          "format", [](const PySchema& self) { return text((**self.shared).format()); },
          "The format string.")
      .def_prop_ro("name", [](const PySchema& self) { return text((**self.shared).name()); })
      .def_prop_ro("flags", [](const PySchema& self) { return raw(self).flags; })
      .def_prop_ro(
          "nullable",
          [](const PySchema& self) { return (raw(self).flags & ARROW_FLAG_NULLABLE) != 0; })
      .def_prop_ro("metadata", &metadata, "Keys and values, as bytes.",
                   nb::sig("def metadata(self) -> dict[bytes, bytes]"))
      .def_prop_ro("children", &children, nb::sig("def children(self) -> list[Schema]"))
      .def_prop_ro("dictionary", &dictionary, nb::sig("def dictionary(self) -> Schema | None"))
      .def_prop_ro(
          "type", [](const PySchema& self) { return to_str(type_text(raw(self))); },
          "The type in words.")
      .def("__repr__", &shown)
      .def(
          "__arrow_c_schema__",
          [](const PySchema& self) { return to_capsule(unwrap(self.shared->view())); },
          nb::sig("def __arrow_c_schema__(self) -> typing_extensions.CapsuleType"));
}

}  // namespace fletching::python
