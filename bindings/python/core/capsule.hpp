// SPDX-License-Identifier: Apache-2.0
//
// The structs in Python capsules. Arrow PyCapsule interface.
#ifndef FLETCHING_PYTHON_CAPSULE_HPP
#define FLETCHING_PYTHON_CAPSULE_HPP

#include <exception>
#include <memory>
#include <new>
#include <utility>

#include "fletching/owner.hpp"
#include "python.hpp"

namespace fletching::python {

template <class Raw>
struct CapsuleOf;
template <>
struct CapsuleOf<ArrowSchema> {
  static constexpr const char* kName = "arrow_schema";
};
template <>
struct CapsuleOf<ArrowArray> {
  static constexpr const char* kName = "arrow_array";
};
template <>
struct CapsuleOf<ArrowDeviceArray> {
  static constexpr const char* kName = "arrow_device_array";
};
template <>
struct CapsuleOf<ArrowArrayStream> {
  static constexpr const char* kName = "arrow_array_stream";
};
template <>
struct CapsuleOf<ArrowDeviceArrayStream> {
  static constexpr const char* kName = "arrow_device_array_stream";
};

/// Returns whether the release of a struct may wait: see Foreign.
template <class Raw>
bool may_wait(const Owner<Raw>& owner) noexcept {
  if constexpr (std::same_as<Raw, ArrowDeviceArray>) {
    return owner.device_type() != ARROW_DEVICE_CPU;
  } else {
    return std::same_as<Raw, ArrowArrayStream> || std::same_as<Raw, ArrowDeviceArrayStream>;
  }
}

/// Capsule destructor: releases the struct, unless a consumer has moved it out, and frees its
/// memory.
template <class Raw>
void destroy_capsule(PyObject* capsule) noexcept {
  const nb::error_scope pending;
  std::unique_ptr<Owner<Raw>> owner(
      static_cast<Owner<Raw>*>(PyCapsule_GetPointer(capsule, CapsuleOf<Raw>::kName)));
  if (owner == nullptr || owner->is_released()) return;
  std::optional<NoGil> released;
  if (may_wait(*owner)) released.emplace();
  owner.reset();
}

/// Returns a capsule with the struct. The capsule releases it if no consumer moves it out.
template <class Raw>
nb::object to_capsule(Owner<Raw> struct_) {
  // The owner begins with the struct, so both have the same address.
  auto owner = std::make_unique<Owner<Raw>>();
  PyObject* capsule = PyCapsule_New(owner.get(), CapsuleOf<Raw>::kName, &destroy_capsule<Raw>);
  if (capsule == nullptr) throw nb::python_error();
  detail::exported(*struct_);
  *owner.release() = std::move(struct_);
  return nb::steal(capsule);
}

/// Returns the struct in a capsule, which still owns it. Raises TypeError if it is not a capsule
/// with that name, fletching.Error if the struct was consumed. `method` is the method that returned
/// the capsule.
void* look_into(nb::handle capsule, const char* name, const char* method);
[[noreturn]] void raise_consumed(const char* name, const char* method);

template <class Raw>
Raw* look_into(nb::handle capsule, const char* method) {
  auto* raw = static_cast<Raw*>(look_into(capsule, CapsuleOf<Raw>::kName, method));
  if (detail::base(*raw).release == nullptr) raise_consumed(CapsuleOf<Raw>::kName, method);
  return raw;
}

/// Returns the two capsules from an array method's result. Raises TypeError for any other result.
std::pair<nb::object, nb::object> two_capsules(const nb::object& result, const char* method);

/// Returns the attribute of `object`, or an invalid handle if it has no such attribute. Raises any
/// other exception of the lookup.
nb::object find_attribute(nb::handle object, Name& name);

/// Calls the method of `object`; returns an invalid handle if the method is missing.
nb::object call_protocol(nb::handle object, Name& method);

/// Returns the requested schema, or None, from the arguments of a METH_FASTCALL method. Accepts
/// unknown keywords whose value is None; raises NotImplementedError for others. nanobind's keyword
/// handling is slower than an export, and crashes without memory.
nb::handle requested_schema(PyObject* const* arguments, Py_ssize_t count, PyObject* names,
                            const char* method);

/// Runs the body of a Python C function. Converts C++ exceptions to Python exceptions.
template <class Call>
PyObject* no_throw(const Call& call) noexcept {
  try {
    return call();
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

}  // namespace fletching::python

#endif  // FLETCHING_PYTHON_CAPSULE_HPP
