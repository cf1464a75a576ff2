// SPDX-License-Identifier: Apache-2.0
//
// Owners of DLPack tensors.
#ifndef FLETCHING_DLPACK_TENSOR_HPP
#define FLETCHING_DLPACK_TENSOR_HPP

#include <utility>

#include "fletching/detail/handover.hpp"
#include "fletching/dlpack.h"
#include "fletching/version.h"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {
/// Owns a DLPack tensor. The destructor calls its deleter once, unless the deleter is NULL.
///
/// Threads: one thread at a time. The deleter may run on any thread.
template <class Managed>
class TensorOwner {
 public:
  using raw_type = Managed;

  TensorOwner() noexcept = default;
  /// Takes ownership of `tensor`, which may be NULL.
  explicit TensorOwner(Managed* tensor) noexcept : tensor_(detail::imported(tensor)) {}
  TensorOwner(Managed* tensor, detail::Exported /*tag*/) noexcept
      : tensor_(detail::exported(tensor)) {}

  TensorOwner(TensorOwner&& other) noexcept : tensor_(other.detach()) {}
  TensorOwner& operator=(TensorOwner&& other) noexcept {
    TensorOwner(std::move(other)).swap(*this);
    return *this;
  }
  TensorOwner(const TensorOwner&) = delete;
  TensorOwner& operator=(const TensorOwner&) = delete;
  ~TensorOwner() { release(); }

  /// Calls the deleter, unless the owner is empty. The owner is empty afterwards.
  void release() noexcept {
    Managed* const last = detach();
    if (last != nullptr && last->deleter != nullptr) last->deleter(last);
  }

  /// Transfers ownership to the caller, for example a capsule, which must call the deleter. Returns
  /// NULL if the owner is empty. The owner is empty afterwards.
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
