// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dlpack_tensor.hpp"
#include "fletching/stream_adapters.hpp"

namespace fletching::python {
namespace {

using Device = std::pair<int32_t, int32_t>;
using Version = std::pair<uint32_t, uint32_t>;

/// Reads a pair of integers. With the stable ABI, nanobind's conversion of a tuple allocates
/// memory, and reports a failure as a wrong type.
template <class Pair>
bool read_pair(nb::handle given, Pair& pair) {
  if (!PyTuple_Check(given.ptr()) || PyTuple_Size(given.ptr()) != 2) {
    return nb::try_cast(given, pair);
  }
  return nb::try_cast(nb::handle(PyTuple_GetItem(given.ptr(), 0)), pair.first) &&
         nb::try_cast(nb::handle(PyTuple_GetItem(given.ptr(), 1)), pair.second);
}

/// The same for an argument, which may be None.
template <class Pair>
std::optional<Pair> pair_or_none(nb::handle given, const char* what) {
  Pair pair;
  if (given.is_none()) return {};
  if (read_pair(given, pair)) return pair;
  raise_type_error(std::string(what) + ": expected a pair of integers or None");
}

// --- Export ---

/// The consumer's request.
struct Request {
  ConsumerStream stream;
  bool copies = false;
  bool legacy = false;  // the struct without version and flags
};

constexpr const char* kExport = "__dlpack__";
constexpr const char* kImport = "from_dlpack";

/// The same as read_dlpack_stream, with the operation of this package in its error.
Result<ConsumerStream> read_number(const char* operation, ArrowDeviceType device,
                                   std::optional<int64_t> number) {
  return detail::in_operation(operation, [&] { return detail::read_stream(device, number); });
}

/// Reads a stream argument of DLPack, which allows None and -1, and on CUDA not 0.
Result<ConsumerStream> dlpack_stream(const char* operation, ArrowDeviceType device,
                                     nb::handle stream) {
  if (stream.is_none()) return read_number(operation, device, {});
  const GivenStream given = read_stream(stream);
  const bool is_default = given.is_object && given.number == 0;
  const bool is_cuda = DeviceType(device).runtime() == Runtime::kCuda;
  Result<ConsumerStream> read =
      read_number(operation, device, is_default && is_cuda ? 1 : given.number);
  if (read.ok() && given.number == INT64_MAX) {
    read->stream = {device, reinterpret_cast<void*>(given.handle)};
  }
  return read;
}

Request read_request(const ArrowDeviceArray& array, bool writable, nb::handle stream,
                     const std::optional<Version>& max_version, const std::optional<Device>& device,
                     const std::optional<bool>& copy) {
  const DLDevice own = or_buffer_error(to_dlpack_device(array.device_type, array.device_id));
  const bool elsewhere =
      device && *device != Device(static_cast<int32_t>(own.device_type), own.device_id);
  if (elsewhere && device->first != kDLCPU) {
    raise_buffer_error("__dlpack__: dl_device: expected the device of the array, or the CPU");
  }
  Request request;
  request.stream = or_buffer_error(dlpack_stream(kExport, array.device_type, stream));
  request.legacy = !max_version || max_version->first < DLPACK_MAJOR_VERSION;
  // The struct without flags cannot mark memory as read-only.
  request.copies = copy.value_or(false) || elsewhere || (request.legacy && !writable);
  if (!request.copies) return request;
  if (!copy.value_or(true)) {
    raise_buffer_error(
        "__dlpack__: copy: expected a copy to be allowed, because memory is on another device or "
        "is read-only");
  }
  if (!is_accessible(array.device_type, ARROW_DEVICE_CPU)) {
    raise_buffer_error("__dlpack__: copy: expected memory that the CPU can read");
  }
  request.stream = {Ordering::kHost, {array.device_type, nullptr}};
  return request;
}

/// The same as to_dlpack, with the operation of this package in its error.
Result<DlpackTensor> export_versioned(const char* operation, const ArrowSchema& schema,
                                      DeviceArray& array, const ConsumerStream* stream,
                                      const DlpackExportOptions& options) {
  return detail::export_tensor<DLManagedTensorVersioned>(operation, &FletchingTensorExport, schema,
                                                         array, stream, options);
}

nb::object export_tensor(const ArrowSchema& schema, DeviceArray array, const Request& request) {
  if (request.legacy && !request.copies) {
    return to_capsule(or_buffer_error(call_foreign([&] {
      return detail::export_tensor<DLManagedTensor>(kExport, &FletchingLegacyTensorExport, schema,
                                                    array, &request.stream, {.read_only = false});
    })));
  }
  DlpackTensor tensor = or_buffer_error(
      call_foreign([&] { return export_versioned(kExport, schema, array, &request.stream, {}); }));
  if (!request.copies) return to_capsule(std::move(tensor));
  if (request.legacy) {
    return to_capsule(without_gil([&] { return copy_of<DLManagedTensor>(*tensor); }));
  }
  return to_capsule(without_gil([&] { return copy_of<DLManagedTensorVersioned>(*tensor); }));
}

DeviceArray device_view(const PyDeviceArray& self) { return or_buffer_error(self.shared->view()); }
DeviceArray device_view(const PyArray& self) {
  return to_device_array(or_buffer_error(self.shared->view()));
}

bool is_writable(const PyArray& /*self*/) { return false; }
bool is_writable(const PyDeviceArray& self) { return self.writable; }

template <class Object>
nb::object export_dlpack(nb::handle object, nb::handle stream, nb::handle max_version,
                         nb::handle dl_device, const std::optional<bool>& copy) {
  auto& self = nb::cast<Object&>(object);
  DeviceArray array = device_view(self);
  const Request request =
      read_request(*array.get(), is_writable(self), stream,
                   pair_or_none<Version>(max_version, "__dlpack__: max_version"),
                   pair_or_none<Device>(dl_device, "__dlpack__: dl_device"), copy);
  const bool varies = array->device_type != ARROW_DEVICE_CPU || array->sync_event != nullptr;
  if (varies || request.copies || request.legacy)
    return export_tensor(schema_of(self), std::move(array), request);
  const auto owner = std::make_shared<const DlpackTensor>(
      or_buffer_error(export_versioned(kExport, schema_of(self), array, nullptr, {})));
  std::shared_ptr<const DLManagedTensorVersioned> tensor(owner, owner->get());
  const nb::ft_object_guard guard(object);
  if (!self.tensor) self.tensor.emplace(std::move(tensor));
  PyObject* capsule = capsule_of_same(**self.tensor);
  if (capsule == nullptr) throw nb::python_error();
  return nb::steal(capsule);
}

constinit Name kGeneralMethod("_dlpack");
constinit Name kStream("stream");
constinit Name kMaxVersion("max_version");
constinit Name kDlDevice("dl_device");
constinit Name kCopy("copy");

bool is_version(PyObject* given) noexcept {
  if (!PyTuple_Check(given) || PyTuple_Size(given) != 2) return false;
  int overflows[2] = {};
  const int64_t major = PyLong_Check(PyTuple_GetItem(given, 0))
                            ? PyLong_AsLongLongAndOverflow(PyTuple_GetItem(given, 0), overflows)
                            : -1;
  const int64_t minor = PyLong_Check(PyTuple_GetItem(given, 1))
                            ? PyLong_AsLongLongAndOverflow(PyTuple_GetItem(given, 1), overflows + 1)
                            : -1;
  return major >= DLPACK_MAJOR_VERSION && major <= UINT32_MAX && minor >= 0 && minor <= UINT32_MAX;
}

/// Returns whether the keywords of __dlpack__ request only a struct with flags.
bool demands_nothing(PyObject* const* values, PyObject* names) {
  bool has_version = false;
  const Py_ssize_t count = names == nullptr ? 0 : PyTuple_Size(names);
  for (Py_ssize_t i = 0; i < count; ++i) {
    const nb::handle name = PyTuple_GetItem(names, i);
    if (name.is(kMaxVersion.get()) && is_version(values[i])) {
      has_version = true;
    } else if (values[i] != Py_None ||
               !(name.is(kStream.get()) || name.is(kDlDevice.get()) || name.is(kCopy.get()))) {
      return false;
    }
  }
  return has_version;
}

/// Implements __dlpack__. nanobind's argument parsing would take longer than the export, so this
/// returns the cached tensor if possible and calls the general method otherwise.
template <class Object>
PyObject* dlpack_method(PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                        PyObject* names) noexcept {
  return no_throw([&] {
    if (count == 0 && demands_nothing(arguments, names)) {
      const nb::ft_object_guard guard(self);
      const OwnTensor& tensor = nb::inst_ptr<Object>(self)->tensor;
      if (tensor) return capsule_of_same(**tensor);
    }
    std::vector<PyObject*> all{self};
    const Py_ssize_t keywords = names == nullptr ? 0 : PyTuple_Size(names);
    all.insert(all.end(), arguments, arguments + count + keywords);
    return PyObject_VectorcallMethod(kGeneralMethod.get().ptr(), all.data(),
                                     static_cast<size_t>(count) + 1, names);
  });
}

constexpr const char* kText =
    "__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, copy=None)\n"
    "--\n"
    "\n"
    "Returns a dltensor_versioned capsule, or dltensor without max_version (1, 0), which owns a\n"
    "share of the data. The tensor is one-dimensional and read-only. Makes `stream` wait for the\n"
    "event, or the host on a device without streams; `stream` is as in wait_on, or -1 for no\n"
    "synchronization. Raises BufferError for nulls, for types that are not numbers, for devices\n"
    "that DLPack lacks, and for a copy that is impossible or not allowed. Python specification\n"
    "for DLPack.";

template <class Object>
PyMethodDef dlpack_definition{
    "__dlpack__",
    reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&dlpack_method<Object>)),
    METH_FASTCALL | METH_KEYWORDS, kText};

