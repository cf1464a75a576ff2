// SPDX-License-Identifier: Apache-2.0
//
// A device array as a DLPack tensor, without a copy. Which types are which stands in
// dlpack_types.hpp.
#ifndef FLETCHING_DLPACK_EXPORT_HPP
#define FLETCHING_DLPACK_EXPORT_HPP

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fletching/checked.hpp"
#include "fletching/dlpack_types.hpp"
#include "fletching/owner.hpp"

namespace fletching {
namespace detail {

struct CallDeleter {
  template <class Managed>
  void operator()(Managed* managed) const noexcept {
    if (managed->deleter != nullptr) managed->deleter(managed);
  }
};

}  // namespace detail

/// Owns a tensor: calls its deleter, once, unless that is NULL. `release()` gives the pointer to
/// somebody else who calls the deleter then, such as a capsule.
using DlpackTensor = std::unique_ptr<DLManagedTensorVersioned, detail::CallDeleter>;

/// The same for the struct from before DLPack 1.0, which has no version and no flags.
using LegacyDlpackTensor = std::unique_ptr<DLManagedTensor, detail::CallDeleter>;

/// What to do about nulls, which DLPack has none of.
enum class Nulls : std::uint8_t {
  kRefuse,  ///< an error when there are any, or when the device hides whether there are
  kIgnore,  ///< export whatever lies in memory in their place
};

/// Where the pointer of an exported tensor leads, on devices whose memory has addresses. Elsewhere
/// it is the buffer's handle, and byte_offset leads to the first element.
enum class DataPointer : std::uint8_t {
  /// To the first element, with a byte_offset of 0: there are consumers that ignore byte_offset.
  kFirstElement,
  /// To a multiple of 256, as DLTensor.data demands, from which byte_offset leads to the first
  /// element. The pointer itself may lie before the buffer.
  kAligned,
};

/// How a tensor is exported.
struct DlpackExportOptions {
  /// Nobody may write to the memory. As it should be: Arrow's buffers are shared and do not change.
  /// False when the array is the caller's alone.
  bool read_only = true;
  /// The array is a copy that the caller made for this consumer, and lets alone from now on.
  bool copied = false;
  /// Export types that are not DLPack's as what stores them.
  bool as_storage = false;
  Nulls nulls = Nulls::kRefuse;
  DataPointer pointer = DataPointer::kFirstElement;
  /// The consumer has been ordered behind sync_event, or is told of it in another way. DLPack's
  /// structs have no place for an event.
  bool event_handled = false;
};

namespace detail {

/// The alignment of DLTensor.data.
inline constexpr std::uintptr_t kDlpackAlignment = 256;

/// The dimensions that one level of lists adds, in the order of the tensor: how long each is, and
/// how far its neighbors are apart in elements of the level below.
struct TensorLevel {
  std::vector<std::int64_t> extents;
  std::vector<std::int64_t> strides;
};

/// What is found on the way down from an array to its values.
struct TensorView {
  std::vector<TensorLevel> levels;
  DLDataType type{};
  const void* buffer = nullptr;
  std::int64_t first = 0;  ///< the first element, counted from `buffer` on
  std::int64_t count = 0;  ///< of elements
};

/// A level whose elements lie in order.
inline TensorLevel plain_level(std::int64_t extent) { return {{extent}, {1}}; }

/// The level of a tensor's dimensions: `shape` as it lies in memory, seen as `permutation` says.
inline TensorLevel permuted_level(const TensorShape& tensor) {
  std::vector<std::int64_t> steps(tensor.shape.size());
  std::int64_t step = 1;
  for (std::size_t i = steps.size(); i-- > 0;) {
    steps[i] = step;
    step = next_step(step, tensor.shape[i]);
  }
  TensorLevel level;
  for (const std::int32_t axis : tensor.permutation) {
    level.extents.push_back(tensor.shape[static_cast<std::size_t>(axis)]);
    level.strides.push_back(steps[static_cast<std::size_t>(axis)]);
  }
  return level;
}

inline Size product(const std::vector<std::int64_t>& extents) noexcept {
  Size elements = 1;
  for (const std::int64_t extent : extents) elements = multiply(elements, size_of(extent));
  return elements;
}

/// Whether bits `first` to `first + count - 1` are all set.
inline bool all_set(const void* bitmap, std::int64_t first, std::int64_t count) noexcept {
  const auto* bytes = static_cast<const unsigned char*>(bitmap);
  for (std::int64_t i = first; i < first + count; ++i) {
    if ((bytes[i / 8] & (1U << static_cast<unsigned>(i % 8))) == 0) return false;
  }
  return true;
}

/// Walks down one array. The memory is touched for nothing but validity bitmaps that the host
/// reads.
class TensorWalk {
 public:
  TensorWalk(const DlpackExportOptions& options, bool host_readable) noexcept
      : options_(options), host_readable_(host_readable) {}

