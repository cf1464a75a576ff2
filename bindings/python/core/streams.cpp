// SPDX-License-Identifier: Apache-2.0
//
// Streams of the caller, and what is ordered on them: events on exports, and releases.
#include <string>
#include <utility>

#include "array_common.hpp"
#include "fletching/export_event.hpp"
#include "fletching/release_after.hpp"
#include "fletching/sync_event.hpp"

namespace fletching::python {
namespace {

/// The number in an object that stands for a stream.
nb::object number_of(nb::handle stream) {
  const nb::object protocol = nb::getattr(stream, "__cuda_stream__", nb::object());
  if (protocol.is_valid()) {
    const nb::object pair = protocol();
    if (!PyTuple_Check(pair.ptr()) || nb::len(pair) != 2) {
      raise_type_error("__cuda_stream__: result is wrong: expected (0, handle)");
    }
    const nb::object version = pair[0];
    if (!PyLong_Check(version.ptr()) || PyLong_AsLong(version.ptr()) != 0) {
      PyErr_Clear();
      raise_type_error("__cuda_stream__: version is unknown: expected 0");
    }
    return pair[1];
  }
  for (const char* name : {"ptr", "handle"}) {
    nb::object value = nb::getattr(stream, name, nb::object());
    if (value.is_valid()) return value;
  }
  return nb::borrow(stream);
}

/// An array of its own with the same data, whose event is at the end of `stream`.
PyDeviceArray export_with_event_on(const PyDeviceArray& self, nb::handle stream) {
  void* const handle = stream_of(stream);
  DeviceArray view = unwrap(self.shared->view());
  unwrap(without_gil([&] { return export_with_event(view, handle); }));
  auto out = make_object<PyDeviceArray>(unwrap(self.schema->view()), std::move(view));
  out.writable = self.writable;
  return out;
}

/// The object keeps the data, as every export does: what is deferred is one more share of it.
void release_after_stream(const PyDeviceArray& self, nb::handle stream) {
  void* const handle = stream_of(stream);
  DeviceArray view = unwrap(self.shared->view());
  unwrap(without_gil([&] { return release_after(view, handle); }));
}

}  // namespace

void* stream_of(nb::handle stream) {
  const nb::object number = stream.is_none() ? nb::none() : number_of(stream);
  if (!PyLong_Check(number.ptr()) || PyBool_Check(number.ptr())) {
    raise_type_error("stream: expected a number, or an object with __cuda_stream__, ptr or handle");
  }
  void* handle = PyLong_AsVoidPtr(number.ptr());
  if (handle == nullptr && PyErr_Occurred() != nullptr) throw nb::python_error();
  return handle;
}

void bind_streams(nb::module_& /*module*/) {
  nb::borrow<nb::class_<PyDeviceArray>>(nb::type<PyDeviceArray>())
      .def("export_with_event", &export_with_event_on, nb::arg("stream").none(),
           nb::sig("def export_with_event(self, stream: object) -> DeviceArray"),
           "The same data with an event that is after everything on the stream now. For data\n"
           "that work on the stream is still writing. The array must not have an event.")
      .def("release_after", &release_after_stream, nb::arg("stream").none(),
           nb::sig("def release_after(self, stream: object) -> None"),
           "Keeps the data until everything is done that is on the stream now. Call it before\n"
           "you drop an array that your own work still reads. Does not block.");
}

}  // namespace fletching::python