/// A tensor for one consumer, without pending work.
struct ReadyTensor {
  nb::object capsule;
  Device device;
};

/// Implements __dlpack__ of a ReadyTensor. Any request is met, so the arguments are not parsed.
PyObject* ready_dlpack(PyObject* self, PyObject* const* /*arguments*/, Py_ssize_t /*count*/,
                       PyObject* /*names*/) noexcept {
  return nb::inst_ptr<ReadyTensor>(self)->capsule.inc_ref().ptr();
}

PyMethodDef ready_definition{
    "__dlpack__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&ready_dlpack)),
    METH_FASTCALL | METH_KEYWORDS, nullptr};

constinit Imported kNumpyImport("numpy", "from_dlpack");

template <class Object>
nb::object to_numpy(const Object& self, bool writable, bool as_storage) {
  if (writable && !is_writable(self)) {
    raise_buffer_error(
        "to_numpy: writable: memory is read-only: expected memory that its producer marks as "
        "writable");
  }
  DeviceArray array = device_view(self);
  if (!is_accessible(array->device_type, ARROW_DEVICE_CPU)) {
    raise_buffer_error("to_numpy: expected memory that the CPU can read");
  }
  const ConsumerStream host{Ordering::kHost, {array->device_type, nullptr}};
  const DLDevice device = or_buffer_error(to_dlpack_device(array->device_type, array->device_id));
  DlpackTensor tensor = or_buffer_error(call_foreign([&] {
    return export_versioned("to_numpy", schema_of(self), array, &host,
                            {.read_only = !writable, .as_storage = as_storage});
  }));
  ReadyTensor ready{to_capsule(std::move(tensor)), {device.device_type, device.device_id}};
  return call_python([&] { return kNumpyImport.get()(nb::cast(std::move(ready))); });
}

