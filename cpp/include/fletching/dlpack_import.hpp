// SPDX-License-Identifier: Apache-2.0
//
// A DLPack tensor as a device array, without a copy unless the caller asks for one.
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

/// What happens with a tensor whose elements do not lie as an Arrow array's do.
enum class Strided : std::uint8_t {
  kRefuse,
  kCopy,  ///< gather them in new memory of the CPU, if the host can read the tensor; else refuse
};

/// How a tensor is imported.
struct DlpackImportOptions {
  Dimensions dimensions = Dimensions::kFixedShapeTensor;
  Strided strided = Strided::kRefuse;
  /// Import types that are not Arrow's as what stores them.
  bool as_storage = false;
};

/// A tensor as Arrow has it.
struct ImportedTensor {
  Schema schema;      ///< of the array; it has no name
  DeviceArray array;  ///< without sync_event
  /// The memory is read-only. Always true for a struct without the flag.
  bool read_only = true;
  /// The memory is a copy for this import only, made by the producer or here.
  bool copied = false;
};

namespace detail {

constexpr std::uint32_t core_options(const DlpackImportOptions& options) noexcept {
  return (options.as_storage ? FLETCHING_TENSOR_AS_STORAGE : 0U) |
         (options.dimensions == Dimensions::kFixedSizeLists ? FLETCHING_TENSOR_LISTS : 0U) |
         (options.strided == Strided::kCopy ? FLETCHING_TENSOR_COPY : 0U);
}

inline constexpr ArrowDeviceType kNoDevice = -1;

/// `function` is the core's for this struct.
template <class Managed, class Function>
Result<ImportedTensor> import_tensor(Function function, TensorOwner<Managed> tensor,
                                     const ConsumerStream* stream,
                                     const DlpackImportOptions& options) noexcept {
  return guarded([&]() -> Result<ImportedTensor> {
    ImportedTensor out;
    std::uint64_t flags = 0;
    // The device is not read here: the version may be another one.
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

/// `tensor` as a schema and a device array.
///
/// Shape: the first dimension is the array's length; the others become arrow.fixed_shape_tensor or
/// fixed-size lists, as the options say. A tensor without dimensions is an array of length 1.
/// byte_offset is added to the pointer, or to ArrowArray.offset where the memory has no addresses.
/// NULL strides mean compact ones, whatever the version. The array has no sync_event: order
/// it behind the producer's work first.
///
/// Ownership: the tensor is consumed in any case. Its deleter is called when the array and every
/// child moved out of it are released, from whatever thread; at once when the import fails or
/// copies. A NULL deleter is not called.
///
/// Errors: ENOTSUP for types, device layouts and strides that Arrow has not
/// (docs/dlpack.md)
/// and for another major version, of which nothing but the deleter is used; EINVAL for a malformed
/// tensor, and for NULL; ENOMEM.
inline Result<ImportedTensor> from_dlpack(DlpackTensor tensor,
                                          const DlpackImportOptions& options = {}) noexcept {
  return detail::import_tensor(std::move(tensor), nullptr, options);
}

/// The same for the struct from before DLPack 1.0, whose memory counts as read-only.
inline Result<ImportedTensor> from_dlpack(LegacyDlpackTensor tensor,
                                          const DlpackImportOptions& options = {}) noexcept {
  return detail::import_tensor(std::move(tensor), nullptr, options);
}

/// The same as from_dlpack without a stream, for a tensor whose producer was
/// called with `stream`: the array gets a sync_event that happens when everything is done that is
/// on that stream now. So the consumers of the array may use any stream. With Ordering::kNone or
/// kHost no work is pending, and the array has no event. Nor does a copy (Strided::kCopy), before
/// which the host waits for the stream.
///
/// Lifetime of the stream: as of to_dlpack, it is used during the call only. DLPack has no
/// counterpart to the event when the array is released: where work may still read it then, use
/// release_after.
///
/// Errors: EINVAL for a stream of another runtime than the tensor's; also those of
/// export_with_event, ENOTSUP for devices without streams among them. The tensor is released then.
template <class Tensor>
Result<ImportedTensor> from_dlpack(Tensor tensor, const ConsumerStream& stream,
                                   const DlpackImportOptions& options = {}) noexcept {
  return detail::import_tensor(std::move(tensor), &stream, options);
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_DLPACK_IMPORT_HPP
