// SPDX-License-Identifier: Apache-2.0
//
// DLPack's function table, __dlpack_c_exchange_api__, as producer and as consumer.
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "dlpack_common.hpp"
#include "fletching/detail/dlpack_layout.hpp"

namespace fletching::python {
namespace {

constinit Name kAttribute("__dlpack_c_exchange_api__");
constexpr const char* kCapsule = "dlpack_exchange_api";
constexpr std::align_val_t kAlignment{256};  // of DLTensor.data

// --- Producer ---

/// A tensor with new memory.
struct Allocated {
  DLManagedTensorVersioned managed{};
  std::vector<int64_t> extents;  // shape and strides
  void* bytes = nullptr;

  Allocated() = default;
  Allocated(const Allocated&) = delete;
  Allocated& operator=(const Allocated&) = delete;
  ~Allocated() { ::operator delete(bytes, kAlignment); }
  static void destroy(DLManagedTensorVersioned* self) noexcept {
    delete static_cast<Allocated*>(self->manager_ctx);
  }
};

/// Throws without memory.
Result<DLManagedTensorVersioned*> allocate_like(const DLTensor& prototype) {
  if (prototype.device.device_type != kDLCPU) {
    return Error(ENOTSUP, "DLTensor.device: not supported: expected the CPU, got " +
                              device_name(prototype.device.device_type));
  }
  if (prototype.ndim < 0 || (prototype.ndim > 0 && prototype.shape == nullptr)) {
    return Error(EINVAL, "DLTensor.shape: invalid: expected ndim sizes");
  }
  auto made = std::make_unique<Allocated>();
  const auto dimensions = static_cast<size_t>(prototype.ndim);
  made->extents.resize(2 * dimensions);
  uint64_t bits = uint64_t{prototype.dtype.bits} * prototype.dtype.lanes;
  int64_t step = 1;
  for (size_t i = dimensions; i-- > 0;) {
    const int64_t extent = prototype.shape[i];
    made->extents[i] = extent;
    made->extents[dimensions + i] = step;
    if (extent < 0 || __builtin_mul_overflow(bits, static_cast<uint64_t>(extent), &bits)) {
      return Error(EINVAL, "DLTensor.shape: invalid: expected less than 2^64 bits");
    }
    if (extent > 1 && bits != 0) step *= extent;
  }
  if (bits != 0) made->bytes = ::operator new((bits + 7) / 8, kAlignment);
  made->managed.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  made->managed.manager_ctx = made.get();
  made->managed.deleter = &Allocated::destroy;
  DLTensor& tensor = made->managed.dl_tensor;
  tensor = prototype;
  tensor.data = made->bytes;
  tensor.byte_offset = 0;
  tensor.shape = made->extents.data();
  tensor.strides = made->extents.data() + dimensions;
  return &made.release()->managed;
}

/// Without the GIL: set_error takes it where it has to.
int allocate(DLTensor* prototype, DLManagedTensorVersioned** out, void* error_ctx,
             void (*set_error)(void*, const char*, const char*)) noexcept {
  *out = nullptr;
  auto made = detail::guarded([&] { return allocate_like(*prototype); });
  if (made.ok()) {
    *out = *made;
    return 0;
  }
  const bool is_memory = made.error().code() == ENOMEM;
  set_error(error_ctx, is_memory ? "MemoryError" : "BufferError", made.error().message().c_str());
  return -1;
}

/// Runs `body`, and sets the Python exception that leaves it: none may reach C.
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

/// What the caller has put on our work stream, the default one, is before the event of the array.
int to_py_object(DLManagedTensorVersioned* tensor, void** out) noexcept {
  *out = nullptr;
  return to_result([&] {
    DlpackTensor owned(tensor);
    ConsumerStream stream;
    if (tensor->version.major == DLPACK_MAJOR_VERSION) {
      stream = unwrap(read_dlpack_stream(tensor->dl_tensor.device.device_type, {}));
    }
    *out = nb::cast(import_tensor(std::move(owned), stream, {})).release().ptr();
  });
}

/// The default stream, behind which every export is ordered.
int current_work_stream(DLDeviceType /*type*/, int32_t /*id*/, void** out) noexcept {
  *out = nullptr;
  return 0;
}

DLPackExchangeAPI table{
    .header = {.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION}, .prev_api = nullptr},
    .managed_tensor_allocator = &allocate,
    .managed_tensor_from_py_object_no_sync = &from_py_object,
    .managed_tensor_to_py_object_no_sync = &to_py_object,
    .dltensor_from_py_object_no_sync =
        nullptr,  // a borrowed tensor would have no copy of the shape
    .current_work_stream = &current_work_stream,
};

// --- Consumer ---

/// The table of the type, if there is one of a version and with the functions that are needed.
const DLPackExchangeAPI* table_of(nb::handle type) {
  const nb::object capsule = find_attribute(type, kAttribute);
  if (!capsule.is_valid() || !PyCapsule_IsValid(capsule.ptr(), kCapsule)) return nullptr;
  auto* header =
      static_cast<DLPackExchangeAPIHeader*>(PyCapsule_GetPointer(capsule.ptr(), kCapsule));
  while (header != nullptr && header->version.major != DLPACK_MAJOR_VERSION) {
    header = header->prev_api;
  }
  auto* found = reinterpret_cast<DLPackExchangeAPI*>(header);
  const bool usable = found != nullptr && found->managed_tensor_from_py_object_no_sync != nullptr &&
                      found->current_work_stream != nullptr;
  return usable ? found : nullptr;
}

void check_result(int result, const char* function) {
  if (result == 0) return;
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  raise(Error(EIO, std::string(function) + ": expected an exception with the result " +
                       std::to_string(result)));
}

/// The stream that the producer works on now, where the device has streams.
ConsumerStream work_stream(const DLPackExchangeAPI& api, DLDevice device) {
  const Result<ConsumerStream> unordered = read_dlpack_stream(device.device_type, -1);
  if (!unordered.ok()) return {};
  void* handle = nullptr;
  check_result(api.current_work_stream(device.device_type, device.device_id, &handle),
               "current_work_stream");
  return {Ordering::kStream, {device.device_type, handle}};
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
  ConsumerStream stream;
  if (raw != nullptr && raw->version.major == DLPACK_MAJOR_VERSION) {
    stream = work_stream(*api, raw->dl_tensor.device);
  }
  return import_tensor(std::move(tensor), stream, options);
}

void bind_exchange(nb::module_& /*module*/) {
  const nb::object capsule = nb::steal(PyCapsule_New(&table, kCapsule, nullptr));
  if (!capsule.is_valid()) throw nb::python_error();
  nb::type<PyArray>().attr(kAttribute.text()) = capsule;
  nb::type<PyDeviceArray>().attr(kAttribute.text()) = capsule;
}

}  // namespace fletching::python