/// Implements the call of numpy.asarray.
template <class Object>
nb::object array_of_numpy(const Object& self, nb::handle dtype, nb::handle copy) {
  const nb::object values = to_numpy(self, false, false);
  if (dtype.is_none() && copy.is_none()) return values;
  const char* const method = copy.is_none() ? "asarray" : "array";
  nb::dict keywords = empty<nb::dict>();
  keywords["dtype"] = dtype;
  if (!copy.is_none()) keywords["copy"] = copy;
  return nb::module_::import_("numpy").attr(method)(values, **keywords);
}

template <class Object>
Device device_of(const Object& self) {
  const DeviceArray array = device_view(self);
  const DLDevice device = or_buffer_error(to_dlpack_device(array->device_type, array->device_id));
  return {static_cast<int32_t>(device.device_type), device.device_id};
}

// --- Import ---

std::string text_of(const Device& device) {
  return device_name(device.first) + ":" + std::to_string(device.second);
}

/// Rejects a tensor on another device than the producer reported: its work would be ordered on the
/// wrong device.
void check_device(const DLDevice& device, const Device& source) {
  const Device got(static_cast<int32_t>(device.device_type), device.device_id);
  if (got == source || (got.first == kDLCPU && source.first == kDLCPU)) return;
  raise_buffer_error("from_dlpack: device of the tensor: expected " + text_of(source) + ", got " +
                     text_of(got));
}

