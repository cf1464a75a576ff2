// SPDX-License-Identifier: Apache-2.0
#include "fletching/stream_producer.hpp"
#include "stream_common.hpp"

namespace fletching::python {
namespace {

using Stream = PyStream<ArrowArrayStream>;

constinit Name kMethod("__arrow_c_stream__");

Stream from_arrow(nb::handle object) {
  if (auto stream = import_raw_stream<ArrowArrayStream>(object, kMethod)) {
    return make_stream_object(*std::move(stream));
  }
  auto device = import_raw_stream<ArrowDeviceArrayStream>(object, kDeviceStreamMethod);
  if (!device) {
    raise_without("ArrayStream", "stream", "__arrow_c_stream__ or __arrow_c_device_stream__",
                  object);
  }
  return make_stream_object(unwrap(to_array_stream(*std::move(device))));
}

Stream from_batches(nb::handle given, nb::iterable batches) {
  const PySchema schema = to_schema(given);
  const nb::iterator asked = nb::iter(batches);
  const auto iterator = std::make_shared<PyObject*>(asked.ptr());
  return make_stream_object(
      unwrap(make_array_stream(unwrap(schema.shared->view()),
                               PythonBatches<ArrowArrayStream>(*schema.shared, iterator))),
      iterator);
}

nb::object export_stream(Stream& self, nb::handle requested) {
  return to_capsule(move_out(self, requested, kMethod));
}

nb::object export_device_stream(Stream& self, nb::handle requested) {
  return to_capsule(unwrap(to_device_stream(move_out(self, requested, kDeviceStreamMethod))));
}

}  // namespace

nb::object import_array_stream(nb::handle object) {
  auto stream = import_raw_stream<ArrowArrayStream>(object, kMethod);
  return stream ? nb::cast(make_stream_object(*std::move(stream))) : nb::object();
}

void bind_array_stream(nb::module_& module) {
  nb::class_<Stream> type(
      module, "ArrayStream", nb::is_final(), nb::type_slots(stream_slots<ArrowArrayStream>),
      "Batches in CPU memory: an iterator of Array that is read or exported once.\n"
      "\n"
      "Owns an ArrowArrayStream. After some batches are read, the rest can be exported. Any\n"
      "thread may use it; calls wait for each other, without the GIL. If the producer fails,\n"
      "raises an Error with the producer's errno value and message. Arrow C stream interface.");
  bind_stream_common(type, "def __iter__(self) -> ArrayStream",
                     "def __enter__(self) -> ArrayStream");
  type.def_static(
          "from_arrow", &from_arrow, nb::arg("object").none(),
          nb::sig("def from_arrow(object: object) -> ArrayStream"),
          "Imports the stream of an object that has __arrow_c_stream__, or\n"
          "__arrow_c_device_stream__ and memory that the CPU can read. Consumes the capsule;\n"
          "reads no batch. Raises TypeError for other objects and capsules, and Error for a\n"
          "consumed capsule.")
      .def_static(
          "from_batches", &from_batches, nb::arg("schema"), nb::arg("batches"),
          "Makes a stream from an iterable of arrays of any library. The stream keeps the\n"
          "iterator and calls it on the consumer's thread. A consumer in Python gets the\n"
          "iterator's exceptions; other consumers get errors with the errno value of an\n"
          "OSError. A batch of another type than `schema` is an Error.",
          nb::sig(
              "def from_batches(schema: _HasSchema, batches: collections.abc.Iterable[object]) -> "
              "ArrayStream"))
      .def("__arrow_c_stream__", &export_stream, nb::arg("requested_schema") = nb::none(),
           "Returns an arrow_array_stream capsule with the rest of the stream, and consumes\n"
           "this object. Raises Error for a consumed stream and for a requested schema of\n"
           "another kind.",
           nb::sig("def __arrow_c_stream__(self, requested_schema: object | None = None) -> "
                   "typing_extensions.CapsuleType"));
  add_method(type, device_stream_definition<ArrowArrayStream, &export_device_stream>);
}

}  // namespace fletching::python
