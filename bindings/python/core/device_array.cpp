// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <string>
#include <utility>

#include "array_common.hpp"
#include "fletching/device_type.hpp"
#include "fletching/stream_adapters.hpp"
#include "fletching/sync_event.hpp"
#include "interruptible.hpp"

namespace fletching::python {
namespace {

constinit Name kMethod("__arrow_c_array__");
constinit Name kHiddenMethod("_arrow_c_array");

const ArrowDeviceArray& raw(const PyDeviceArray& self) { return *(**self.shared).get(); }
SyncEvent event(const PyDeviceArray& self) { return SyncEvent(raw(self)); }

PyDeviceArray from_arrow(nb::handle object) {
  if (std::optional<PyDeviceArray> array = import_device_array(object)) return *std::move(array);
  std::optional<PyArray> array = import_array(object);
  if (!array) {
    raise_without("DeviceArray", "array", "__arrow_c_device_array__ or __arrow_c_array__", object);
  }
  DeviceArray device = to_device_array(unwrap(array->shared->view()));
  return make_object<PyDeviceArray>(unwrap(array->schema->view()), std::move(device));
}

nb::object export_device_array(const PyDeviceArray& self) {
  return array_capsules(*self.schema, unwrap(self.shared->view()));
}

nb::object export_array(const PyDeviceArray& self, nb::handle requested) {
  check_requested(requested, schema_of(self), kMethod);
  DeviceArray view = unwrap(self.shared->view());
  Array array = unwrap(call_foreign([&] { return to_array(std::move(view)); }));
  return array_capsules(*self.schema, std::move(array));
}

/// A property, so that hasattr on an object shows whether a call can succeed, and hasattr on the
/// type, which some consumers use, is true. A __getattr__ would slow down every method lookup.
nb::object array_method(nb::handle self) {
  const ArrowDeviceType device = raw(nb::cast<const PyDeviceArray&>(self)).device_type;
  if (is_accessible(device, ARROW_DEVICE_CPU)) return nb::getattr(self, kHiddenMethod.get());
  throw nb::attribute_error(no_attribute("DeviceArray", kMethod, device).c_str());
}

/// A property for the same reason: CUDA consumers look for it.
nb::object cuda_array_interface(nb::handle self) {
  return cuda_array_interface_of(self, nb::cast<PyDeviceArray&>(self));
}

void wait_on(const PyDeviceArray& self, nb::handle stream, OnCapture on_capture) {
  const Stream on = stream_of(stream, raw(self).device_type);
  unwrap(call_foreign([&] { return event(self).wait_on(on, on_capture); }));
}

bool ready(const PyDeviceArray& self) {
  return unwrap(call_foreign([&] { return event(self).ready(); }));
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

void synchronize(const PyDeviceArray& self) {
  const Result<bool> is_ready = call_foreign([&] { return event(self).ready(); });
  if (!is_ready.ok() || *is_ready) {  // no wait is needed or possible
    return unwrap(call_foreign([&] { return event(self).synchronize(); }));
  }
  wait_interruptibly(unwrap(self.shared->view()),
                     [](const DeviceArray& array) { return SyncEvent(array).synchronize(); });
}

std::optional<PyDeviceArray> import_device_array(nb::handle object) {
  const nb::object result = call_protocol(object, kDeviceArrayMethod);
  if (!result.is_valid()) return std::nullopt;
  auto [schema, array] = take_array<ArrowDeviceArray>(result, kDeviceArrayMethod);
  return make_object<PyDeviceArray>(std::move(schema), std::move(array));
}

void bind_device_array(nb::module_& module) {
  nb::class_<PyDeviceArray> type(
      module, "DeviceArray", nb::is_final(), nb::type_slots(array_slots<PyDeviceArray>),
      "An array, or a record batch, on any device. len() is its length.\n"
      "\n"
      "Wait for the event before you read the buffers: synchronize, wait_on or ready.\n"
      "\n"
      "Owns an ArrowDeviceArray and shares it with its columns and exports, each of which keeps\n"
      "the data and the event alive. The last of them calls the producer's release callback\n"
      "when it is destroyed, without the GIL. Immutable; any thread may use it. Arrow C device\n"
      "data interface, \"The ArrowDeviceArray structure\".");
  bind_common(type, "def column(self, column: int | str) -> DeviceArray");
  type.def_static("from_arrow", &from_arrow, nb::arg("object").none(),
                  nb::sig("def from_arrow(object: object) -> DeviceArray"),
                  "Imports the array of an object that has __arrow_c_device_array__ or\n"
                  "__arrow_c_array__. Does not wait for the event. Consumes the capsules.\n"
                  "Raises TypeError for other objects and capsules, and Error for a consumed\n"
                  "capsule.")
      .def_prop_ro(
          "device_type", [](const PyDeviceArray& self) { return raw(self).device_type; },
          "The device type, a number of fletching.abi.DeviceType.")
      .def_prop_ro(
          "device_id", [](const PyDeviceArray& self) { return raw(self).device_id; },
          "The number of the device; -1 for a device without a number, such as the CPU.")
      .def_prop_ro(
          "sync_event",
          [](const PyDeviceArray& self) {
            return reinterpret_cast<uintptr_t>(raw(self).sync_event);
          },
          "The address of the event; 0 if there is none. Valid for the lifetime of the array.")
      .def("synchronize", &synchronize,
           "Blocks until the host may read the data, without the GIL. Ctrl-C interrupts the\n"
           "wait. Raises Error, as do the other waits: EINVAL for an invalid event, ENOTSUP for\n"
           "a device type without a runtime in Fletching (see register_waiter), and the\n"
           "driver's errors.")
      .def("wait_on", &wait_on, nb::arg("stream").none(), nb::kw_only(),
           nb::arg("on_capture").noconvert() = OnCapture::kRefuse,
           "Makes later work on a stream of the device wait for the data, and returns at once.\n"
           "That work may read the buffers. `stream`, here and in all functions, is a handle as\n"
           "an int, or an object with __cuda_stream__, `ptr` (CuPy), `handle` (cuda-core) or\n"
           "`cuda_stream` (PyTorch). Raises TypeError for other objects, and Error: EINVAL for\n"
           "-1; EBUSY for a stream that is being captured, unless `on_capture` is\n"
           "OnCapture.EXTERNAL.",
           nb::sig("def wait_on(self, stream: object, *, on_capture: OnCapture = ...) -> None"))
      .def("ready", &ready, "Whether the host may read the data. Does not block.")
      .def("__repr__", &shown)
      .def_prop_ro(kMethod, &array_method)
      .def_prop_ro("__cuda_array_interface__", &cuda_array_interface)
      .def("_arrow_c_array", &export_array, nb::arg("requested_schema") = nb::none(),
           nb::sig("def _arrow_c_array(self, requested_schema: object | None = None) -> "
                   "tuple[typing_extensions.CapsuleType, typing_extensions.CapsuleType]"));
  add_method(type, device_array_definition<PyDeviceArray, &export_device_array>);
}

}  // namespace fletching::python