/// Returns the tensor in a capsule, which is renamed so that no other consumer takes it.
template <class Managed>
Tensor<Managed> take_tensor(nb::handle capsule, const Device& source) {
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule.ptr(), Names<Managed>::kNew));
  if (managed != nullptr) check_device(managed->dl_tensor.device, source);
  if (managed == nullptr || PyCapsule_SetName(capsule.ptr(), Names<Managed>::kUsed) != 0) {
    throw nb::python_error();
  }
  return Tensor<Managed>(managed);
}

constinit Name kMethod("__dlpack__");

using Keywords = std::vector<std::pair<Name*, nb::object>>;  // at most DLPack's four

/// Calls __dlpack__. nanobind would make a bound method and a dictionary.
nb::object call_method(nb::handle object, const Keywords& keywords) {
  PyObject* arguments[5] = {object.ptr()};
  const nb::object names = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(keywords.size())));
  if (!names.is_valid()) throw nb::python_error();
  Py_ssize_t at = 0;
  for (const auto& [name, value] : keywords) {
    PyTuple_SetItem(names.ptr(), at, name->get().inc_ref().ptr());
    arguments[++at] = value.ptr();
  }
  nb::object result = call_python([&] {
    return nb::steal(PyObject_VectorcallMethod(kMethod.get().ptr(), arguments, 1, names.ptr()));
  });
  if (!result.is_valid()) throw nb::python_error();
  return result;
}

/// Calls __dlpack__ with the newer keywords, or without them if the producer does not know them.
nb::object call_dlpack(nb::handle object, const Keywords& keywords, nb::handle device,
                       nb::handle copy) {
  Keywords newer = keywords;
  newer.emplace_back(&kMaxVersion, nb::make_tuple(DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION));
  if (!device.is_none()) newer.emplace_back(&kDlDevice, nb::borrow(device));
  if (!copy.is_none()) newer.emplace_back(&kCopy, nb::borrow(copy));
  try {
    return call_method(object, newer);
  } catch (nb::python_error& error) {
    // Not a subclass: producers raise those for data that they cannot export.
    const bool unknown_keyword = error.type().is(PyExc_TypeError);
    const bool older = unknown_keyword && device.is_none() && copy.is_none();
    if (!older) throw;
  }
  return call_method(object, keywords);
}

constinit Name kDeviceMethod("__dlpack_device__");

Device device_of_producer(nb::handle object) {
  const nb::object device = call_protocol(object, kDeviceMethod);
  if (!device.is_valid()) {
    // As the array API requires, instead of a TypeError.
    throw nb::attribute_error(
        "from_dlpack: object has no tensor: expected __dlpack__ and __dlpack_device__");
  }
  Device source;
  if (read_pair(device, source)) return source;
  raise_type_error("__dlpack_device__: result is wrong: expected a pair of integers");
}

PyDeviceArray import_dlpack(nb::handle object, nb::handle given_device,
                            const std::optional<bool>& copy, nb::handle stream, bool as_storage) {
  const auto device = pair_or_none<Device>(given_device, "from_dlpack: device");
  DlpackImportOptions options;
  options.strided = copy.value_or(true) ? Strided::kCopy : Strided::kRefuse;
  options.as_storage = as_storage;
  if (!device && !copy && stream.is_none()) {
    if (auto array = import_by_table(object, options)) return *std::move(array);
  }
  const Device source = device ? *device : device_of_producer(object);
  const ConsumerStream consumer = unwrap(dlpack_stream(kImport, source.first, stream));
  Keywords keywords;
  if (consumer.ordering == Ordering::kStream) {
    keywords.emplace_back(&kStream,
                          nb::cast(reinterpret_cast<std::uintptr_t>(consumer.stream.handle())));
  }
  if (consumer.ordering == Ordering::kNone) keywords.emplace_back(&kStream, nb::cast(-1));
  const nb::object capsule = call_dlpack(object, keywords, nb::cast(device), nb::cast(copy));
  if (PyCapsule_IsValid(capsule.ptr(), Names<DLManagedTensorVersioned>::kNew)) {
    return import_tensor(take_tensor<DLManagedTensorVersioned>(capsule, source), consumer, options);
  }
  if (PyCapsule_IsValid(capsule.ptr(), Names<DLManagedTensor>::kNew)) {
    return import_tensor(take_tensor<DLManagedTensor>(capsule, source), consumer, options);
  }
  raise_type_error(
      "__dlpack__: result is wrong: expected a capsule dltensor_versioned or dltensor that is not "
      "used");
}