  Result<TensorView> run(const ArrowSchema& schema, const ArrowArray& array) {
    const Size first = size_of(array.offset);
    if (!first || array.length < 0) return malformed("has a negative length or offset");
    Status walked = push(plain_level(array.length));
    if (walked) walked = level(schema, array, *first, array.length);
    if (!walked) return std::move(walked).error();
    return std::move(view_);
  }

 private:
  static Error malformed(std::string_view what) {
    return {EINVAL, "ArrowArray " + std::string(what) + ": the producer has to mend it"};
  }

  /// The elements from `first` on, counted from the beginning of the array's buffers.
  Status level(const ArrowSchema& schema, const ArrowArray& array, std::int64_t first,
               std::int64_t count) {
    Result<Format> format = parse_format(schema.format);
    if (!format) return std::move(format).error();
    if (array.n_buffers < format->n_buffers || (array.buffers == nullptr && array.n_buffers > 0)) {
      return malformed("has fewer buffers than format " + quote(schema.format) + " needs");
    }
    if (schema.dictionary != nullptr && !options_.as_storage) {
      return not_exported(schema.format, "it holds indices into a dictionary", true);
    }
    Result<Extension> extension = find_extension(schema);
    if (!extension) return std::move(extension).error();
    if (format->id == TypeId::kFixedSizeList)
      return list(schema, array, *format, *extension, first, count);
    return leaf(schema, array, *format, *extension, first, count);
  }

  Status check_nulls(const ArrowArray& array, std::int64_t first, std::int64_t count) const {
    if (options_.nulls == Nulls::kIgnore || array.null_count == 0) return {};
    const void* bitmap = array.buffers[0];
    if (bitmap == nullptr && array.null_count > 0) {
      return malformed("has nulls and no validity bitmap");
    }
    if (bitmap == nullptr || count == 0) return {};
    if (host_readable_ && all_set(bitmap, first, count)) return {};
    return Error{ENOTSUP,
                 std::string(host_readable_ || array.null_count > 0 ? "the array has nulls"
                                                                    : "the array may have nulls") +
                     ", and a tensor has none: fill them in before, or ask to ignore them"};
  }

  Status list(const ArrowSchema& schema, const ArrowArray& array, const Format& format,
              const Extension& extension, std::int64_t first, std::int64_t count) {
    if (schema.n_children != 1 || schema.children == nullptr || schema.children[0] == nullptr ||
        array.n_children != 1 || array.children == nullptr || array.children[0] == nullptr) {
      return malformed("of a fixed-size list has not exactly one child");
    }
    Status valid = check_nulls(array, first, count);
    if (!valid) return valid;
    const ArrowArray& child = *array.children[0];
    const Size end = multiply(add(first, count), format.size);
    if (!end || child.length < *end || !add(size_of(child.offset), end)) {
      return malformed("has a child that is too short for its lists");
    }
    Status pushed = push_list(format.size, extension);
    if (!pushed) return pushed;
    return level(*schema.children[0], child, child.offset + first * format.size,
                 count * format.size);
  }

  /// Adds dimensions. Their number is bounded, and with it how deep the walk goes.
  Status push(TensorLevel level) {
    dimensions_ += level.extents.size();
    if (dimensions_ > kDlpackDimensions) {
      return Error{ENOTSUP, "the tensor would have more than " + std::to_string(kDlpackDimensions) +
                                " dimensions: export the values of the inner lists"};
    }
    view_.levels.push_back(std::move(level));
    return {};
  }

  Status push_list(std::int32_t size, const Extension& extension) {
    if (extension.name != kFixedShapeTensor) {
      if (!extension.name.empty() && !options_.as_storage) return unknown_extension(extension);
      return push(plain_level(size));
    }
    Result<TensorShape> tensor = parse_tensor_shape(extension.metadata);
    if (!tensor) return std::move(tensor).error();
    if (product(tensor->shape) != Size{size}) {
      return malformed("of arrow.fixed_shape_tensor has lists of " + std::to_string(size) +
                       ", not as many elements as its shape");
    }
    return push(permuted_level(*tensor));
  }

  static Error unknown_extension(const Extension& extension) {
    return {ENOTSUP, "extension type " + quote(extension.name) +
                         " would lose its meaning; ask for the storage (as_storage) to export it "
                         "nevertheless"};
  }

