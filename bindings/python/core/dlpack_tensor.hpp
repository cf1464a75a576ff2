// SPDX-License-Identifier: Apache-2.0
//
// Tensors in Python capsules, and copies of tensors. DLPack.
#ifndef FLETCHING_PYTHON_DLPACK_TENSOR_HPP
#define FLETCHING_PYTHON_DLPACK_TENSOR_HPP

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "dlpack_common.hpp"

namespace fletching::python {

template <class Managed>
struct Names;
template <>
struct Names<DLManagedTensor> {
  static constexpr const char* kNew = "dltensor";
  static constexpr const char* kUsed = "used_dltensor";
};
template <>
struct Names<DLManagedTensorVersioned> {
  static constexpr const char* kNew = "dltensor_versioned";
  static constexpr const char* kUsed = "used_dltensor_versioned";
};

template <class Managed>
using Tensor = TensorOwner<Managed>;

template <class Managed>
void destroy_tensor_capsule(PyObject* capsule) noexcept {
  // The capsule of a consumed tensor has been renamed.
  if (!PyCapsule_IsValid(capsule, Names<Managed>::kNew)) return;
  const nb::error_scope pending;
  Tensor<Managed> tensor(
      static_cast<Managed*>(PyCapsule_GetPointer(capsule, Names<Managed>::kNew)));
  std::optional<NoGil> released;
  if (tensor->dl_tensor.device.device_type != kDLCPU) released.emplace();
  tensor.release();
}

/// Returns NULL with an exception set on failure.
template <class Managed>
PyObject* new_capsule(Tensor<Managed> tensor) noexcept {
  PyObject* capsule =
      PyCapsule_New(tensor.get(), Names<Managed>::kNew, &destroy_tensor_capsule<Managed>);
  if (capsule != nullptr) static_cast<void>(tensor.detach());
  return capsule;
}

template <class Managed>
nb::object to_capsule(Tensor<Managed> tensor) {
  PyObject* capsule = new_capsule(std::move(tensor));
  if (capsule == nullptr) throw nb::python_error();
  return nb::steal(capsule);
}

/// Another tensor of the same data. It shares the shape and strides of `other` and keeps it alive.
struct Same {
  DLManagedTensorVersioned managed;
  std::shared_ptr<const DLManagedTensorVersioned> other;

  static void destroy(DLManagedTensorVersioned* self) noexcept {
    delete static_cast<Same*>(self->manager_ctx);
  }
};

/// Returns NULL with an exception set on failure.
inline PyObject* capsule_of_same(
    const std::shared_ptr<const DLManagedTensorVersioned>& other) noexcept {
  auto* same = new (std::nothrow) Same{*other, other};
  if (same == nullptr) return PyErr_NoMemory();
  same->managed.manager_ctx = same;
  same->managed.deleter = &Same::destroy;
  return new_capsule(Tensor<DLManagedTensorVersioned>(&same->managed, detail::Exported()));
}

/// A tensor with new CPU memory.
template <class Managed>
struct Copied {
  Managed managed{};
  std::vector<int64_t> extents;  // shape, then strides
  std::unique_ptr<std::byte[]> bytes;

  static void destroy(Managed* self) noexcept { delete static_cast<Copied*>(self->manager_ctx); }
};

inline void mark_copied(DLManagedTensorVersioned& managed, uint64_t flags) {
  managed.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  managed.flags =
      (flags & DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED) | DLPACK_FLAG_BITMASK_IS_COPIED;
}
inline void mark_copied(DLManagedTensor& /*managed*/, uint64_t /*flags*/) {}

/// Copies a tensor that the host may read. An array's tensor is contiguous.
template <class Managed>
Tensor<Managed> copy_of(const DLManagedTensorVersioned& source) {
  const DLTensor& from = source.dl_tensor;
  auto copied = std::make_unique<Copied<Managed>>();
  size_t elements = 1;
  for (int32_t i = 0; i < from.ndim; ++i) elements *= static_cast<size_t>(from.shape[i]);
  const size_t size = (elements * from.dtype.bits * from.dtype.lanes + 7) / 8;
  copied->bytes = std::make_unique<std::byte[]>(size == 0 ? 1 : size);
  const auto* bytes = static_cast<const std::byte*>(from.data);
  if (size != 0) std::memcpy(copied->bytes.get(), bytes + from.byte_offset, size);
  copied->extents.assign(from.shape, from.shape + from.ndim);
  copied->extents.insert(copied->extents.end(), from.strides, from.strides + from.ndim);
  DLTensor& to = copied->managed.dl_tensor;
  to = from;
  to.data = size == 0 ? nullptr : copied->bytes.get();
  to.byte_offset = 0;
  to.device = {kDLCPU, 0};
  to.shape = copied->extents.data();
  to.strides = copied->extents.data() + from.ndim;
  mark_copied(copied->managed, source.flags);
  copied->managed.manager_ctx = copied.get();
  copied->managed.deleter = &Copied<Managed>::destroy;
  return Tensor<Managed>(&copied.release()->managed, detail::Exported());
}

}  // namespace fletching::python

#endif  // FLETCHING_PYTHON_DLPACK_TENSOR_HPP
