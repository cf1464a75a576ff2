// SPDX-License-Identifier: Apache-2.0
//
// A device array as a DLPack tensor, without a copy.
#ifndef FLETCHING_DLPACK_EXPORT_HPP
#define FLETCHING_DLPACK_EXPORT_HPP

#include <cerrno>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "fletching/detail/core.hpp"
#include "fletching/dlpack_stream.hpp"
#include "fletching/dlpack_tensor.hpp"
#include "fletching/dlpack_types.hpp"
#include "fletching/owner.hpp"
#include "fletching/result.hpp"
#include "fletching/tensor.h"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {

/// Where the pointer of an exported tensor points to, on devices whose memory has addresses.
/// Elsewhere it is the buffer's handle, and byte_offset is the offset of the first element.
enum class DataPointer : std::uint8_t {
  /// To the first element, with a byte_offset of 0: there are consumers that ignore byte_offset.
  kFirstElement,
  /// To a multiple of 256, as DLTensor.data demands, with byte_offset as the offset of the first
  /// element. The pointer itself may lie before the buffer.
  kAligned,
};

/// How a tensor is exported.
struct DlpackExportOptions {
  /// The memory is read-only. The default: Arrow's buffers are shared and do not change.
  /// False when the array is the caller's alone.
  bool read_only = true;
  /// The array is a copy that the caller made for this consumer, and lets alone from now on.
  bool copied = false;
  /// Export types that are not DLPack's as what stores them.
  bool as_storage = false;
  Nulls nulls = Nulls::kRefuse;
  DataPointer pointer = DataPointer::kFirstElement;
  /// The consumer has been ordered behind sync_event, or receives it in another way. DLPack's
  /// structs have no place for an event.
  bool event_handled = false;
};

namespace detail {

constexpr std::uint32_t core_options(const DlpackExportOptions& options) noexcept {
  return (options.as_storage ? FLETCHING_TENSOR_AS_STORAGE : 0U) |
         (options.read_only ? 0U : FLETCHING_TENSOR_WRITABLE) |
         (options.copied ? FLETCHING_TENSOR_COPIED : 0U) |
         (options.nulls == Nulls::kIgnore ? FLETCHING_TENSOR_IGNORE_NULLS : 0U) |
         (options.pointer == DataPointer::kAligned ? FLETCHING_TENSOR_ALIGNED : 0U) |
         (options.event_handled ? FLETCHING_TENSOR_EVENT_HANDLED : 0U);
}

/// `function` is the core's for this struct.
template <class Managed, class Function>
Result<TensorOwner<Managed>> export_tensor(Function function, const ArrowSchema& schema,
                                           DeviceArray& array, const ConsumerStream* stream,
                                           const DlpackExportOptions& options) noexcept {
  return guarded([&]() -> Result<TensorOwner<Managed>> {
    Managed* tensor = nullptr;
    FletchingTensorStream order{};
    if (stream != nullptr) order = core_order(*stream, array.device_type(), array.device_id());
    Status status = in_core(function, &schema, array.get(), stream != nullptr ? &order : nullptr,
                            core_options(options), &tensor);
    if (!status) return std::move(status).error();
    return TensorOwner<Managed>(tensor);
  });
}

/// What a compiler says of a call with others, in one line.
template <class Schema, class Array>
Result<DlpackTensor> refuse_arguments() noexcept {
  static_assert(
      std::is_convertible_v<Schema, const ArrowSchema&>,
      "to_dlpack: schema: expected const ArrowSchema&; hint: of a fletching::Schema it is "
      "*schema");
  static_assert(
      std::is_convertible_v<Array, DeviceArray&>,
      "to_dlpack: array: expected a DeviceArray that is a variable and not const, because "
      "the call moves from it");
  return Error{EINVAL, ""};
}

}  // namespace detail

