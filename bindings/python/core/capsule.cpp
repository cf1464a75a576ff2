// SPDX-License-Identifier: Apache-2.0
#include "capsule.hpp"

#include <cerrno>
#include <string>
#include <utility>

namespace fletching::python {
namespace {

std::string kind_of(nb::handle object) { return name_of_type(object.type()); }

}  // namespace

void* look_into(nb::handle capsule, const char* name, const char* method) {
  if (!PyCapsule_CheckExact(capsule.ptr())) {
    raise_type_error(std::string(method) + ": result is not a capsule: expected " + name +
                     ", got " + kind_of(capsule));
  }
  if (!PyCapsule_IsValid(capsule.ptr(), name)) {
    const char* got = PyCapsule_GetName(capsule.ptr());
    PyErr_Clear();
    raise_type_error(std::string(method) + ": name of the capsule is wrong: expected " + name +
                     ", got " + (got == nullptr ? "NULL" : got));
  }
  return PyCapsule_GetPointer(capsule.ptr(), name);
}

void raise_consumed(const char* name, const char* method) {
  raise(
      Error(EINVAL, std::string(method) + ": " + name +
                        " is released: expected a live struct; hint: a capsule is consumed once"));
}

std::pair<nb::object, nb::object> two_capsules(const nb::object& result, const char* method) {
  if (!PyTuple_Check(result.ptr()) || PyTuple_Size(result.ptr()) != 2) {
    raise_type_error(std::string(method) +
                     ": result is not a pair of capsules: expected a tuple of two, got " +
                     kind_of(result));
  }
  return {result[0], result[1]};
}

nb::object find_attribute(nb::handle object, Name& name) {
  nb::object found = nb::steal(PyObject_GetAttr(object.ptr(), name.get().ptr()));
  if (found.is_valid()) return found;
  if (PyErr_ExceptionMatches(PyExc_AttributeError) == 0) throw nb::python_error();
  PyErr_Clear();
  return found;
}

nb::object call_protocol(nb::handle object, Name& method) {
  // Protocols are looked up on the type like special methods, but an instance may provide them,
  // too. Called directly: nanobind creates a bound method without a check for memory.
  PyObject* const arguments[] = {object.ptr()};
  nb::object result = call_python([&] {
    return nb::steal(PyObject_VectorcallMethod(method.get().ptr(), arguments, 1, nullptr));
  });
  if (result.is_valid()) return result;
  nb::python_error raised;
  if (raised.matches(PyExc_AttributeError) && !find_attribute(object, method).is_valid()) return {};
  throw std::move(raised);  // raised by the method
}

nb::handle requested_schema(PyObject* const* arguments, Py_ssize_t count, PyObject* names,
                            const char* method) {
  if (count > 1) {
    raise_type_error(std::string(method) + ": too many arguments: expected at most 1, got " +
                     std::to_string(count));
  }
  nb::handle requested = count == 1 ? arguments[0] : Py_None;
  const Py_ssize_t keywords = names == nullptr ? 0 : PyTuple_Size(names);
  for (Py_ssize_t i = 0; i < keywords; ++i) {
    const nb::handle value = arguments[count + i];
    const std::string name = to_utf8(PyTuple_GetItem(names, i));
    if (name == "requested_schema" && count == 1) {
      raise_type_error(std::string(method) + ": requested_schema: given twice");
    } else if (name == "requested_schema") {
      requested = value;
    } else if (!value.is_none()) {
      const std::string text =
          std::string(method) + ": unknown keyword: expected None, got " + name;
      PyErr_SetString(PyExc_NotImplementedError, text.c_str());
      throw nb::python_error();
    }
  }
  return requested;
}

}  // namespace fletching::python
