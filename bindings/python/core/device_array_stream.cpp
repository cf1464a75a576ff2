// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "fletching/stream_producer.hpp"
#include "stream_common.hpp"

namespace fletching::python {
namespace {

using Stream = PyStream<ArrowDeviceArrayStream>;

constinit Name kMethod("__arrow_c_stream__");

Stream from_arrow(nb::handle object) {
  if (auto stream = import_raw_stream<ArrowDeviceArrayStream>(object, kDeviceStreamMethod)) {
    return make_stream_object(*std::move(stream));
  }
  auto plain = import_raw_stream<ArrowArrayStream>(object, kMethod);
  if (!plain) {
    raise_without("DeviceArrayStream", "stream", "__arrow_c_device_stream__ or __arrow_c_stream__",
                  object);
  }
  return make_stream_object(unwrap(to_device_stream(*std::move(plain))));
}

Stream from_batches(nb::handle given, ArrowDeviceType device_type, nb::iterable batches) {
  const PySchema schema = to_schema(given);
  const nb::iterator asked = nb::iter(batches);
  const auto iterator = std::make_shared<PyObject*>(asked.ptr());
  return make_stream_object(
      unwrap(make_device_stream(unwrap(schema.shared->view()), device_type,
                                PythonBatches<ArrowDeviceArrayStream>(*schema.shared, iterator))),
      iterator);
}

nb::object export_device_stream(Stream& self, nb::handle requested) {
  return to_capsule(move_out(self, requested, kDeviceStreamMethod));
}

nb::object export_stream(Stream& self, nb::handle requested) {
  return to_capsule(unwrap(to_array_stream(move_out(self, requested, kMethod))));
}

/// A property, as in DeviceArray.
nb::object stream_method(nb::handle self) {
  const ArrowDeviceType device = (*nb::cast<Stream&>(self).state)->device_type();
  if (is_accessible(device, ARROW_DEVICE_CPU)) return self.attr("_arrow_c_stream");
  throw nb::attribute_error(no_attribute("DeviceArrayStream", kMethod, device).c_str());
}

}  // namespace

nb::object import_device_array_stream(nb::handle object) {
  auto stream = import_raw_stream<ArrowDeviceArrayStream>(object, kDeviceStreamMethod);
  return stream ? nb::cast(make_stream_object(*std::move(stream))) : nb::object();
}

void bind_device_array_stream(nb::module_& module) {
  nb::class_<Stream> type(
      module, "DeviceArrayStream", nb::is_final(),
      nb::type_slots(stream_slots<ArrowDeviceArrayStream>),
      "Batches on any device: an iterator of DeviceArray that is read or exported once.\n"
      "\n"
      "Owns an ArrowDeviceArrayStream; see ArrayStream for the rest. Each batch has a separate\n"
      "event. Arrow C device stream interface.");
  bind_stream_common(type, "def __iter__(self) -> DeviceArrayStream",
                     "def __enter__(self) -> DeviceArrayStream");
  type.def_static(
          "from_arrow", &from_arrow, nb::arg("object").none(),
          nb::sig("def from_arrow(object: object) -> DeviceArrayStream"),
          "Imports the stream of an object that has __arrow_c_device_stream__ or\n"
          "__arrow_c_stream__. Consumes the capsule; reads no batch. Raises TypeError for other\n"
          "objects and capsules, and Error for a consumed capsule.")
      .def_static("from_batches", &from_batches, nb::arg("schema"), nb::arg("device_type"),
                  nb::arg("batches"),
                  "Makes a stream from an iterable of arrays on devices of `device_type`; see\n"
                  "ArrayStream. A batch of another device type is an error of the stream.",
                  nb::sig("def from_batches(schema: _HasSchema, device_type: int, batches: "
                          "collections.abc.Iterable[object]) -> DeviceArrayStream"))
      .def_prop_ro(
          "device_type", [](const Stream& self) { return (*self.state)->device_type(); },
          "The device type of every batch, a number of fletching.abi.DeviceType.")
      .def_prop_ro(kMethod, &stream_method)
      .def("_arrow_c_stream", &export_stream, nb::arg("requested_schema") = nb::none(),
           nb::sig("def _arrow_c_stream(self, requested_schema: object | None = None) -> "
                   "typing_extensions.CapsuleType"));
  add_method(type, device_stream_definition<ArrowDeviceArrayStream, &export_device_stream>);
}

}  // namespace fletching::python
