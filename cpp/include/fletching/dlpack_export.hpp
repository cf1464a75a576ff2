// SPDX-License-Identifier: Apache-2.0
//
// Exports a device array as a DLPack tensor, without a copy.
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

/// The pointer of an exported tensor, on devices whose memory has addresses. On other devices it is
/// the buffer's handle, and byte_offset is the offset of the first element.
enum class DataPointer : std::uint8_t {
  /// The first element, with a byte_offset of 0, because some consumers ignore byte_offset.
  kFirstElement,
  /// A multiple of 256, as DLTensor.data requires, with byte_offset as the offset of the first
  /// element. The pointer may be in front of the buffer.
  kAligned,
};

/// Options of to_dlpack.
struct DlpackExportOptions {
  /// Mark the memory as read-only. The default, because Arrow buffers are shared and immutable.
  /// Pass false if the caller is the array's only user.
  bool read_only = true;
  /// The array is a copy that the caller made for this consumer and will not use again.
  bool copied = false;
  /// Export types that DLPack lacks as their storage type.
  bool as_storage = false;
  Nulls nulls = Nulls::kRefuse;
  DataPointer pointer = DataPointer::kFirstElement;
  /// The consumer already waits for sync_event, or receives the event in another way. DLPack's
  /// structs have no field for an event.
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

/// `function` is the core's function for this struct.
template <class Managed, class Function>
Result<TensorOwner<Managed>> export_tensor(const char* operation, Function function,
                                           const ArrowSchema& schema, DeviceArray& array,
                                           const ConsumerStream* stream,
                                           const DlpackExportOptions& options) noexcept {
  return in_operation(operation, [&]() -> Result<TensorOwner<Managed>> {
    Managed* tensor = nullptr;
    FletchingTensorStream order{};
    if (stream != nullptr) order = core_order(*stream, array.device_type(), array.device_id());
    Status status = in_core(function, &schema, array.get(), stream != nullptr ? &order : nullptr,
                            core_options(options), &tensor);
    if (!status) return std::move(status).error();
    return TensorOwner<Managed>(tensor, Exported());
  });
}

/// Shortens the compiler's output for wrong argument types to one line.
template <class Schema, class Array>
Result<DlpackTensor> refuse_arguments() noexcept {
  static_assert(std::is_convertible_v<Schema, const ArrowSchema&>,
                "to_dlpack: schema: expected const ArrowSchema&; hint: pass *schema for a "
                "fletching::Schema");
  static_assert(
      std::is_convertible_v<Array, DeviceArray&>,
      "to_dlpack: array: expected a DeviceArray that is a variable and not const, because "
      "the call moves from it");
  return Error{EINVAL, ""};
}

}  // namespace detail

/// Exports `array` of type `schema` as a tensor, without a copy.
///
/// Shape: the array's length, followed by one dimension per fixed-size list around the values, or
/// the dimensions of arrow.fixed_shape_tensor. Strides are always set, in elements. The pointer of
/// a tensor without elements is NULL.
///
/// Ownership: on success the array is moved into the tensor, whose deleter releases it, on any
/// thread. On error the caller still owns it. The caller keeps the schema.
///
/// Errors: ENOTSUP for types or nulls that DLPack lacks (docs/dlpack.md); EINVAL for a malformed or
/// partly released schema or array, and for an event, unless options.event_handled is set; ERANGE
/// for a device id; ENOMEM.
inline Result<DlpackTensor> to_dlpack(const ArrowSchema& schema, DeviceArray& array,
                                      const DlpackExportOptions& options = {}) noexcept {
  return detail::export_tensor<DLManagedTensorVersioned>("to_dlpack", &FletchingTensorExport,
                                                         schema, array, nullptr, options);
}

/// Overload for wrong argument types: does not compile.
template <class Schema, class Array>
  requires(!std::is_convertible_v<Schema, const ArrowSchema&> ||
           !std::is_convertible_v<Array, DeviceArray&>)
Result<DlpackTensor> to_dlpack(Schema&& /*schema*/, Array&& /*array*/,
                               const DlpackExportOptions& /*options*/ = {}) noexcept {
  return detail::refuse_arguments<Schema, Array>();
}

/// Like to_dlpack, for the struct from before DLPack 1.0. It has no read-only or copied flag:
/// EINVAL unless options.read_only is false.
inline Result<LegacyDlpackTensor> to_legacy_dlpack(const ArrowSchema& schema, DeviceArray& array,
                                                   const DlpackExportOptions& options) noexcept {
  return detail::export_tensor<DLManagedTensor>("to_legacy_dlpack", &FletchingLegacyTensorExport,
                                                schema, array, nullptr, options);
}

/// Overload with a stream: first orders the consumer after the array's sync_event. Makes its stream
/// wait, without blocking, or blocks the host. The event lives until the tensor is deleted.
///
/// Nulls: after a host wait, host-readable validity bitmaps are read, so that an array with a
/// null_count of -1 is exported if all bits are set.
///
/// Lifetime of the stream: used during the call only. The consumer owns it.
///
/// Errors: EINVAL if the stream belongs to a different runtime than the event; and the errors of
/// SyncEvent, including those for an event that cannot be waited on: a Vulkan event, or an event of
/// a device type without a waiter. In that case, wait and call the function without a stream, with
/// event_handled. On error the caller still owns the array.
inline Result<DlpackTensor> to_dlpack(const ArrowSchema& schema, DeviceArray& array,
                                      const ConsumerStream& stream,
                                      const DlpackExportOptions& options = {}) noexcept {
  return detail::export_tensor<DLManagedTensorVersioned>("to_dlpack", &FletchingTensorExport,
                                                         schema, array, &stream, options);
}
/// Overload for wrong argument types: does not compile.
template <class Schema, class Array>
  requires(!std::is_convertible_v<Schema, const ArrowSchema&> ||
           !std::is_convertible_v<Array, DeviceArray&>)
Result<DlpackTensor> to_dlpack(Schema&& /*schema*/, Array&& /*array*/,
                               const ConsumerStream& /*stream*/,
                               const DlpackExportOptions& /*options*/ = {}) noexcept {
  return detail::refuse_arguments<Schema, Array>();
}
/// Overload for a third argument that is neither a stream nor options: does not compile.
template <class Stream>
  requires(!std::is_convertible_v<Stream, const ConsumerStream&> &&
           !std::is_convertible_v<Stream, const DlpackExportOptions&>)
Result<DlpackTensor> to_dlpack(const ArrowSchema& /*schema*/, DeviceArray& /*array*/,
                               Stream&& /*stream*/,
                               const DlpackExportOptions& /*options*/ = {}) noexcept {
  static_assert(std::is_convertible_v<Stream, const ConsumerStream&>,
                "to_dlpack: stream: expected a ConsumerStream; hint: call read_dlpack_stream with "
                "a device type and a number");
  return Error{EINVAL, ""};
}
inline Result<LegacyDlpackTensor> to_legacy_dlpack(const ArrowSchema& schema, DeviceArray& array,
                                                   const ConsumerStream& stream,
                                                   const DlpackExportOptions& options) noexcept {
  return detail::export_tensor<DLManagedTensor>("to_legacy_dlpack", &FletchingLegacyTensorExport,
                                                schema, array, &stream, options);
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_DLPACK_EXPORT_HPP
