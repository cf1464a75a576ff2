// SPDX-License-Identifier: Apache-2.0
#include "capsule.hpp"

#include <cerrno>
#include <string>

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

nb::object find_attribute(nb::handle object, nb::handle name) {
  nb::object found = nb::steal(PyObject_GetAttr(object.ptr(), name.ptr()));
  if (found.is_valid()) return found;
  if (PyErr_ExceptionMatches(PyExc_AttributeError) == 0) throw nb::python_error();
  PyErr_Clear();
  return found;
}

nb::object find_attribute(nb::handle object, const char* name) {
  return find_attribute(object, nb::str(name));
}

nb::object call_protocol(nb::handle object, Name& method) {
  // Protocols are looked up on the type as special methods are, but an instance may answer, too.
  const nb::object found = find_attribute(object, method.get());
  return found.is_valid() ? found() : nb::object();
}

void refuse_keywords(const nb::kwargs& keywords, const char* method) {
  for (const auto& [keyword, value] : keywords) {
    if (value.is_none()) continue;
    const std::string text =
        std::string(method) + ": unknown keyword: expected None, got " + to_utf8(keyword);
    PyErr_SetString(PyExc_NotImplementedError, text.c_str());
    throw nb::python_error();
  }
}

}  // namespace fletching::python
