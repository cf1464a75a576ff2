// SPDX-License-Identifier: Apache-2.0
//
// Imports __cuda_array_interface__ as a device array, without a copy.
#ifndef FLETCHING_CUDA_ARRAY_IMPORT_HPP
#define FLETCHING_CUDA_ARRAY_IMPORT_HPP

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "fletching/array_builder.hpp"
#include "fletching/cuda_array_export.hpp"
#include "fletching/cuda_array_interface.hpp"
#include "fletching/cuda_streams.hpp"
#include "fletching/device_stream.hpp"
#include "fletching/dlpack_import.hpp"
#include "fletching/export_event.hpp"
#include "fletching/release_after.hpp"
#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {

/// A mask in Arrow's format: one bit per element, starting at the lowest bit of the first byte, set
/// for a valid element. Must be on the array's device.
struct ValidityBitmap {
  const void* bits = nullptr;
  std::shared_ptr<void> owner;  ///< keeps the bits until the array is released
};

/// Options of from_cuda_array.
struct CudaArrayImportOptions {
  Dimensions dimensions = Dimensions::kFixedShapeTensor;
  /// Import types that Arrow lacks as their storage type.
  bool as_storage = false;
  /// False: do not wait for the stream of the description. The caller must then prevent data races.
  bool synchronize = true;
  /// The stream on which the array will be used, if known. The stream of the description waits for
  /// it before the owner is destroyed. For consumers that may release the array while their work is
  /// still running, and cannot join the streams themselves (join_cuda_streams).
  std::optional<Stream> consumer_stream = std::nullopt;
  /// Converts a mask of bytes, which needs a kernel, or a mask on another device to a bitmap, on
  /// the mask's stream or else the description's. Without a stream, the bits must be complete on
  /// return. If not set, such masks are rejected.
  std::function<Result<ValidityBitmap>(const cuda_array_interface::Interface& mask)> pack_mask =
      nullptr;
};

namespace detail {

/// A memory location as reported by the driver.
using CudaPlace = FletchingCudaMemory;

inline Result<CudaPlace> find_cuda_memory(std::uint64_t pointer) {
  CudaPlace place;
  Status found = in_core(&FletchingCudaMemoryFind, pointer, &place);
  if (!found) return std::move(found).error();
  return place;
}

inline std::string show(const CudaPlace& place) {
  return device_name(place.device_type) + " " + std::to_string(place.device_id);
}

/// All buffers of an array must be on the same device.
inline Status check_same_device(const CudaPlace& bits, const CudaPlace& values) {
  if (bits.device_type == values.device_type && bits.device_id == values.device_id) return {};
  return Error{ENOTSUP, "mask: on another device than the values: expected " + show(values) +
                            ", got " + show(bits) + "; hint: copy the mask (pack_mask)"};
}

inline Status check_description(const cuda_array_interface::Interface& says) {
  for (const cuda_array_interface::Violation& found : cuda_array_interface::check(says)) {
    if (found.severity != cuda_array_interface::Severity::kError) continue;
    return Error{EINVAL, "__cuda_array_interface__['" + found.key + "']: invalid: got " +
                             found.found + " (rule " + std::string(found.rule) +
                             "); hint: " + std::string(found.hint)};
  }
  return {};
}

/// The Arrow format of a datetime or timedelta type; empty if Arrow has none.
inline std::string_view time_format(const cuda_array_interface::Typestr& type) noexcept {
  struct Row {
    std::string_view unit, time, duration;
  };
  constexpr Row rows[] = {
      {"s", "tss:", "tDs"}, {"ms", "tsm:", "tDm"}, {"us", "tsu:", "tDu"}, {"ns", "tsn:", "tDn"}};
  if (type.multiple != 1) return "";
  for (const Row& row : rows) {
    if (row.unit == type.unit) return type.kind == 'M' ? row.time : row.duration;
  }
  return "";
}

/// A type string as a DLPack type and, for a time, as an Arrow format.
struct CudaType {
  DLDataType dlpack{};
  std::string_view time;  ///< the format; empty for a number
};

inline Result<CudaType> type_of_typestr(std::string_view text) {
  const auto refuse = [&](std::string_view why) {
    return Error{ENOTSUP, "typestr: no Arrow type for " + quote(text) + ": " + std::string(why)};
  };
  const std::optional<cuda_array_interface::Typestr> type =
      cuda_array_interface::parse_typestr(text);
  if (!type) return refuse("expected a type string of the array interface");
  const std::uint64_t bytes = type->item_bytes();
  if (bytes > 1 && type->order != kNativeOrder &&
      type->order != cuda_array_interface::kIrrelevant) {
    return refuse("expected the byte order of this machine");
  }
  if (bytes == 0 || bytes > 16)
    return refuse("expected elements of 1 to 16 bytes, got " + std::to_string(bytes));
  CudaType found{{kDLInt, static_cast<std::uint8_t>(bytes * 8), 1}, ""};
  switch (type->kind) {
    case 'i':
      break;
    case 'u':
      found.dlpack.code = kDLUInt;
      break;
    case 'f':
      found.dlpack.code = kDLFloat;
      break;
    case 'c':
      found.dlpack.code = kDLComplex;
      break;
    case 'b':
      found.dlpack.code = kDLBool;
      break;
    case 'M':
    case 'm':
      found.time = time_format(*type);
      if (found.time.empty() || bytes != 8)
        return refuse("expected 8 bytes with the unit s, ms, us or ns");
      break;
    default:
      return refuse("expected numbers");
  }
  return found;
}

/// The distinct streams of a description and its mask.
struct StreamHandles {
  std::array<void*, 2> handles{};
  std::size_t count = 0;