template <class Object>
void bind_export() {
  auto type = nb::borrow<nb::class_<Object>>(nb::type<Object>());
  add_method(type, dlpack_definition<Object>);
  type.def(kGeneralMethod, &export_dlpack<Object>, nb::kw_only(), nb::arg("stream") = nb::none(),
           nb::arg("max_version") = nb::none(), nb::arg("dl_device") = nb::none(),
           nb::arg("copy") = nb::none())
      .def("__array__", &array_of_numpy<Object>, nb::arg("dtype") = nb::none(),
           nb::arg("copy") = nb::none(),
           nb::sig("def __array__(self, dtype: numpy.typing.DTypeLike | None = None, copy: bool | "
                   "None = None) -> numpy.typing.NDArray[typing.Any]"),
           "Implements numpy.asarray; see to_numpy.")
      .def("__dlpack_device__", &device_of<Object>,
           "Returns the DLPack device type and id. Raises BufferError for a device that DLPack\n"
           "lacks.")
      .def("to_numpy", &to_numpy<Object>, nb::kw_only(), nb::arg("writable") = false,
           nb::arg("as_storage") = false,
           nb::sig("def to_numpy(self, *, writable: bool = False, as_storage: bool = False) -> "
                   "numpy.typing.NDArray[typing.Any]"),
           "Returns the values as a NumPy array, which keeps them alive. Does not copy; waits\n"
           "for the event. Raises BufferError for nulls, for types that are not numbers, for\n"
           "memory that the CPU cannot read, and for `writable` unless a producer has marked the\n"
           "memory as writable. `as_storage` returns times and decimals as the integers that\n"
           "store them.");
}

}  // namespace

DlpackTensor export_by_default(nb::handle object) {
  const auto export_it = [](const auto& self) {
    DeviceArray array = device_view(self);
    const ConsumerStream stream = or_buffer_error(read_number(kExport, array->device_type, {}));
    return or_buffer_error(call_foreign(
        [&] { return export_versioned(kExport, schema_of(self), array, &stream, {}); }));
  };
  if (nb::isinstance<PyDeviceArray>(object)) {
    return export_it(nb::cast<const PyDeviceArray&>(object));
  }
  if (nb::isinstance<PyArray>(object)) return export_it(nb::cast<const PyArray&>(object));
  raise_type_error("__dlpack_c_exchange_api__: expected an array of fletching");
}

void bind_dlpack(nb::module_& module) {
  nb::class_<ReadyTensor> ready(module, "_ReadyTensor", nb::is_final());
  ready.def("__dlpack_device__", [](const ReadyTensor& self) { return self.device; });
  add_method(ready, ready_definition);
  bind_export<PyArray>();
  bind_export<PyDeviceArray>();
  module.def(
      "from_dlpack", &import_dlpack, nb::arg("object").none(), nb::kw_only(),
      nb::arg("device") = nb::none(), nb::arg("copy") = nb::none(), nb::arg("stream") = nb::none(),
      nb::arg("as_storage") = false,
      nb::sig("def from_dlpack(object: object, *, device: tuple[int, int] | None = None, copy: "
              "bool | None = None, stream: object = None, as_storage: bool = False) -> "
              "DeviceArray"),
      "Imports the tensor of an object that has __dlpack__. The first dimension is the length.\n"
      "Does not copy unless the elements are not contiguous or `copy` is True. `stream` is your\n"
      "stream, as in wait_on, or -1 for no synchronization: the producer makes it wait for its\n"
      "work, and the event of the array completes after both. The tensor is released with the\n"
      "array. Raises TypeError for a type that Arrow lacks and for a wrong capsule; BufferError\n"
      "for a copy that is not allowed, for a malformed tensor and for a tensor on another\n"
      "device than `__dlpack_device__` returns; Error for an invalid stream, such as 0 on CUDA,\n"
      "and for a driver error. `as_storage` imports complex numbers and other types that Arrow\n"
      "lacks as lists of their storage type.");
}

}  // namespace fletching::python
