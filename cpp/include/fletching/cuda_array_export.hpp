// SPDX-License-Identifier: Apache-2.0
//
// Exports a device array to __cuda_array_interface__ version 3, without a copy.
#ifndef FLETCHING_CUDA_ARRAY_EXPORT_HPP
#define FLETCHING_CUDA_ARRAY_EXPORT_HPP

#include <bit>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fletching/cuda_array_interface.hpp"
#include "fletching/cuda_streams.hpp"
#include "fletching/detail/checked.hpp"
#include "fletching/device_stream.hpp"
#include "fletching/dlpack_types.hpp"
#include "fletching/format.hpp"
#include "fletching/owner.hpp"
#include "fletching/release_after.hpp"
#include "fletching/result.hpp"
#include "fletching/sync_event.hpp"
#include "fletching/tensor.h"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {

/// Options of to_cuda_array.
struct CudaArrayExportOptions {
  /// Mark the memory as read-only. Some consumers reject read-only memory.
  bool read_only = true;
  /// Describe types that NumPy lacks as their storage type.
  bool as_storage = false;
  /// Describe the validity bitmap as a bit mask, "<t1", instead of rejecting nulls.
  bool mask = false;
};

namespace detail {

inline constexpr char kNativeOrder = std::endian::native == std::endian::little
                                         ? cuda_array_interface::kLittleEndian
                                         : cuda_array_interface::kBigEndian;

/// The letter of a unit in a type string.
constexpr std::string_view unit_text(TimeUnit unit) noexcept {
  switch (unit) {
    case TimeUnit::kSecond:
      return "s";
    case TimeUnit::kMilli:
      return "ms";
    case TimeUnit::kMicro:
      return "us";
    case TimeUnit::kNano:
      return "ns";
    case TimeUnit::kNone:
      break;
  }
  return "";
}

/// The letter of a type in a type string; 0 for a DLPack type that NumPy lacks.
constexpr char kind_of(DLDataType type) noexcept {
  switch (type.code) {
    case kDLInt:
      return 'i';
    case kDLUInt:
      return 'u';
    case kDLFloat:
      return 'f';
    case kDLComplex:
      return type.bits == 32 ? '\0' : 'c';
    case kDLBool:
      return 'b';
    default:
      return '\0';
  }
}

/// The type string of a tensor's values, including times, which DLPack lacks. Errors: ENOTSUP for a
/// type that NumPy lacks.
inline Result<std::string> typestr_of(const FletchingTensorView& view) {
  cuda_array_interface::Typestr parts{kNativeOrder, kind_of(view.dtype), view.dtype.bits / 8U, 1,
                                      ""};
  if (parts.kind == '\0') {
    return Error{ENOTSUP, "typestr: no NumPy type for DLPack's " +
                              data_type_code_name(view.dtype.code) + " of " +
                              std::to_string(view.dtype.bits) +
                              " bits: expected a number; hint: pass as_storage"};
  }
  const Result<Format> format = parse_format(view.values->format);
  if (format && format->timezone.empty() && format->id == TypeId::kTimestamp) {
    parts = {kNativeOrder, 'M', 8, 1, unit_text(format->unit)};
  } else if (format && format->id == TypeId::kDuration) {
    parts = {kNativeOrder, 'm', 8, 1, unit_text(format->unit)};
  }
  if (view.dtype.bits == 8) parts.order = cuda_array_interface::kIrrelevant;
  return cuda_array_interface::format_typestr(parts);
}

/// A description and the memory that its pointers refer to, at stable addresses.
struct CudaArrayState {
  DeviceArray array;
  std::optional<NamedStream> stream;
  std::optional<OwnedStream> own_stream;
  std::string typestr;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
  cuda_array_interface::Interface mask;
  cuda_array_interface::Interface array_interface;

  CudaArrayState() = default;
  CudaArrayState(const CudaArrayState&) = delete;
  CudaArrayState& operator=(const CudaArrayState&) = delete;
  ~CudaArrayState() {
    static_cast<void>(guarded([&] {
      release();
      return Status();
    }));
  }