  void add(const cuda_array_interface::Interface& by) {
    if (!by.stream) return;
    auto* handle = reinterpret_cast<void*>(static_cast<std::uintptr_t>(*by.stream));
    if (count == 0 || handles[0] != handle) handles[count++] = handle;
  }
  [[nodiscard]] Stream operator[](std::size_t index) const noexcept {
    return {ARROW_DEVICE_CUDA, handles[index]};
  }
};

/// The objects that live until the imported array is released.
template <class Object>
struct CudaMemory {
  Object object;
  std::shared_ptr<void> mask;
  std::vector<NamedStream> producers;
  std::optional<NamedStream> consumer;

  CudaMemory(Object&& owned, std::shared_ptr<void> bits)
      : object(std::move(owned)), mask(std::move(bits)) {}
  CudaMemory(CudaMemory&& other) noexcept(std::is_nothrow_move_constructible_v<Object>)
      : object(std::move(other.object)),
        mask(std::move(other.mask)),
        producers(std::move(other.producers)),
        consumer(std::exchange(other.consumer, std::nullopt)) {}
  CudaMemory(const CudaMemory&) = delete;
  CudaMemory& operator=(const CudaMemory&) = delete;
  CudaMemory& operator=(CudaMemory&&) = delete;

  /// Stores the streams for the release. Errors: as for SyncEvent. May throw.
  Status name_streams(const StreamHandles& of_producer, const FletchingStream& ours) {
    for (std::size_t i = 0; i < of_producer.count; ++i) {
      Result<NamedStream> named = NamedStream::make(cuda_stream(of_producer[i], ours.device_id));
      if (!named) return std::move(named).error();
      producers.push_back(*named);
    }
    Result<NamedStream> named = NamedStream::make(ours);
    if (!named) return std::move(named).error();
    consumer = *named;
    return {};
  }

  /// Makes the producer's streams wait for the consumer's. If that fails, the host waits. While the
  /// consumer's stream is being captured, the memory is kept.
  ~CudaMemory() {
    if (!consumer) return;
    if (consumer->is_inherited()) {
      FletchingCountInherited();
      return;
    }
    const FletchingStream ours = consumer->get();
    const int joined = join_producers(ours);
    if (joined == 0 || (joined == EBUSY && keep_until_passed(ours))) return;
    static_cast<void>(FletchingStreamSynchronize(ours, nullptr));
  }

 private:
  int join_producers(const FletchingStream& ours) noexcept {
    int code = producers.empty() ? ENOTSUP : 0;
    for (const NamedStream& producer : producers) {
      if (code == 0) code = FletchingStreamWaitFor(producer.get(), ours, nullptr);
    }
    return code;
  }

