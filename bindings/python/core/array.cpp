// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "array_common.hpp"
#include "fletching/stream_adapters.hpp"

namespace fletching::python {
namespace {

constinit Name kMethod("__arrow_c_array__");

PyArray from_arrow(nb::handle object) {
  if (std::optional<PyArray> array = import_array(object)) return *std::move(array);
  std::optional<PyDeviceArray> device = import_device_array(object);
  if (!device) {
    raise_without("Array", "array", "__arrow_c_array__ or __arrow_c_device_array__", object);
  }
  DeviceArray view = unwrap(device->shared->view());
  Array array = unwrap(call_foreign([&] { return to_array(std::move(view)); }));
  return make_object<PyArray>(unwrap(device->schema->view()), std::move(array));
}

nb::object export_array(const PyArray& self, nb::handle requested) {
  check_requested(requested, schema_of(self), kMethod);
  return array_capsules(*self.schema, unwrap(self.shared->view()));
}

nb::object export_device_array(const PyArray& self) {
  return array_capsules(*self.schema, to_device_array(unwrap(self.shared->view())));
}

}  // namespace

std::optional<PyArray> import_array(nb::handle object) {
  const nb::object result = call_protocol(object, kMethod);
  if (!result.is_valid()) return std::nullopt;
  auto [schema, array] = take_array<ArrowArray>(result, kMethod);
  return make_object<PyArray>(std::move(schema), std::move(array));
}

void bind_array(nb::module_& module) {
  nb::class_<PyArray> type(
      module, "Array", nb::is_final(), nb::type_slots(array_slots<PyArray>),
      "An array, or a record batch, in CPU memory. len() is its length.\n"
      "\n"
      "Owns an ArrowArray and shares it with its columns and exports. The last of them calls\n"
      "the producer's release callback when it is destroyed, on the thread that destroys it.\n"
      "Immutable; any thread may use it. Arrow C data interface, \"The ArrowArray structure\".");
  bind_common(type, "def column(self, column: int | str) -> Array");
  type.def_static(
          "from_arrow", &from_arrow, nb::arg("object").none(),
          nb::sig("def from_arrow(object: object) -> Array"),
          "Imports the array of an object that has __arrow_c_array__, or\n"
          "__arrow_c_device_array__ and memory that the CPU can read; in that case waits for\n"
          "the event, without the GIL. Consumes the capsules. Raises TypeError for other\n"
          "objects and capsules, and Error for a consumed capsule, for memory that the CPU\n"
          "cannot read and for a failed wait.")
      .def(
          "__repr__",
          [](const PyArray& self) { return to_str("<fletching.Array " + values_text(self) + ">"); })
      .def("__arrow_c_array__", &export_array, nb::arg("requested_schema") = nb::none(),
           "Returns the capsules arrow_schema and arrow_array, which own a share of the data.\n"
           "The data keeps its own schema. Raises Error for a requested schema of another kind.\n"
           "Arrow PyCapsule interface.",
           nb::sig("def __arrow_c_array__(self, requested_schema: object | None = None) -> "
                   "tuple[typing_extensions.CapsuleType, typing_extensions.CapsuleType]"));
  add_method(type, device_array_definition<PyArray, &export_device_array>);
}

}  // namespace fletching::python
