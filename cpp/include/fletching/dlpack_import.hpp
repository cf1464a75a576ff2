// SPDX-License-Identifier: Apache-2.0
//
// Imports a DLPack tensor as a device array. Copies only on request.
#ifndef FLETCHING_DLPACK_IMPORT_HPP
#define FLETCHING_DLPACK_IMPORT_HPP

#include <cstdint>
#include <utility>

#include "fletching/detail/core.hpp"
#include "fletching/dlpack_stream.hpp"
#include "fletching/dlpack_tensor.hpp"
#include "fletching/dlpack_types.hpp"
#include "fletching/owner.hpp"
#include "fletching/result.hpp"
#include "fletching/tensor.h"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {

/// How to import a tensor whose strides do not match an Arrow array's layout.
enum class Strided : std::uint8_t {
  kRefuse,
  kCopy,  ///< copy the elements to new CPU memory if the host can read the tensor; else refuse
};

/// Options of from_dlpack.
struct DlpackImportOptions {
  Dimensions dimensions = Dimensions::kFixedShapeTensor;
  Strided strided = Strided::kRefuse;
  /// Import types that Arrow lacks as their storage type.
  bool as_storage = false;
};

/// An imported tensor.
struct ImportedTensor {
  Schema schema;      ///< the array's type; it has no name
  DeviceArray array;  ///< without sync_event
  /// The memory is read-only. Always true for a struct without the flag.
  bool read_only = true;
  /// The memory is a copy made for this import, by the producer or by this library.
  bool copied = false;
};

namespace detail {

constexpr std::uint32_t core_options(const DlpackImportOptions& options) noexcept {
  return (options.as_storage ? FLETCHING_TENSOR_AS_STORAGE : 0U) |
         (options.dimensions == Dimensions::kFixedSizeLists ? FLETCHING_TENSOR_LISTS : 0U) |
         (options.strided == Strided::kCopy ? FLETCHING_TENSOR_COPY : 0U);
}

inline constexpr ArrowDeviceType kNoDevice = -1;

/// `function` is the core's function for this struct.
template <class Managed, class Function>
Result<ImportedTensor> import_tensor(Function function, TensorOwner<Managed> tensor,
                                     const ConsumerStream* stream,
                                     const DlpackImportOptions& options) noexcept {
  return in_operation("from_dlpack", [&]() -> Result<ImportedTensor> {
    ImportedTensor out;
    std::uint64_t flags = 0;
    // Do not read the tensor's device: the struct may have another major version.
    FletchingTensorStream order{};
    if (stream != nullptr) order = core_order(*stream, kNoDevice, -1);
    Status status = in_core(function, tensor.detach(), stream != nullptr ? &order : nullptr,
                            core_options(options), out.schema.out(), out.array.out(), &flags);
    if (!status) return std::move(status).error();
    out.read_only = (flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0;
    out.copied = (flags & DLPACK_FLAG_BITMASK_IS_COPIED) != 0;
    return out;
  });
}

inline Result<ImportedTensor> import_tensor(DlpackTensor tensor, const ConsumerStream* stream,
                                            const DlpackImportOptions& options) noexcept {
  return import_tensor(&FletchingTensorImport, std::move(tensor), stream, options);
}
inline Result<ImportedTensor> import_tensor(LegacyDlpackTensor tensor, const ConsumerStream* stream,
                                            const DlpackImportOptions& options) noexcept {
  return import_tensor(&FletchingLegacyTensorImport, std::move(tensor), stream, options);
}

}  // namespace detail

/// Imports `tensor` as a schema and a device array.
///
/// Shape: the first dimension is the array's length. The others become arrow.fixed_shape_tensor or
/// fixed-size lists, see options.dimensions. A tensor without dimensions becomes an array of length
/// 1. byte_offset is added to the pointer, or to ArrowArray.offset if the memory has no addresses.
/// NULL strides mean contiguous elements in every version. The array has no sync_event: wait for
/// the producer's work first.
///
/// Ownership: the tensor is consumed in every case. Its deleter runs when the array and every child
/// moved out of it are released, on any thread; or at once if the import fails or copies. A NULL
/// deleter is not called.
///
/// Errors: ENOTSUP for types, device layouts and strides that Arrow lacks (docs/dlpack.md), and for
/// another major version, of which only the deleter is used; EINVAL for a malformed or NULL tensor;
/// ENOMEM.
inline Result<ImportedTensor> from_dlpack(DlpackTensor tensor,
                                          const DlpackImportOptions& options = {}) noexcept {
  return detail::import_tensor(std::move(tensor), nullptr, options);
}

/// Overload for the struct from before DLPack 1.0. Its memory is treated as read-only.
inline Result<ImportedTensor> from_dlpack(LegacyDlpackTensor tensor,
                                          const DlpackImportOptions& options = {}) noexcept {
  return detail::import_tensor(std::move(tensor), nullptr, options);
}

/// Overload for a tensor whose producer was called with `stream`: the array gets a sync_event for
/// the current work on that stream, so its consumers may use any stream. With Ordering::kNone or
/// kHost no work is pending, and the array has no event. A copy (Strided::kCopy) has no event
/// either: the host waits for the stream before it copies.
///
/// Lifetime of the stream: as for to_dlpack, used during the call only. When the array is released,
/// DLPack cannot pass an event back to the producer: use release_after if work may still read the
/// array.
///
/// Errors: EINVAL if the stream belongs to a different runtime than the tensor; and the errors of
/// export_with_event, including ENOTSUP for devices without streams. On error the tensor is
/// released.
template <class Tensor>
Result<ImportedTensor> from_dlpack(Tensor tensor, const ConsumerStream& stream,
                                   const DlpackImportOptions& options = {}) noexcept {
  return detail::import_tensor(std::move(tensor), &stream, options);
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_DLPACK_IMPORT_HPP