  /// Returns false if out of memory.
  bool keep_until_passed(const FletchingStream& ours) noexcept {
    consumer.reset();  // the memory is destroyed after the stream's work: no wait needed
    Result<DeviceArray> memory =
        make_device_array({}, {}, std::move(*this), ARROW_DEVICE_CUDA, ours.device_id);
    if (!memory) return false;
    static_cast<void>(
        guarded([&] { return defer_release(*memory, ours, FLETCHING_CAPTURE_KEEP); }));
    return true;
  }
};

/// Replaces the DLPack field in the core's error with the dictionary's key.
inline Error in_words_of(const cuda_array_interface::Interface& says, const Error& error) {
  constexpr std::string_view kType = "DLTensor.dtype: no Arrow type for ";
  constexpr std::string_view kStruct = "DLTensor.";
  std::string text = error.message();
  if (text.starts_with(kType)) {
    text = "typestr: no Arrow type for " + quote(says.typestr) + ", " + text.substr(kType.size());
  } else if (text.starts_with(kStruct)) {
    text = text.substr(kStruct.size());
  }
  return {error.code(), std::move(text)};
}

/// Returns the layout for importing the described memory, assuming the location in the description.
inline Result<FletchingTensorLayout> layout_of(const cuda_array_interface::Interface& says,
                                               const CudaArrayImportOptions& options) {
  Result<CudaType> type = type_of_typestr(says.typestr);
  if (!type) return std::move(type).error();
  if (says.shape.size() > kDlpackDimensions) {
    return Error{ENOTSUP, "shape: too many dimensions: expected at most 64, got " +
                              std::to_string(says.shape.size())};
  }
  std::vector<std::int64_t> shape(says.shape.begin(), says.shape.end());
  std::vector<std::int64_t> strides;
  const std::int64_t element = type->dlpack.bits / 8;
  for (std::size_t i = 0; says.strides && i < shape.size(); ++i) {
    const std::int64_t stride = (*says.strides)[i];
    if (shape[i] > 1 && stride % element != 0) {
      return Error{ENOTSUP,
                   "strides: not a multiple of the element's size: expected a multiple of " +
                       std::to_string(element) + ", got " + std::to_string(stride) +
                       "; hint: copy the array"};
    }
    strides.push_back(stride / element);
  }
  DLTensor tensor{};
  tensor.data = reinterpret_cast<void*>(static_cast<std::uintptr_t>(says.pointer));
  tensor.device = {kDLCUDA, 0};
  tensor.dtype = type->dlpack;
  tensor.ndim = static_cast<std::int32_t>(shape.size());
  tensor.shape = shape.data();
  tensor.strides = says.strides ? strides.data() : nullptr;
  FletchingTensorLayout layout;
  Status status = in_core(
      &FletchingTensorArrange, &tensor,
      core_options({.dimensions = options.dimensions, .as_storage = options.as_storage}), &layout);
  if (!status) return std::move(status).error();
  if (!type->time.empty()) layout.format = type->time.data();
  return layout;
}

/// Creates the array and its schema. They keep `memory` alive until released.
template <class Memory>
Result<ImportedTensor> wrap_tensor(const FletchingTensorLayout& layout, const CudaPlace& place,
                                   const CudaArrayImportOptions& options, Memory memory) {
  auto owner = std::make_unique<Memory>(std::move(memory));
  const DLDevice device{static_cast<DLDeviceType>(place.device_type),
                        static_cast<std::int32_t>(place.device_id)};
  ImportedTensor out;
  Status status = in_core(
      &FletchingTensorWrap, &layout, device, core_options({.dimensions = options.dimensions}),
      owner.get(), +[](void* held) { delete static_cast<Memory*>(held); }, out.schema.out(),
      out.array.out());
  if (!status) return std::move(status).error();
  static_cast<void>(owner.release());
  return out;
}

/// Calls pack_mask and validates the result.
inline Result<ValidityBitmap> packed_mask(const cuda_array_interface::Interface& mask,
                                          const CudaPlace& values,
                                          const CudaArrayImportOptions& options) {
  Result<ValidityBitmap> packed = options.pack_mask(mask);
  if (!packed || packed->bits == nullptr) return packed;
  Result<CudaPlace> found = find_cuda_memory(reinterpret_cast<std::uintptr_t>(packed->bits));
  if (!found) return std::move(found).error();
  Status same = check_same_device(*found, values);
  if (!same) return std::move(same).error();
  return packed;
}

/// Returns the mask of a non-empty array as a bitmap. `values` is the location of the elements.
inline Result<ValidityBitmap> bitmap_of(const cuda_array_interface::Interface& says,
                                        const CudaPlace& values,
                                        const CudaArrayImportOptions& options) {
  const cuda_array_interface::Interface& mask = *says.mask;
  const std::optional<cuda_array_interface::Typestr> type =
      cuda_array_interface::parse_typestr(mask.typestr);
  const bool bits = type && type->kind == 't' && type->number == 1U;
  if (says.shape.size() != 1) {
    return Error{ENOTSUP, "mask: not supported for this shape: expected one dimension, got " +
                              std::to_string(says.shape.size())};
  }
  const bool same = mask.shape.size() == 1 && mask.shape[0] == says.shape[0];
  if (bits && same && !mask.strides) {
    if (mask.pointer == 0) return ValidityBitmap{};
    Result<CudaPlace> found = find_cuda_memory(mask.pointer);
    if (!found) return std::move(found).error();
    Status there = check_same_device(*found, values);
    if (there) {
      return ValidityBitmap{
          reinterpret_cast<const void*>(static_cast<std::uintptr_t>(found->address)), {}};
    }
    if (!options.pack_mask) return std::move(there).error();
  }
  if (options.pack_mask) return packed_mask(mask, values, options);
  return Error{ENOTSUP, "mask: type not supported: expected one bit for each element, got " +
                            quote(mask.typestr) + "; hint: pass pack_mask, which makes bits of it"};
}

inline StreamHandles streams_of(const cuda_array_interface::Interface& says,
                                const CudaArrayImportOptions& options) {
  StreamHandles streams;
  if (!options.synchronize) return streams;
  streams.add(says);
  if (says.mask != nullptr) streams.add(*says.mask);
  return streams;
}

/// Exports one event for the array and its mask, which may be on two streams.
inline Status add_event(const StreamHandles& streams, DeviceArray& array) {
  if (streams.count == 0) return {};
  if (streams.count == 2) {
    Status joined = in_core(&FletchingStreamWaitFor, cuda_stream(streams[0], array->device_id),
                            cuda_stream(streams[1], array->device_id));
    if (!joined) return joined;
  }
  return export_with_event(array, streams[0]);
}

template <class Object>
Result<ImportedTensor> import_cuda_array(const cuda_array_interface::Interface& says, Object& owner,
                                         const CudaArrayImportOptions& options) {
  Status sound = check_description(says);
  if (!sound) return std::move(sound).error();
  if (options.consumer_stream) {
    sound = check_runtime(*options.consumer_stream, ARROW_DEVICE_CUDA);
    if (!sound) return std::move(sound).error();
  }
  Result<FletchingTensorLayout> layout = layout_of(says, options);
  if (!layout) return std::move(layout).error();
  CudaPlace memory{ARROW_DEVICE_CUDA, 0, 0};
  const bool has_values = layout->n_values > 0;
  if (has_values) {
    Result<CudaPlace> found = find_cuda_memory(says.pointer);
    if (!found) return std::move(found).error();
    memory = *found;
    layout->buffer = reinterpret_cast<const void*>(static_cast<std::uintptr_t>(memory.address));
  }
  ValidityBitmap bitmap;
  if (says.mask != nullptr && has_values) {
    Result<ValidityBitmap> found = bitmap_of(says, memory, options);
    if (!found) return std::move(found).error();
    bitmap = *std::move(found);
  }

  CudaMemory<Object> kept(std::move(owner), std::move(bitmap.owner));
  const StreamHandles streams = streams_of(says, options);
  if (options.consumer_stream) {
    Status named =
        kept.name_streams(streams, cuda_stream(*options.consumer_stream, memory.device_id));
    if (!named) return std::move(named).error();
  }
  Result<ImportedTensor> out = wrap_tensor(*layout, memory, options, std::move(kept));
  if (!out) return out;
  out->read_only = says.read_only;
  if (bitmap.bits != nullptr) {
    out->array->array.buffers[0] = bitmap.bits;
    out->array->array.null_count = -1;
  }
  Status evented = add_event(streams, out->array);
  if (!evented) return std::move(evented).error();
  return out;
}

}  // namespace detail

