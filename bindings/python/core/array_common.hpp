// SPDX-License-Identifier: Apache-2.0
//
// Code that Python's Array and DeviceArray share.
#ifndef FLETCHING_PYTHON_ARRAY_COMMON_HPP
#define FLETCHING_PYTHON_ARRAY_COMMON_HPP

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "capsule.hpp"
#include "core.hpp"
#include "fletching/check_array.hpp"
#include "fletching/check_data.hpp"
#include "fletching/detail/checked.hpp"
#include "fletching/device_type.hpp"
#include "required_values.hpp"

namespace fletching::python {

template <class Object>
const ArrowSchema& schema_of(const Object& self) {
  return *(**self.schema).get();
}
template <class Object>
const ArrowArray& array_of(const Object& self) {
  return detail::base(*(**self.shared).get());
}

/// Reports the owners of the memory to Python's collector. Exports and columns share the only
/// reference to an owner: while there are any, the owner is in use. Needs no tp_clear: another
/// object of each cycle was created after the array's owner and has one.
template <class Object>
int traverse_array(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  const Object& array = *nb::inst_ptr<Object>(self);
  if (array.owners == nullptr || !array.shared->is_unique()) return 0;
  for (PyObject* owner : *array.owners) Py_VISIT(owner);
  return 0;
}

template <class Object>
PyType_Slot array_slots[] = {no_constructor[0],
                             {Py_tp_traverse, reinterpret_cast<void*>(&traverse_array<Object>)},
                             {0, nullptr}};

/// Moves the structs of an imported or built array into an object.
template <class Object, class Raw>
Object make_object(Schema schema, Owner<Raw> array) {
  SharedSchema shared_schema = unwrap(share(std::move(schema)));
  const bool waits = may_wait(array);
  return Object{Foreign(std::move(shared_schema)), Foreign(unwrap(share(std::move(array))), waits)};
}

/// Moves the structs out of the two capsules of `result`. If one of them is rejected, both
/// keep their structs.
template <class Raw>
std::pair<Schema, Owner<Raw>> take_array(const nb::object& result, const char* method) {
  const auto [schema_capsule, array_capsule] = two_capsules(result, method);
  auto* schema = look_into<ArrowSchema>(schema_capsule, method);
  auto* array = look_into<Raw>(array_capsule, method);
  unwrap(check_schema(*schema, method));
  check_required_values(method, *schema, *array);
  return {Schema(schema), Owner<Raw>(array)};
}

/// Returns the two capsules of `array` and its schema.
template <class Raw>
nb::object array_capsules(const SharedSchema& schema, Owner<Raw> array) {
  return nb::make_tuple(to_capsule(unwrap(schema.view())), to_capsule(std::move(array)));
}

constinit inline Name kDeviceArrayMethod("__arrow_c_device_array__");

/// Implements __arrow_c_device_array__.
template <class Object, nb::object (*kExport)(const Object&)>
PyObject* device_array_method(PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                              PyObject* names) noexcept {
  return no_throw([&] {
    const Object& object = *nb::inst_ptr<Object>(self);
    check_requested(requested_schema(arguments, count, names, kDeviceArrayMethod),
                    schema_of(object), kDeviceArrayMethod);
    return kExport(object).release().ptr();
  });
}

template <class Object, nb::object (*kExport)(const Object&)>
PyMethodDef device_array_definition{
    "__arrow_c_device_array__",
    reinterpret_cast<PyCFunction>(
        reinterpret_cast<void (*)()>(&device_array_method<Object, kExport>)),
    METH_FASTCALL | METH_KEYWORDS,
    "__arrow_c_device_array__($self, /, requested_schema=None, **kwargs)\n"
    "--\n"
    "\n"
    "Returns the capsules arrow_schema and arrow_device_array, which own a share of the data and\n"
    "the event. The consumer must wait for the event. An Array is on the CPU and has no event.\n"
    "The data keeps its own schema. Raises Error for a requested schema of another kind, and\n"
    "NotImplementedError for an unknown keyword that is not None. Arrow PyCapsule interface."};

/// Returns column `index` as an independent array. A column of a struct or a sparse union begins at
/// the parent's offset and has the parent's length.
template <class Raw>
Owner<Raw> column_of(const Shared<Raw>& parent, const ArrowSchema& schema, int64_t index) {
  Owner<Raw> column = unwrap(parent.column(index));
  const std::string_view format(schema.format == nullptr ? "" : schema.format);
  if (format != "+s" && !format.starts_with("+us:")) return column;
  const ArrowArray& whole = detail::base(*(*parent).get());
  ArrowArray& raw = detail::base(*column.get());
  if (whole.offset == 0 && whole.length == raw.length) return column;
  const detail::Size last =
      detail::add(detail::size_of(whole.offset), detail::size_of(whole.length));
  const detail::Size offset =
      detail::add(detail::size_of(raw.offset), detail::size_of(whole.offset));
  if (!last || !offset || raw.length < *last) {
    raise(Error(EINVAL, "column: child " + std::to_string(index) +
                            ": too short for its parent: expected at least " +
                            std::to_string(whole.length) + " values from " +
                            std::to_string(whole.offset) + ", got " + std::to_string(raw.length)));
  }
  raw.offset = *offset;
  raw.length = whole.length;
  if (raw.null_count > 0) raw.null_count = -1;
  return column;
}

template <class Object>
Object column(const Object& self, nb::handle which) {
  const int64_t index = column_index(schema_of(self), which);
  auto array = column_of(*self.shared, schema_of(self), index);
  auto out = make_object<Object>(unwrap(self.schema->column(index)), std::move(array));
  if constexpr (std::same_as<Object, PyDeviceArray>) out.writable = self.writable;
  return out;
}

/// Message of an AttributeError for data that only a device can read.
inline std::string no_attribute(const char* type, const char* name, ArrowDeviceType device) {
  return std::string("'") + type + "' object has no attribute '" + name +
         "': expected memory that the CPU can read, got " + DeviceType(device).name();
}

/// Describes an array: "int32, length 3, nulls 1".
template <class Object>
std::string values_text(const Object& self) {
  const ArrowArray& array = array_of(self);
  std::string text = type_text(schema_of(self)) + ", length " + std::to_string(array.length);
  if (array.null_count > 0) text.append(", nulls ").append(std::to_string(array.null_count));
  return text;
}

template <class Object>
nb::object addresses(const Object& self) {
  const ArrowArray& array = array_of(self);
  nb::list found = empty<nb::list>();
  for (int64_t i = 0; i < array.n_buffers && array.buffers != nullptr; ++i) {
    found.append(reinterpret_cast<uintptr_t>(array.buffers[i]));
  }
  return nb::steal(PyList_AsTuple(found.ptr()));
}

template <class Object>
nb::list check(const Object& self, std::string_view level) {
  if (level != "shape" && level != "data") {
    raise(Error(EINVAL, "check: level: expected 'shape' or 'data', got " + detail::quote(level)));
  }
  const auto& array = *(**self.shared).get();
  if constexpr (std::same_as<Object, PyDeviceArray>) {
    if (level == "data") synchronize(self);
  }
  const ArrayFindings found = unwrap(without_gil([&] {
    return level == "data" ? check_data(schema_of(self), array)
                           : check_array(schema_of(self), array);
  }));
  const nb::object finding = nb::module_::import_("fletching._finding").attr("Finding");
  nb::list list;
  for (const ArrayFinding& one : found.list) {
    list.append(finding(to_str(one.rule), to_str(one.path), to_str(one.message)));
  }
  return list;
}

template <class Object>
void bind_common(nb::class_<Object>& type, const char* signature_of_column) {
  type.def("__len__", [](const Object& self) { return array_of(self).length; })
      .def_prop_ro(
          "null_count", [](const Object& self) { return array_of(self).null_count; },
          "The number of nulls; -1 if the producer has not counted them.")
      .def_prop_ro(
          "offset", [](const Object& self) { return array_of(self).offset; },
          "The number of values in the buffers before the first value of the array.")
      .def_prop_ro(
          "n_buffers", [](const Object& self) { return array_of(self).n_buffers; },
          "The number of buffers.")
      .def_prop_ro(
          "buffers", &addresses<Object>, nb::sig("def buffers(self) -> tuple[int, ...]"),
          "The addresses of the buffers, 0 for NULL, for your own kernels. They are valid for\n"
          "the lifetime of the array. Wait for its event before you read the buffers.")
      .def_prop_ro(
          "type", [](const Object& self) { return to_str(type_text(schema_of(self))); },
          "The type in words, such as 'list<int32>'; 'unknown(x)' for an unknown format.")
      .def_prop_ro(
          "schema",
          [](const Object& self) { return PySchema{Foreign(SharedSchema(*self.schema))}; },
          "The schema, which may outlive the array.")
      .def("column", &column<Object>, nb::arg("column"), nb::sig(signature_of_column),
           "Returns a child by name or index; a negative index counts from the end. Does not\n"
           "copy. The column keeps the data and the event alive. Nulls of the parent are not\n"
           "applied. Raises Error if there is no such column, or if it is shorter than its\n"
           "parent.")
      .def("check", &check<Object>, nb::arg("level") = "shape",
           nb::sig("def check(self, level: typing.Literal['shape', 'data'] = 'shape') -> "
                   "list[fletching._finding.Finding]"),
           "Returns the violated rules of the Arrow texts: at most 64 findings, an empty list\n"
           "for a correct array. 'shape' compares the structs with the schema and reads no\n"
           "buffer. 'data' waits for the event and also reads the buffers in host memory, all\n"
           "without the GIL. A buffer that is shorter than the structs and its offsets imply is\n"
           "read past its end. Raises Error for a failed wait. Columnar format.");
}

}  // namespace fletching::python

#endif  // FLETCHING_PYTHON_ARRAY_COMMON_HPP
