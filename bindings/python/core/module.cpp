// SPDX-License-Identifier: Apache-2.0
#include "core.hpp"

namespace fletching::python {
namespace {

template <class Object>
nb::object cast_if_any(std::optional<Object> imported) {
  return imported ? nb::cast(*std::move(imported)) : nb::object();
}

/// The first of the protocols that the object has.
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
  raise_type_error(
      "from_arrow: object has no Arrow data: expected a method such as "
      "__arrow_c_device_array__");
}

}  // namespace
}  // namespace fletching::python

NB_MODULE(_core, module) {
  using namespace fletching::python;
  module.doc() = "What fletching has over C++: see fletching.";
  bind_python();
  bind_on_capture(module);
  bind_schema(module);
  bind_array(module);
  bind_device_array(module);
  bind_array_stream(module);
  bind_device_array_stream(module);
  bind_buffer(module);
  bind_dlpack(module);
  bind_cuda_array(module);
  bind_exchange(module);
  bind_streams(module);
  bind_waiter(module);
  bind_async_stream(module);
  module.def("from_arrow", &from_arrow, nb::arg("object"),
             "What an object has by the Arrow PyCapsule protocols.",
             nb::sig("def from_arrow(object: object) -> DeviceArray | Array | DeviceArrayStream | "
                     "ArrayStream | Schema"));
}