  Status leaf(const ArrowSchema& schema, const ArrowArray& array, const Format& format,
              const Extension& extension, std::int64_t first, std::int64_t count) {
    Result<DlpackType> type = dlpack_type(schema.format, format, options_.as_storage);
    if (!type) return std::move(type).error();
    if (extension.name == kBool8) {
      if (format.id != TypeId::kInt8) return malformed("of arrow.bool8 is not stored as int8");
      type->type.code = kDLBool;
    } else if (!extension.name.empty() && !options_.as_storage) {
      return unknown_extension(extension);
    }
    Status valid = check_nulls(array, first, count);
    if (!valid) return valid;
    if (format.id == TypeId::kFixedSizeBinary) {
      Status pushed = push(plain_level(type->repeat));
      if (!pushed) return pushed;
    }
    const Size scaled_first = multiply(first, type->repeat);
    const Size scaled_count = multiply(count, type->repeat);
    const Size bytes = multiply(add(scaled_first, scaled_count), type->type.bits / 8);
    if (!bytes || !scaled_first || !scaled_count) {
      return malformed("has more elements than memory has bytes");
    }
    view_.type = type->type;
    view_.buffer = array.buffers[1];
    view_.first = *scaled_first;
    view_.count = *scaled_count;
    if (view_.buffer == nullptr && view_.count > 0) return malformed("has no buffer of values");
    return {};
  }

  const DlpackExportOptions& options_;
  bool host_readable_;
  TensorView view_;
  std::size_t dimensions_ = 0;
};

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
                 "ArrowArray has elements outside of the address space: the producer has "
                 "to mend its offset or length"};
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

/// Neither a released array nor one whose event nobody waits for is exported.
inline Status check_exportable(const ArrowSchema& schema, const DeviceArray& array,
                               const DlpackExportOptions& options) {
  if (schema.release == nullptr || array.is_released()) {
    return Error{EINVAL, "the schema or the array is released: there is nothing to export"};
  }
  if (array->sync_event != nullptr && !options.event_handled) {
    return Error{EINVAL,
                 "ArrowDeviceArray.sync_event is set, and a tensor has no place for it: give the "
                 "consumer's stream, or wait for the event and say so (event_handled)"};
  }
  return {};
}

template <class Managed>
Result<std::unique_ptr<Managed, CallDeleter>> export_tensor(const ArrowSchema& schema,
                                                            DeviceArray& array,
                                                            const DlpackExportOptions& options) {
  Status exportable = check_exportable(schema, array, options);
  if (!exportable) return std::move(exportable).error();
  const ArrowDeviceType device = array->device_type;
  // Waiting for the event may have been left to the consumer: then nothing may be read here.
  const bool readable = is_host_readable(device) && array->sync_event == nullptr;
  Result<TensorView> view = TensorWalk(options, readable).run(schema, array->array);
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
  return std::unique_ptr<Managed, CallDeleter>(&exported.release()->managed);
}

}  // namespace detail

/// `array`, whose type is `schema`, as a tensor.
///
/// Shape: the array's length, then one dimension for each fixed-size list around the values, or the
/// dimensions of arrow.fixed_shape_tensor. Strides are always given, in elements. Nothing is
/// copied; a tensor without elements has a NULL pointer.
///
/// Ownership: on success the array has moved into the tensor, whose deleter releases it, from
/// whatever thread. On failure it is still the caller's. The schema stays the caller's.
///
/// Errors: ENOTSUP for a type or nulls that DLPack has not (see dlpack_types.hpp), EINVAL for a
/// malformed schema or array and for an event that nobody waits for, ERANGE for a device id,
/// ENOMEM.
inline Result<DlpackTensor> to_dlpack(const ArrowSchema& schema, DeviceArray& array,
                                      const DlpackExportOptions& options = {}) noexcept {
  return detail::guarded(
      [&] { return detail::export_tensor<DLManagedTensorVersioned>(schema, array, options); });
}

/// The same as the struct from before DLPack 1.0. It cannot say that memory is read-only or a copy:
/// EINVAL unless options.read_only is false.
inline Result<LegacyDlpackTensor> to_legacy_dlpack(const ArrowSchema& schema, DeviceArray& array,
                                                   const DlpackExportOptions& options) noexcept {
  return detail::guarded([&]() -> Result<LegacyDlpackTensor> {
    if (options.read_only) {
      return Error{EINVAL,
                   "DLManagedTensor has no flag for read-only memory: give a versioned tensor, or "
                   "say that the consumer may write (read_only)"};
    }
    return detail::export_tensor<DLManagedTensor>(schema, array, options);
  });
}

}  // namespace fletching

#endif  // FLETCHING_DLPACK_EXPORT_HPP
