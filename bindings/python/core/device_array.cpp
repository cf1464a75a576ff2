// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <string>
#include <utility>

#include "array_common.hpp"
#include "fletching/device_type.hpp"
#include "fletching/stream_adapters.hpp"
#include "fletching/sync_event.hpp"

namespace fletching::python {
namespace {

constinit Name kMethod("__arrow_c_array__");
constinit Name kDeviceMethod("__arrow_c_device_array__");
constinit Name kHiddenMethod("_arrow_c_array");

const ArrowDeviceArray& raw(const PyDeviceArray& self) { return *(**self.shared).get(); }
SyncEvent event(const PyDeviceArray& self) { return SyncEvent(raw(self)); }

PyDeviceArray from_arrow(nb::handle object) {
  if (std::optional<PyDeviceArray> array = import_device_array(object)) return *std::move(array);
  std::optional<PyArray> array = import_array(object);
  if (!array) {
    raise_type_error(
        "DeviceArray: object has no array: expected __arrow_c_device_array__ or "
        "__arrow_c_array__");
  }
  DeviceArray device = to_device_array(unwrap(array->shared->view()));
  return make_object<PyDeviceArray>(unwrap(array->schema->view()), std::move(device));
}

nb::object export_device_array(const PyDeviceArray& self, nb::handle requested,
                               const nb::kwargs& keywords) {
  refuse_keywords(keywords, kDeviceMethod);
  check_requested(requested, schema_of(self), kDeviceMethod);
  return array_capsules(*self.schema, unwrap(self.shared->view()));
}

nb::object export_array(const PyDeviceArray& self, nb::handle requested) {
  check_requested(requested, schema_of(self), kMethod);
  DeviceArray view = unwrap(self.shared->view());
  Array array = unwrap(without_gil([&] { return to_array(std::move(view)); }));
  return array_capsules(*self.schema, std::move(array));
}

/// A property, so that hasattr says whether a call makes sense: the CPU can read the data. A
/// __getattr__ would make each look-up of a method slow.
nb::object array_method(nb::handle self) {
  const ArrowDeviceType type = raw(nb::cast<const PyDeviceArray&>(self)).device_type;
  if (is_accessible(type, ARROW_DEVICE_CPU)) return nb::getattr(self, kHiddenMethod.get());
  throw nb::attribute_error("'DeviceArray' object has no attribute '__arrow_c_array__'");
}

/// A property for the same reason: what CUDA's consumers look for.
nb::object cuda_array_interface(nb::handle self) {
  return cuda_array_interface_of(self, nb::cast<PyDeviceArray&>(self));
}

void synchronize(const PyDeviceArray& self) {
  unwrap(without_gil([&] { return event(self).synchronize(); }));
}

void wait_on(const PyDeviceArray& self, nb::handle stream) {
  void* const handle = stream_of(stream);
  unwrap(without_gil([&] { return event(self).wait_on(handle); }));
}

bool ready(const PyDeviceArray& self) {
  return unwrap(without_gil([&] { return event(self).ready(); }));
}

nb::str shown(const PyDeviceArray& self) {
  std::string text = "<fletching.DeviceArray " + values_text(self) + ", " +
                     DeviceType(raw(self).device_type).name();
  if (raw(self).device_id >= 0) text.append(":").append(std::to_string(raw(self).device_id));
  if (event(self).is_null()) return to_str(text.append(", no event>"));
  const Result<bool> done = without_gil([&] { return event(self).ready(); });
  if (!done.ok()) return to_str(text.append(", event unknown>"));
  return to_str(text.append(*done ? ", event done>" : ", event pending>"));
}

}  // namespace

std::optional<PyDeviceArray> import_device_array(nb::handle object) {
  const nb::object result = call_protocol(object, kDeviceMethod);
  if (!result.is_valid()) return std::nullopt;
  auto [schema, array] = take_array<ArrowDeviceArray>(result, kDeviceMethod);
  return make_object<PyDeviceArray>(std::move(schema), std::move(array));
}

void bind_device_array(nb::module_& module) {
  nb::class_<PyDeviceArray> type(module, "DeviceArray",
                                 "An array, or a record batch, on any device.\n\n"
                                 "Before the buffers are read, wait for the event.");
  bind_common(type, "def column(self, column: int | str) -> DeviceArray");
  type.def_static("from_arrow", &from_arrow, nb::arg("object"),
                  "The array of an object that has __arrow_c_device_array__ or\n"
                  "__arrow_c_array__. It does not wait for the event.")
      .def_prop_ro(
          "device_type", [](const PyDeviceArray& self) { return raw(self).device_type; },
          "A number of fletching.abi.DeviceType.")
      .def_prop_ro("device_id", [](const PyDeviceArray& self) { return raw(self).device_id; })
      .def_prop_ro(
          "sync_event",
          [](const PyDeviceArray& self) {
            return reinterpret_cast<uintptr_t>(raw(self).sync_event);
          },
          "The address of the event, 0 for none.")
      .def("synchronize", &synchronize, "Blocks until the data may be read by the host.")
      .def("wait_on", &wait_on, nb::arg("stream").none(),
           "Lets a stream of the device wait for the data; returns at once.",
           nb::sig("def wait_on(self, stream: object) -> None"))
      .def("ready", &ready, "Whether the data may be read. Does not block.")
      .def("__repr__", &shown)
      .def_prop_ro("__arrow_c_array__", &array_method)
      .def_prop_ro("__cuda_array_interface__", &cuda_array_interface)
      .def(
          "_arrow_c_array", &export_array, nb::arg("requested_schema") = nb::none(),
          nb::sig("def _arrow_c_array(self, requested_schema: typing_extensions.CapsuleType | None "
                  "= None) -> tuple[typing_extensions.CapsuleType, typing_extensions.CapsuleType]"))
      .def("__arrow_c_device_array__", &export_device_array,
           nb::arg("requested_schema") = nb::none(), nb::arg("kwargs"),
           nb::sig("def __arrow_c_device_array__(self, requested_schema: "
                   "typing_extensions.CapsuleType | None = None, **kwargs: object) -> "
                   "tuple[typing_extensions.CapsuleType, typing_extensions.CapsuleType]"));
}

}  // namespace fletching::python
