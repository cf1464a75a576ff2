// SPDX-License-Identifier: Apache-2.0
#include "core.hpp"

namespace fletching::python {
namespace {

template <class Object>
nb::object cast_if_any(std::optional<Object> imported) {
  return imported ? nb::cast(*std::move(imported)) : nb::object();
}

/// Gives nanobind's functions a __signature__ for inspect and help. Python code cannot set
/// attributes of their types, which belong only to this module (NB_DOMAIN).
void bind_signatures(const nb::module_& module) {
  const auto define = [](nb::handle type, const char* function) {
    const nb::object get = nb::cpp_function([function](nb::handle self) {
      return nb::module_::import_("fletching._signature").attr(function)(self);
    });
    const nb::object property = nb::handle(reinterpret_cast<PyObject*>(&PyProperty_Type))(get);
    const nb::str name("__signature__");
    if (PyObject_GenericSetAttr(type.ptr(), name.ptr(), property.ptr()) != 0) {
      throw nb::python_error();
    }
    PyType_Modified(reinterpret_cast<PyTypeObject*>(type.ptr()));
  };
  const nb::object gate = module.attr("Gate")();
  define(module.attr("from_arrow").type(), "signature_of");
  define(nb::getattr(gate.type(), "open").type(), "signature_of");
  define(nb::getattr(gate, "open").type(), "signature_of_bound");
}

/// Imports through the first protocol that the object supports.
nb::object from_arrow(nb::handle object) {
  using Import = nb::object (*)(nb::handle);
  constexpr Import kImports[] = {
      [](nb::handle given) { return cast_if_any(import_device_array(given)); },
      [](nb::handle given) { return cast_if_any(import_array(given)); },
      &import_device_array_stream,
      &import_array_stream,
      [](nb::handle given) { return cast_if_any(import_schema(given)); },
  };
  for (const Import import : kImports) {
    if (nb::object found = import(object); found.is_valid()) return found;
  }
  raise_without("from_arrow", "Arrow data", "a method such as __arrow_c_device_array__", object);
}

// The module, from its first import until the interpreter ends.
PyObject* imported = nullptr;

void forget_module() { Py_CLEAR(imported); }

/// Fills the module of a later import with the members of the first: the types exist once.
int copy_module(PyObject* module) {
  return PyDict_Merge(PyModule_GetDict(module), PyModule_GetDict(imported), /*override=*/0);
}

PyModuleDef_Slot again_slots[] = {
    {Py_mod_exec, reinterpret_cast<void*>(&copy_module)},
    {0, nullptr},
};

PyModuleDef again = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "_core",
    .m_doc = nullptr,
    .m_size = 0,
    .m_methods = nullptr,
    .m_slots = again_slots,
    .m_traverse = nullptr,
    .m_clear = nullptr,
    .m_free = nullptr,
};

}  // namespace
}  // namespace fletching::python

// PyInit__core_once is nanobind's part of PyInit__core.
NB_MODULE(_core_once, module) {
  using namespace fletching::python;
  module.doc() = "The C++ part of the package fletching: see fletching.";
  bind_end_of_waiters();
  bind_python(module);
  bind_on_capture(module);
  bind_schema(module);
  bind_array(module);
  bind_device_array(module);
  bind_array_stream(module);
  bind_device_array_stream(module);
  bind_buffer(module);
  bind_build(module);
  bind_struct_capsules(module);
  bind_dlpack(module);
  bind_cuda_array(module);
  bind_exchange(module);
  bind_streams(module);
  bind_waiter(module);
  bind_async_stream(module);
  bind_validate(module);
  module.def("from_arrow", &from_arrow, nb::arg("object").none(),
             "Imports the data of an object that implements an Arrow PyCapsule protocol.",
             nb::sig("def from_arrow(object: object) -> DeviceArray | Array | DeviceArrayStream | "
                     "ArrayStream | Schema"));
  bind_signatures(module);
  imported = module.inc_ref().ptr();
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&forget_module));
}

/// Runs before nanobind's init, which would forget the first interpreter, or the types of the first
/// import.
extern "C" NB_EXPORT PyObject* PyInit__core() {
  using namespace fletching::python;
  const char* refused = nullptr;
  if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0) {
    refused = "fletching: expected the main interpreter, got a second one";
  } else if (python_is_ending()) {
    refused = "fletching: the Python interpreter has ended";
  }
  if (refused != nullptr) {
    PyErr_SetString(PyExc_ImportError, refused);
    return nullptr;
  }
  return imported == nullptr ? PyInit__core_once() : PyModuleDef_Init(&again);
}