  /// Defers the release of the array until the work on the stream is done: a consumer may have
  /// enqueued more work on the memory, made the stream wait for such work, or started to capture
  /// the stream. A stream that the library created is destroyed with the array.
  void release() {
    if (!stream) return;
    if (stream->is_inherited()) return FletchingCountInherited();
    if (array.is_released()) return;
    if (own_stream) static_cast<void>(attach(array, *std::move(own_stream)));
    static_cast<void>(defer_release(array, stream->get(), FLETCHING_CAPTURE_KEEP));
  }
};

/// Describes the values with the core.
inline Result<FletchingTensorView> cuda_values(const ArrowSchema& schema, const DeviceArray& array,
                                               const CudaArrayExportOptions& options) {
  FletchingTensorView view;
  const bool is_readable = is_host_readable(array->device_type) && array->sync_event == nullptr;
  const std::uint32_t asked = FLETCHING_TENSOR_TIMES |
                              (options.as_storage ? FLETCHING_TENSOR_AS_STORAGE : 0U) |
                              (options.mask ? FLETCHING_TENSOR_MASK : 0U) |
                              (is_readable ? FLETCHING_TENSOR_HOST_READABLE : 0U);
  Status status = in_core(&FletchingTensorDescribe, &schema, &array->array, asked, &view);
  if (!status) return std::move(status).error();
  return view;
}

/// Describes the validity bitmap, if any, as a mask.
inline Status describe_mask(const ArrowArray& array, CudaArrayState& out) {
  const void* bitmap = array.n_buffers > 0 ? array.buffers[0] : nullptr;
  if (bitmap == nullptr || array.null_count == 0 || array.length == 0) return {};
  if (out.shape.size() > 1) {
    return Error{
        ENOTSUP,
        "mask: not supported for lists: expected an array without nulls; hint: fill them before"};
  }
  if (array.offset % 8 != 0) {
    return Error{ENOTSUP,
                 "ArrowArray.offset: not supported by a mask: expected a multiple of 8, got " +
                     std::to_string(array.offset)};
  }
  const auto address = reinterpret_cast<std::uintptr_t>(bitmap);
  const auto end =
      static_cast<std::uint64_t>(array.offset) + static_cast<std::uint64_t>(array.length);
  if (end / 8 >= UINTPTR_MAX - address) {
    return Error{EINVAL,
                 "ArrowArray.buffers[0]: validity bitmap beyond the address space: expected "
                 "fewer bits, got " +
                     std::to_string(end)};
  }
  out.mask.shape = out.shape;
  out.mask.typestr = "<t1";
  out.mask.pointer = address + static_cast<std::uint64_t>(array.offset) / 8;
  out.mask.read_only = true;
  out.array_interface.mask = &out.mask;
  return {};
}

/// Makes the exported stream wait for the event: the given stream, or a new stream if the array has
/// an event.
inline Status order_stream(const DeviceArray& array, std::optional<Stream> given,
                           CudaArrayState& out) {
  const SyncEvent event(array);
  if (!given && event.is_null()) return {};
  const Stream used = given.value_or(Stream(ARROW_DEVICE_CUDA, nullptr));
  Status fits = check_runtime(used, ARROW_DEVICE_CUDA);
  if (!fits) return fits;
  FletchingStream named = cuda_stream(used, array->device_id);
  if (!given) {
    Status made = in_core(&FletchingCudaStreamCreate, array->device_id, &named);
    if (!made) return made;
    out.own_stream.emplace(named);
  }
  Status waiting =
      event.wait_on(Stream(ARROW_DEVICE_CUDA, named.handle).on_device(named.device_id));
  if (!waiting) return waiting;
  Result<NamedStream> known = NamedStream::make(named);
  if (!known) return std::move(known).error();
  out.stream.emplace(*known);
  const auto handle = reinterpret_cast<std::intptr_t>(named.handle);
  out.array_interface.stream = handle == 0 ? cuda_array_interface::kStreamLegacyDefault : handle;
  out.mask.stream = out.array_interface.stream;
  return {};
}

/// A CUDA device, so the memory has addresses.
inline Status describe_values(const FletchingTensorView& view, CudaArrayState& out) {
  const std::int64_t item = view.dtype.bits / 8;
  out.shape.assign(view.shape, view.shape + view.ndim);
  for (std::int32_t i = 0; i < view.ndim; ++i) {
    out.strides.push_back(next_step(view.strides[i], item));
  }
  Result<std::string> typestr = typestr_of(view);
  if (!typestr) return std::move(typestr).error();
  out.typestr = *std::move(typestr);
  const auto address = reinterpret_cast<std::uintptr_t>(view.buffer);
  if (view.byte_offset + view.bytes > UINTPTR_MAX - address) {
    return Error{EINVAL,
                 "ArrowArray: offset or length out of range: expected elements within the address "
                 "space; hint: fix the producer"};
  }
  cuda_array_interface::Interface& says = out.array_interface;
  says.shape = out.shape;
  says.typestr = out.typestr;
  says.pointer = view.bytes == 0 ? 0 : address + view.byte_offset;
  const bool compact =
      cuda_array_interface::is_contiguous(out.shape, out.strides, static_cast<std::uint64_t>(item));
  if (!compact) says.strides = out.strides;
  return {};
}

inline Status check_cuda_device(ArrowDeviceType device) {
  if (device == ARROW_DEVICE_CUDA || device == ARROW_DEVICE_CUDA_HOST ||
      device == ARROW_DEVICE_CUDA_MANAGED) {
    return {};
  }
  return Error{ENOTSUP, "not supported on " + device_name(device) +
                            ": expected a CUDA device; hint: copy the array to one"};
}

inline Result<std::unique_ptr<CudaArrayState>> describe(const ArrowSchema& schema,
                                                        DeviceArray& array,
                                                        std::optional<Stream> stream,
                                                        const CudaArrayExportOptions& options) {
  if (schema.release == nullptr || array.is_released()) {
    return Error{EINVAL, "schema or array is released: expected live ones"};
  }
  Status fits = check_cuda_device(array->device_type);
  if (!fits) return std::move(fits).error();
  Result<FletchingTensorView> view = cuda_values(schema, array, options);
  if (!view) return std::move(view).error();
  auto state = std::make_unique<CudaArrayState>();
  state->array_interface.read_only = options.read_only;
  Status status = describe_values(*view, *state);
  if (status && options.mask) {
    status = describe_mask(array->array, *state);
  }
  if (status) status = order_stream(array, stream, *state);
  if (!status) return std::move(status).error();
  state->array = std::move(array);
  return state;
}

}  // namespace detail

