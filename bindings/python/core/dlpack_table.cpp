// SPDX-License-Identifier: Apache-2.0
//
// DLPack's function table, __dlpack_c_exchange_api__, as producer and as consumer.
#include <cerrno>
#include <cstdint>
#include <exception>
#include <string>

#include "dlpack_common.hpp"
#include "fletching/tensor.h"

namespace fletching::python {
namespace {

constinit Name kAttribute("__dlpack_c_exchange_api__");
constexpr const char* kCapsule = "dlpack_exchange_api";

// --- Producer ---

/// Runs `body` and converts C++ exceptions to Python exceptions: no exception may reach C.
template <class Body>
int to_result(const Body& body) noexcept {
  try {
    body();
    return 0;
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const nb::builtin_exception& error) {
    PyErr_SetString(PyExc_BufferError, error.what());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return -1;
}

int from_py_object(void* object, DLManagedTensorVersioned** out) noexcept {
  *out = nullptr;
  return to_result([&] { *out = export_by_default(static_cast<PyObject*>(object)).detach(); });
}

/// Work that the caller enqueued on this module's work stream, the default stream, precedes the
/// array's event.
int to_py_object(DLManagedTensorVersioned* tensor, void** out) noexcept {
  *out = nullptr;
  return to_result([&] {
    DlpackTensor owned(tensor);
    ConsumerStream stream{.ordering = Ordering::kNone};
    if (tensor->version.major == DLPACK_MAJOR_VERSION) {
      stream = unwrap(detail::in_operation("from_dlpack", [&] {
        return detail::read_stream(tensor->dl_tensor.device.device_type, {});
      }));
    }
    *out = nb::cast(import_tensor(std::move(owned), stream, {})).release().ptr();
  });
}

/// Returns the default stream; every export is ordered before its later work.
int current_work_stream(DLDeviceType /*type*/, int32_t /*id*/, void** out) noexcept {
  *out = nullptr;
  return 0;
}

DLPackExchangeAPI table{
    .header = {.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION}, .prev_api = nullptr},
    .managed_tensor_allocator = &FletchingTensorAllocate,
    .managed_tensor_from_py_object_no_sync = &from_py_object,
    .managed_tensor_to_py_object_no_sync = &to_py_object,
    .dltensor_from_py_object_no_sync =
        nullptr,  // a borrowed tensor would have no copy of the shape
    .current_work_stream = &current_work_stream,
};

// --- Consumer ---

/// Returns the table's capsule, or something else if the type has none. Makes no exception for a
/// missing attribute: most types have none, and that would take as long as the rest of an import.
nb::object find_table(nb::handle type) {
#if defined(Py_LIMITED_API)
  // PyObject_GetOptionalAttr is in the stable ABI only from Python 3.13.
  static constinit Imported getattr("builtins", "getattr");
  PyObject* const arguments[] = {type.ptr(), kAttribute.get().ptr(), Py_None};
  nb::object found = nb::steal(PyObject_Vectorcall(getattr.get().ptr(), arguments, 3, nullptr));
  if (!found.is_valid()) throw nb::python_error();
  return found;
#else
  return nb::borrow(
      _PyType_Lookup(reinterpret_cast<PyTypeObject*>(type.ptr()), kAttribute.get().ptr()));
#endif
}

/// Returns the type's table, if its version and functions are sufficient.
const DLPackExchangeAPI* table_of(nb::handle type) {
  const nb::object capsule = find_table(type);
  if (!capsule.is_valid() || !PyCapsule_IsValid(capsule.ptr(), kCapsule)) return nullptr;
  const DLPackExchangeAPI* const found = FletchingExchangeFind(
      static_cast<DLPackExchangeAPIHeader*>(PyCapsule_GetPointer(capsule.ptr(), kCapsule)));
  const bool usable = found != nullptr && found->managed_tensor_from_py_object_no_sync != nullptr &&
                      found->current_work_stream != nullptr;
  return usable ? found : nullptr;
}

/// Raises the Python exception that the function set, or an Error if it set none.
void check_result(int result, const char* function) {
  if (result == 0) return;
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  raise(Error(EIO, std::string(function) + ": expected an exception with the result " +
                       std::to_string(result)));
}

/// Returns the producer's current work stream; nullopt if the table cannot name one.
std::optional<ConsumerStream> work_stream(const DLPackExchangeAPI& api, DLDevice device) {
  FletchingTensorStream found{};
  FletchingMessage message;
  const int code = FletchingExchangeWorkStream(&api, device, &found, &message);
  if (code == ENOTSUP) return std::nullopt;
  if (code != 0) {
    if (PyErr_Occurred() != nullptr) throw nb::python_error();
    raise(Error(code, message.text));
  }
  return ConsumerStream{static_cast<Ordering>(found.ordering),
                        {device.device_type, found.stream.handle}};
}

}  // namespace

std::optional<PyDeviceArray> import_by_table(nb::handle object,
                                             const DlpackImportOptions& options) {
  const DLPackExchangeAPI* const api = table_of(object.type());
  if (api == nullptr) return std::nullopt;
  DLManagedTensorVersioned* raw = nullptr;
  check_result(api->managed_tensor_from_py_object_no_sync(object.ptr(), &raw),
               "managed_tensor_from_py_object_no_sync");
  DlpackTensor tensor(raw);
  std::optional<ConsumerStream> stream = ConsumerStream{.ordering = Ordering::kNone};
  if (raw != nullptr && raw->version.major == DLPACK_MAJOR_VERSION) {
    stream = work_stream(*api, raw->dl_tensor.device);
  }
  if (!stream) return std::nullopt;  // __dlpack__ makes the host wait
  return import_tensor(std::move(tensor), *stream, options);
}

void bind_exchange(nb::module_& /*module*/) {
  const nb::object capsule = nb::steal(PyCapsule_New(&table, kCapsule, nullptr));
  if (!capsule.is_valid()) throw nb::python_error();
  nb::type<PyArray>().attr(kAttribute.text()) = capsule;
  nb::type<PyDeviceArray>().attr(kAttribute.text()) = capsule;
}

}  // namespace fletching::python
