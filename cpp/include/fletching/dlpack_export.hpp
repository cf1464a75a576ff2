// SPDX-License-Identifier: Apache-2.0
//
// A device array as a DLPack tensor, without a copy. The mapping of types is in
// dlpack_types.hpp.
#ifndef FLETCHING_DLPACK_EXPORT_HPP
#define FLETCHING_DLPACK_EXPORT_HPP

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "fletching/detail/checked.hpp"
#include "fletching/detail/dlpack_walk.hpp"
#include "fletching/dlpack_tensor.hpp"
#include "fletching/dlpack_types.hpp"
#include "fletching/owner.hpp"

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

/// The alignment of DLTensor.data.
inline constexpr std::uintptr_t kDlpackAlignment = 256;

/// The memory of an exported tensor, and the tensor itself.
template <class Managed>
struct ExportedTensor {
  Managed managed{};
  DeviceArray array;
  std::vector<std::int64_t> extents;
  std::vector<std::int64_t> strides;

  static void destroy(Managed* self) noexcept {
    delete static_cast<ExportedTensor*>(self->manager_ctx);
  }
};

/// The dimensions of all levels one behind the other, with strides in elements.
inline void lay_out(const std::vector<TensorLevel>& levels, std::vector<std::int64_t>& extents,
                    std::vector<std::int64_t>& strides) {
  std::int64_t step = 1;
  for (std::size_t i = levels.size(); i-- > 0;) {
    const TensorLevel& level = levels[i];
    std::vector<std::int64_t> steps = level.strides;
    for (std::int64_t& stride : steps) stride = next_step(stride, step);
    extents.insert(extents.begin(), level.extents.begin(), level.extents.end());
    strides.insert(strides.begin(), steps.begin(), steps.end());
    for (const std::int64_t extent : level.extents) step = next_step(step, extent);
  }
}

/// Sets data and byte_offset.
inline Status point_at(const TensorView& view, ArrowDeviceType device, DataPointer pointer,
                       DLTensor& out) {
  if (view.count == 0) return {};
  const auto address = reinterpret_cast<std::uintptr_t>(view.buffer);
  const auto skipped = static_cast<std::uint64_t>(view.first) * (view.type.bits / 8U);
  const auto size = static_cast<std::uint64_t>(view.count) * (view.type.bits / 8U);
  if (!is_address(device)) {
    out.data = const_cast<void*>(view.buffer);
    out.byte_offset = skipped;
    return {};
  }
  if (skipped + size > UINTPTR_MAX - address) {
    return Error{EINVAL,
                 "ArrowArray: offset or length out of range: expected elements within the address "
                 "space; hint: fix the producer"};
  }
  const std::uintptr_t first = address + static_cast<std::uintptr_t>(skipped);
  out.byte_offset = pointer == DataPointer::kAligned ? first % kDlpackAlignment : 0;
  out.data = reinterpret_cast<void*>(first - static_cast<std::uintptr_t>(out.byte_offset));
  return {};
}

inline void mark(DLManagedTensorVersioned& out, const DlpackExportOptions& options) noexcept {
  out.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  out.flags = (options.read_only ? DLPACK_FLAG_BITMASK_READ_ONLY : 0) |
              (options.copied ? DLPACK_FLAG_BITMASK_IS_COPIED : 0);
}
inline void mark(DLManagedTensor& /*out*/, const DlpackExportOptions& /*options*/) noexcept {}

/// Neither a released array nor one with an event that is not handled is exported.
inline Status check_exportable(const ArrowSchema& schema, const DeviceArray& array,
                               const DlpackExportOptions& options) {
  if (schema.release == nullptr || array.is_released()) {
    return Error{EINVAL, "to_dlpack: schema or array is released: expected live ones"};
  }
  if (array->sync_event != nullptr && !options.event_handled) {
    return Error{EINVAL,
                 "ArrowDeviceArray.sync_event: not NULL: expected NULL, because a tensor has no "
                 "event; hint: pass the consumer's stream, or wait and pass event_handled"};
  }
  return {};
}

/// `host_has_waited` for sync_event: else an array that has one is not read here.
template <class Managed>
Result<TensorOwner<Managed>> export_tensor(const ArrowSchema& schema, DeviceArray& array,
                                           const DlpackExportOptions& options,
                                           bool host_has_waited = false) {
  Status exportable = check_exportable(schema, array, options);
  if (!exportable) return std::move(exportable).error();
  const ArrowDeviceType device = array->device_type;
  const bool is_done = array->sync_event == nullptr || host_has_waited;
  Result<TensorView> view = TensorWalk({.nulls = options.nulls,
                                        .as_storage = options.as_storage,
                                        .host_readable = is_done && is_host_readable(device)})
                                .run(schema, array->array);
  if (!view) return std::move(view).error();
  Result<DLDevice> dlpack_device = to_dlpack_device(device, array->device_id);
  if (!dlpack_device) return std::move(dlpack_device).error();

  auto exported = std::make_unique<ExportedTensor<Managed>>();
  lay_out(view->levels, exported->extents, exported->strides);
  DLTensor& tensor = exported->managed.dl_tensor;
  Status pointed = point_at(*view, device, options.pointer, tensor);
  if (!pointed) return std::move(pointed).error();
  tensor.device = *dlpack_device;
  tensor.ndim = static_cast<std::int32_t>(exported->extents.size());
  tensor.dtype = view->type;
  tensor.shape = exported->extents.data();
  tensor.strides = exported->strides.data();
  mark(exported->managed, options);
  exported->managed.manager_ctx = exported.get();
  exported->managed.deleter = &ExportedTensor<Managed>::destroy;
  exported->array = std::move(array);
  return TensorOwner<Managed>(&exported.release()->managed);
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

inline Status check_legacy(const DlpackExportOptions& options) {
  if (!options.read_only) return {};
  return Error{EINVAL,
               "DLManagedTensor: no flag for read-only memory; hint: export a versioned tensor, or "
               "pass read_only = false"};
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
/// Errors: ENOTSUP for a type or nulls that DLPack has not (see dlpack_types.hpp), EINVAL for a
/// malformed schema or array, for one of which a part is released, and for an event that the caller
/// waits for, ERANGE for a device id, ENOMEM.
inline Result<DlpackTensor> to_dlpack(const ArrowSchema& schema, DeviceArray& array,
                                      const DlpackExportOptions& options = {}) noexcept {
  return detail::guarded(
      [&] { return detail::export_tensor<DLManagedTensorVersioned>(schema, array, options); });
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
  return detail::guarded([&]() -> Result<LegacyDlpackTensor> {
    Status fits = detail::check_legacy(options);
    if (!fits) return std::move(fits).error();
    return detail::export_tensor<DLManagedTensor>(schema, array, options);
  });
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_DLPACK_EXPORT_HPP