/// The state behind an object with __cuda_array_interface__: the description, the array that it
/// describes, and the stream that it names.
///
/// Ownership: owns the array, and the stream unless the caller passed one. The destructor releases
/// the array when the current work on the stream is done, because a consumer may have enqueued work
/// on the memory, and destroys an owned stream. The stream thus lives as long as the object (CUDA
/// Array Interface, "Lifetime management").
///
/// If the stream is being captured into a graph at that time, the array is released after the
/// capture has ended and the work on the stream is done; a stream passed by the caller must live
/// until then (pending_releases). The consumer must keep the memory that the graph uses alive. The
/// object may be destroyed on any thread, even if its stream is the per-thread default stream. In a
/// child of fork, no stream is waited for or destroyed.
class CudaArray {
 public:
  /// The description. Its pointers are valid for the lifetime of this object, also after a move.
  [[nodiscard]] const cuda_array_interface::Interface& array_interface() const noexcept {
    return state_->array_interface;
  }

  explicit CudaArray(std::unique_ptr<detail::CudaArrayState> state) noexcept
      : state_(std::move(state)) {}

 private:
  std::unique_ptr<detail::CudaArrayState> state_;
};

/// Describes `array` of type `schema` for __cuda_array_interface__.
///
/// Types: as in DLPack (docs/dlpack.md), and timestamps without a time zone and durations as "M8"
/// and "m8". Device types: CUDA, pinned and managed memory. The pointer is the address of the first
/// element, or 0 without elements. Strides are in bytes, and omitted for contiguous elements.
///
/// Stream: makes `stream` wait for the array's sync_event and names it in the description; `stream`
/// must outlive the CudaArray. Without `stream`, an array with an event gets a new stream that
/// waits for the event, and an array without an event names no stream. The call does not block. A
/// producer with work on several streams must join them into one first (join_cuda_streams).
///
/// Mask: with options.mask, exports a validity bitmap that begins at a whole byte; a set bit is a
/// valid element. The mask names the same stream as the array, whose event covers it.
///
/// Ownership: on success the array is moved into the result. On error the caller still owns it.
///
/// Errors: ENOTSUP, EINVAL and ENOMEM as for to_dlpack; EINVAL for a stream of another runtime;
/// stream errors as for SyncEvent. Threads: any.
inline Result<CudaArray> to_cuda_array(const ArrowSchema& schema, DeviceArray& array,
                                       std::optional<Stream> stream = {},
                                       const CudaArrayExportOptions& options = {}) noexcept {
  return detail::in_operation("to_cuda_array", [&]() -> Result<CudaArray> {
    auto state = detail::describe(schema, array, stream, options);
    if (!state) return std::move(state).error();
    return CudaArray(*std::move(state));
  });
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_CUDA_ARRAY_EXPORT_HPP
