// SPDX-License-Identifier: Apache-2.0
//
// The caller's streams: events on exports, and releases after a stream's work.
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>

#include "array_common.hpp"
#include "fletching/export_event.hpp"
#include "fletching/release_after.hpp"
#include "fletching/sync_event.hpp"

namespace fletching::python {
namespace {

constinit Name kProtocol("__cuda_stream__");
constinit Name kPointer("ptr");             // CuPy
constinit Name kHandle("handle");           // cuda-core
constinit Name kCudaStream("cuda_stream");  // PyTorch

/// Returns the stream handle of an object; returns other arguments unchanged.
nb::object number_of(nb::handle stream) {
  const nb::object protocol = find_attribute(stream, kProtocol);
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
  for (Name* name : {&kPointer, &kHandle, &kCudaStream}) {
    nb::object value = find_attribute(stream, *name);
    if (value.is_valid()) return value;
  }
  return nb::borrow(stream);
}

[[noreturn]] void raise_no_handle() {
  raise(Error(EINVAL,
              "stream: invalid handle: expected 0 or more and 64 bits, got another number; hint: "
              "only DLPack has -1, for no synchronization"));
}

/// Returns a second array with the same data, with an event at the end of `stream`.
PyDeviceArray export_with_event_on(const PyDeviceArray& self, nb::handle stream,
                                   OnCapture on_capture) {
  const Stream on = stream_of(stream, (**self.shared)->device_type);
  DeviceArray view = unwrap(self.shared->view());
  unwrap(call_foreign([&]() -> Status {
    // The array's event precedes the new one. The view keeps the owner of both alive.
    Status waited = SyncEvent(view).wait_on(on, on_capture);
    if (!waited) return waited;
    view->sync_event = nullptr;
    return export_with_event(view, on, on_capture);
  }));
  auto out = make_object<PyDeviceArray>(unwrap(self.schema->view()), std::move(view));
  out.writable = self.writable;
  return out;
}

/// Defers the release of another reference to the data, as in an export: the object keeps its own.
void release_after_stream(const PyDeviceArray& self, nb::handle stream, OnCapture on_capture) {
  const Stream on = stream_of(stream, (**self.shared)->device_type);
  DeviceArray view = unwrap(self.shared->view());
  unwrap(call_foreign([&] { return release_after(view, on, on_capture); }));
}

nb::object pending() {
  PendingReleases found = unwrap(pending_releases());
  return nb::module_::import_("fletching._pending")
      .attr("PendingReleases")(found.pending, found.refused, found.running, found.leaked,
                               to_str(found.last_refusal), found.inherited_events);
}

/// Runs as an atexit function, because a later release leaks Python objects.
void await_releases() {
  constexpr std::chrono::seconds kLongest{2};
  constexpr std::chrono::milliseconds kStep{1};
  const auto end = std::chrono::steady_clock::now() + kLongest;
  const NoGil released;
  const auto is_done = [] {
    FletchingReleaseCounts counts;
    FletchingPendingReleases(&counts, nullptr);
    return counts.pending + counts.running == 0;
  };
  while (!is_done() && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(kStep);
  }
}

}  // namespace

GivenStream read_stream(nb::handle stream) {
  const nb::object given =
      PyLong_CheckExact(stream.ptr()) || stream.is_none() ? nb::borrow(stream) : number_of(stream);
  if (PyIndex_Check(given.ptr()) == 0 || PyBool_Check(given.ptr())) {
    raise_type_error(
        "stream: expected a number, or an object with __cuda_stream__, ptr, handle or "
        "cuda_stream, got " +
        name_of_type(stream.type()));
  }
  const nb::object number = nb::steal(PyNumber_Index(given.ptr()));
  if (!number.is_valid()) throw nb::python_error();
  const bool is_object = !given.is(stream);
  int overflow = 0;
  const int64_t value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow == 0 && value >= (is_object ? 0 : -1)) {
    return {value, static_cast<uintptr_t>(value), is_object};
  }
  // Handles have one bit more than integers.
  const unsigned long long handle = overflow > 0 ? PyLong_AsUnsignedLongLong(number.ptr()) : 0;
  PyErr_Clear();
  if (overflow <= 0 || handle >= UINTPTR_MAX) raise_no_handle();
  return {INT64_MAX, static_cast<uintptr_t>(handle), is_object};
}

Stream stream_of(nb::handle stream, ArrowDeviceType type) {
  const GivenStream given = read_stream(stream);
  if (given.number < 0) raise_no_handle();
  return {type, reinterpret_cast<void*>(given.handle)};
}

void bind_on_capture(nb::module_& module) {
  nb::enum_<OnCapture>(module, "OnCapture",
                       "The behavior of an operation on a stream that is being captured into a\n"
                       "CUDA or HIP graph. It has no effect on other streams.")
      .value("REFUSE", OnCapture::kRefuse,
             "Raises EBUSY before any call that would invalidate the capture.")
      .value("EXTERNAL", OnCapture::kExternalEvent,
             "The graph waits for the event, or records it, each time it is launched. Keep the\n"
             "array until the graph and everything instantiated from it are destroyed. Until the\n"
             "first launch, an event that the graph records counts as completed. Raises ENOTSUP\n"
             "before CUDA 11.1 and ROCm 7.0.")
      .value("KEEP", OnCapture::kKeep,
             "For release_after and an array that the graph does not read: keeps the data until\n"
             "the capture has ended and the current work on the stream is done. The stream must\n"
             "live until then. Other operations behave as with REFUSE.");
}

void bind_streams(nb::module_& module) {
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&await_releases));
  module.def("pending_releases", &pending,
             nb::sig("def pending_releases() -> fletching._pending.PendingReleases"),
             "Returns counts of the arrays whose release waits for a stream: those of\n"
             "release_after and of exchanges through the CUDA Array Interface. At exit, the\n"
             "interpreter waits up to two seconds for the pending and running ones.");
  nb::borrow<nb::class_<PyDeviceArray>>(nb::type<PyDeviceArray>())
      .def("export_with_event", &export_with_event_on, nb::arg("stream").none(), nb::kw_only(),
           nb::arg("on_capture").noconvert() = OnCapture::kRefuse,
           nb::sig("def export_with_event(self, stream: object, *, on_capture: OnCapture = ...) -> "
                   "DeviceArray"),
           "Returns the same data with an event that completes when the current work on the\n"
           "stream is done, for data that this work still writes. The stream first waits for\n"
           "the event of the array. The result owns the event; the context of the stream must\n"
           "outlive it. Raises Error: EBUSY for a stream that is being captured, unless\n"
           "`on_capture` is OnCapture.EXTERNAL; ENOTSUP for devices other than those of CUDA,\n"
           "HIP and OpenCL.")
      .def("release_after", &release_after_stream, nb::arg("stream").none(), nb::kw_only(),
           nb::arg("on_capture").noconvert() = OnCapture::kRefuse,
           nb::sig(
               "def release_after(self, stream: object, *, on_capture: OnCapture = ...) -> None"),
           "Keeps the data until the current work on the stream is done. Call it before you\n"
           "drop an array that your own work still reads. Does not block. The release may run\n"
           "on another thread. Raises Error: EBUSY for a stream that is being captured, because\n"
           "each launch of the graph reads the data, unless `on_capture` is OnCapture.KEEP;\n"
           "ENOTSUP as in export_with_event.");
}

}  // namespace fletching::python