/// Imports an object's __cuda_array_interface__ as a schema and a device array.
///
/// Shapes, strides and types are as for from_dlpack, plus type strings of times. The driver
/// determines the device, the device type (device, pinned or managed memory) and the array's
/// pointer (cuPointerGetAttribute). An array without elements is on device 0. A stream in the
/// description becomes the array's sync_event; without a stream, the array has no event. Does not
/// block.
///
/// Mask: one bit per element of a one-dimensional array becomes the validity bitmap without a copy;
/// null_count is -1. Any other mask is converted by options.pack_mask or rejected, including bits
/// on another device than the values, because an array has one device. A mask has its own
/// description, and its stream is treated like the array's: the event covers both streams, and both
/// wait for consumer_stream at the release.
///
/// Ownership: `owner` is the object that returned the description. It keeps the memory and the
/// streams alive. It is consumed in every case, and destroyed when the array and every child moved
/// out of it are released, or at once on error. Its type must be nothrow movable, because it moves
/// into the array. `says` is read during the call and not kept. The streams that it names must live
/// until the owner is destroyed if consumer_stream is set, otherwise until this function returns.
///
/// Errors: EINVAL for a description that violates a rule, with the rule in the message; ENOTSUP for
/// types, strides and masks that Arrow lacks; otherwise as for SyncEvent. Threads: any.
template <class Object>
Result<ImportedTensor> from_cuda_array(const cuda_array_interface::Interface& says, Object owner,
                                       const CudaArrayImportOptions& options = {}) noexcept {
  static_assert(std::is_nothrow_move_constructible_v<Object>,
                "from_cuda_array: owner: expected a type whose move is noexcept; hint: put it into "
                "a std::unique_ptr");
  if constexpr (std::is_nothrow_move_constructible_v<Object>) {
    return detail::in_operation("from_cuda_array",
                                [&] { return detail::import_cuda_array(says, owner, options); });
  } else {
    return Error{EINVAL, ""};  // keeps the static_assert above the only compiler error
  }
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_CUDA_ARRAY_IMPORT_HPP
