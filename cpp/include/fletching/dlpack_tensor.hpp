// SPDX-License-Identifier: Apache-2.0
//
// Owners of DLPack tensors.
#ifndef FLETCHING_DLPACK_TENSOR_HPP
#define FLETCHING_DLPACK_TENSOR_HPP

#include <memory>

#include "fletching/dlpack.h"
#include "fletching/version.h"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {
namespace detail {

struct CallDeleter {
  template <class Managed>
  void operator()(Managed* managed) const noexcept {
    if (managed->deleter != nullptr) managed->deleter(managed);
  }
};

}  // namespace detail

/// Owns a tensor: calls its deleter, once, unless that is NULL. `release()` returns the pointer to
/// somebody else who calls the deleter then, such as a capsule.
using DlpackTensor = std::unique_ptr<DLManagedTensorVersioned, detail::CallDeleter>;

/// The same for the struct from before DLPack 1.0, which has no version and no flags.
using LegacyDlpackTensor = std::unique_ptr<DLManagedTensor, detail::CallDeleter>;

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_DLPACK_TENSOR_HPP
