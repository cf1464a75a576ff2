// SPDX-License-Identifier: Apache-2.0
//
// Owners of DLPack tensors.
#ifndef FLETCHING_DLPACK_TENSOR_HPP
#define FLETCHING_DLPACK_TENSOR_HPP

#include <utility>

#include "fletching/dlpack.h"
#include "fletching/version.h"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {
/// Owns a DLPack tensor: the destructor calls its deleter once, unless that is NULL.
///
/// Threads: one thread at a time; the deleter may run on any thread.
template <class Managed>
class TensorOwner {
 public:
  using raw_type = Managed;

  TensorOwner() noexcept = default;
  /// Takes over `tensor`, which may be NULL.
  explicit TensorOwner(Managed* tensor) noexcept : tensor_(tensor) {}

  TensorOwner(TensorOwner&& other) noexcept : tensor_(other.detach()) {}
  TensorOwner& operator=(TensorOwner&& other) noexcept {
    TensorOwner(std::move(other)).swap(*this);
    return *this;
  }
  TensorOwner(const TensorOwner&) = delete;
  TensorOwner& operator=(const TensorOwner&) = delete;
  ~TensorOwner() { release(); }

  /// Calls the deleter, unless the owner is empty. Afterwards it is empty.
  void release() noexcept {
    Managed* const last = detach();
    if (last != nullptr && last->deleter != nullptr) last->deleter(last);
  }

  /// Gives the tensor up: the caller, such as a capsule, calls the deleter. Afterwards the owner is
  /// empty. NULL for an empty owner.
  [[nodiscard]] Managed* detach() noexcept { return std::exchange(tensor_, nullptr); }

  void swap(TensorOwner& other) noexcept { std::swap(tensor_, other.tensor_); }

  [[nodiscard]] Managed* get() const noexcept { return tensor_; }
  Managed& operator*() const noexcept { return *tensor_; }
  Managed* operator->() const noexcept { return tensor_; }
  explicit operator bool() const noexcept { return tensor_ != nullptr; }

 private:
  Managed* tensor_ = nullptr;
};

using DlpackTensor = TensorOwner<DLManagedTensorVersioned>;

/// The struct from before DLPack 1.0, which has no version and no flags.
using LegacyDlpackTensor = TensorOwner<DLManagedTensor>;

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_DLPACK_TENSOR_HPP