/// `array`, whose type is `schema`, as a tensor.
///
/// Shape: the array's length, then one dimension for each fixed-size list around the values, or the
/// dimensions of arrow.fixed_shape_tensor. Strides are always set, in elements. Nothing is
/// copied; a tensor without elements has a NULL pointer.
///
/// Ownership: on success the array has moved into the tensor, whose deleter releases it, from
/// whatever thread. On failure it is still the caller's. The schema stays the caller's.
///
/// Errors: ENOTSUP for a type or nulls that DLPack has not (docs/dlpack.md), EINVAL for a
/// malformed schema or array, for one of which a part is released, and for an event that the caller
/// waits for, ERANGE for a device id, ENOMEM.
inline Result<DlpackTensor> to_dlpack(const ArrowSchema& schema, DeviceArray& array,
                                      const DlpackExportOptions& options = {}) noexcept {
  return detail::export_tensor<DLManagedTensorVersioned>(&FletchingTensorExport, schema, array,
                                                         nullptr, options);
}

/// Not to be called: it is chosen, and does not compile, when the schema or the array does not fit.
template <class Schema, class Array>
  requires(!std::is_convertible_v<Schema, const ArrowSchema&> ||
           !std::is_convertible_v<Array, DeviceArray&>)
Result<DlpackTensor> to_dlpack(Schema&& /*schema*/, Array&& /*array*/,
                               const DlpackExportOptions& /*options*/ = {}) noexcept {
  return detail::refuse_arguments<Schema, Array>();
}

/// The same as the struct from before DLPack 1.0. It cannot say that memory is read-only or a copy:
/// EINVAL unless options.read_only is false.
inline Result<LegacyDlpackTensor> to_legacy_dlpack(const ArrowSchema& schema, DeviceArray& array,
                                                   const DlpackExportOptions& options) noexcept {
  return detail::export_tensor<DLManagedTensor>(&FletchingLegacyTensorExport, schema, array,
                                                nullptr, options);
}

/// The same as the functions without a stream, after `stream` has been ordered
/// behind the array's sync_event: the consumer's stream, which waits while this returns, or the
/// host, which waits here. The event lives on in the tensor.
///
/// Nulls: after the host has waited, the validity bitmaps of memory that it can read are read, so
/// that an array whose null_count is -1 is exported when all bits are set.
///
/// Lifetime of the stream: it is used during the call only, and may be destroyed afterwards. The
/// consumer, whose stream it is, keeps it as long as it has work for it.
///
/// Errors: EINVAL for a stream of another runtime than the event's; also those of SyncEvent, for an
/// event that cannot be waited for among them: of Vulkan, or of a device type without a
/// waiter. Then wait, and call the function without a stream with event_handled. After an error the
/// array is still the caller's.
inline Result<DlpackTensor> to_dlpack(const ArrowSchema& schema, DeviceArray& array,
                                      const ConsumerStream& stream,
                                      const DlpackExportOptions& options = {}) noexcept {
  return detail::export_tensor<DLManagedTensorVersioned>(&FletchingTensorExport, schema, array,
                                                         &stream, options);
}
/// Not to be called: chosen, and not compiled, when the schema or the array does not fit.
template <class Schema, class Array>
  requires(!std::is_convertible_v<Schema, const ArrowSchema&> ||
           !std::is_convertible_v<Array, DeviceArray&>)
Result<DlpackTensor> to_dlpack(Schema&& /*schema*/, Array&& /*array*/,
                               const ConsumerStream& /*stream*/,
                               const DlpackExportOptions& /*options*/ = {}) noexcept {
  return detail::refuse_arguments<Schema, Array>();
}
/// The same when the third argument is neither a stream nor options.
template <class Stream>
  requires(!std::is_convertible_v<Stream, const ConsumerStream&> &&
           !std::is_convertible_v<Stream, const DlpackExportOptions&>)
Result<DlpackTensor> to_dlpack(const ArrowSchema& /*schema*/, DeviceArray& /*array*/,
                               Stream&& /*stream*/,
                               const DlpackExportOptions& /*options*/ = {}) noexcept {
  static_assert(std::is_convertible_v<Stream, const ConsumerStream&>,
                "to_dlpack: stream: expected a ConsumerStream; hint: read_dlpack_stream makes one "
                "of a device type and a number");
  return Error{EINVAL, ""};
}
inline Result<LegacyDlpackTensor> to_legacy_dlpack(const ArrowSchema& schema, DeviceArray& array,
                                                   const ConsumerStream& stream,
                                                   const DlpackExportOptions& options) noexcept {
  return detail::export_tensor<DLManagedTensor>(&FletchingLegacyTensorExport, schema, array,
                                                &stream, options);
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_DLPACK_EXPORT_HPP
