// SPDX-License-Identifier: Apache-2.0
//
// The stream argument of __dlpack__: what the integer means on which device. Array API,
// "__dlpack__".
#ifndef FLETCHING_DLPACK_STREAM_HPP
#define FLETCHING_DLPACK_STREAM_HPP

#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "fletching/abi.h"
#include "fletching/capture.hpp"
#include "fletching/detail/core.hpp"
#include "fletching/device_stream.hpp"
#include "fletching/dlpack_export.hpp"
#include "fletching/dlpack_import.hpp"
#include "fletching/dlpack_tensor.hpp"
#include "fletching/dlpack_types.hpp"
#include "fletching/export_event.hpp"
#include "fletching/owner.hpp"
#include "fletching/result.hpp"
#include "fletching/sync_event.hpp"
#include "fletching/tables.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {

/// What has to be ordered after the producer's work.
enum class Ordering : std::uint8_t {
  kNone,    ///< nothing: the consumer synchronizes itself, or has waited
  kHost,    ///< the host: the work has to be done on return
  kStream,  ///< a stream of the device
};

/// A stream argument, read.
struct ConsumerStream {
  Ordering ordering = Ordering::kNone;
  /// The stream of Ordering::kStream, of CUDA or HIP.
  Stream stream{0, nullptr};
};

namespace detail {

inline Error bad_stream(std::int64_t stream, ArrowDeviceType device, std::string_view expected) {
  return {EINVAL, "stream: invalid on " + device_name(device) + ": expected " +
                      std::string(expected) + ", got " + std::to_string(stream)};
}

inline Result<ConsumerStream> read_stream(ArrowDeviceType device,
                                          std::optional<std::int64_t> stream) {
  const bool cuda = device == ARROW_DEVICE_CUDA || device == ARROW_DEVICE_CUDA_HOST ||
                    device == ARROW_DEVICE_CUDA_MANAGED;
  const bool rocm = device == ARROW_DEVICE_ROCM || device == ARROW_DEVICE_ROCM_HOST;
  const bool has_streams = cuda || rocm;
  if (!has_streams && stream) {
    return bad_stream(*stream, device, "None, because the device has no streams");
  }
  // A consumer of memory that the host reads may be one that knows no streams at all.
  if (!stream && (!has_streams || is_host_readable(device))) {
    return ConsumerStream{Ordering::kHost, {device, nullptr}};
  }
  const std::int64_t number = stream.value_or(cuda ? 1 : 0);
  if (number == -1) return ConsumerStream{Ordering::kNone, {device, nullptr}};
  if (number < -1) return bad_stream(number, device, "-1 for no synchronization, or a stream");
  if (cuda && number == 0) {
    return bad_stream(number, device,
                      "1 for the legacy default stream or 2 for the per-thread one");
  }
  if (rocm && (number == 1 || number == 2)) {
    return bad_stream(number, device, "0 for the default stream");
  }
  if (static_cast<std::uint64_t>(number) > UINTPTR_MAX) {
    return bad_stream(number, device, "a handle of this process");
  }
  auto* const handle = reinterpret_cast<void*>(static_cast<std::uintptr_t>(number));
  return ConsumerStream{Ordering::kStream, {device, handle}};
}

inline Status order_behind(const DeviceArray& array, const ConsumerStream& stream) {
  const SyncEvent event(array);
  if (stream.ordering == Ordering::kStream) {
    if (array->sync_event == nullptr) return {};
    const Status fits = check_runtime("to_dlpack", stream.stream, array->device_type);
    return fits ? event.wait_on(stream.stream) : fits;
  }
  return stream.ordering == Ordering::kHost ? event.synchronize() : Status();
}

/// Blocks until everything is done that is on the stream now.
inline Status wait_for_stream(DLDevice device, const ConsumerStream& consumer) {
  constexpr const char* kOperation = "from_dlpack";
  const DeviceType type = device.device_type;
  if (has_records(type)) {
    Status fits = check_runtime(kOperation, consumer.stream, type);
    if (!fits) return fits;
  }
  const std::int64_t device_id = to_arrow_device_id(device);
  // Of an event the host waits asleep, of a stream it may spin.
  Result<RecordedEvent> recorded =
      record_event(core_stream(consumer.stream, type, device_id), FLETCHING_CAPTURE_REFUSE);
  if (!recorded) {
    const Error& error = recorded.error();
    if (error.code() == ENOTSUP) return no_records(kOperation, type, error);
    return with_capture_hint(kOperation, error, "copy before the capture begins");
  }
  const FletchingEvent event{FletchingRecordedEventAddress(recorded->get()), device_id, nullptr,
                             type.value()};
  return in_core(&FletchingEventSynchronize, &event);
}

template <class Managed>
Result<TensorOwner<Managed>> export_behind(const ArrowSchema& schema, DeviceArray& array,
                                           const ConsumerStream& stream,
                                           DlpackExportOptions options) {
  options.event_handled = true;
  // A released array has no event.
  Status ordered = check_exportable(schema, array, options);
  if (ordered) ordered = order_behind(array, stream);
  if (!ordered) return std::move(ordered).error();
  return export_tensor<Managed>(schema, array, options, stream.ordering == Ordering::kHost);
}

}  // namespace detail

/// The stream argument of __dlpack__ for data on `device`; an empty optional means None.
///
/// CUDA: None or 1 is the legacy default stream, 2 the per-thread one, -1 none, 0 is refused. ROCm:
/// None or 0 is the default stream, -1 none, 1 and 2 are refused. Every other number from there on
/// is a handle. With None and memory that the host reads too, pinned or managed, it is the host
/// that is ordered, which includes the default stream. Elsewhere only None is accepted, and it is
/// the host that is ordered too. Errors are EINVAL.
inline Result<ConsumerStream> read_dlpack_stream(ArrowDeviceType device,
                                                 std::optional<std::int64_t> stream) noexcept {
  return detail::guarded([&] { return detail::read_stream(device, stream); });
}

/// The same as the functions without a stream (dlpack_export.hpp), after `stream` has been ordered
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
/// event that there is no way to wait for among them: of Vulkan, or of a device type without a
/// waiter. Then wait, and call the function without a stream with event_handled. After an error the
/// array is still the caller's.
inline Result<DlpackTensor> to_dlpack(const ArrowSchema& schema, DeviceArray& array,
                                      const ConsumerStream& stream,
                                      const DlpackExportOptions& options = {}) noexcept {
  return detail::guarded([&] {
    return detail::export_behind<DLManagedTensorVersioned>(schema, array, stream, options);
  });
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
  return detail::guarded([&]() -> Result<LegacyDlpackTensor> {
    Status fits = detail::check_legacy(options);
    if (!fits) return std::move(fits).error();
    return detail::export_behind<DLManagedTensor>(schema, array, stream, options);
  });
}

/// The same as from_dlpack without a stream (dlpack_import.hpp), for a tensor whose producer was
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
  if (stream.ordering != Ordering::kStream) return from_dlpack(std::move(tensor), options);
  return detail::guarded([&]() -> Result<ImportedTensor> {
    bool is_done = false;
    Result<ImportedTensor> imported =
        detail::import_tensor(std::move(tensor), options, [&](DLDevice device) {
          is_done = true;
          return detail::wait_for_stream(device, stream);
        });
    if (!imported || is_done) return imported;
    const ArrowDeviceType device = imported->array->device_type;
    Status recorded;
    if (detail::has_records(device)) {
      recorded = detail::check_runtime("from_dlpack", stream.stream, device);
    }
    if (recorded) {
      recorded = export_with_event(imported->array, stream.stream);
    }
    if (!recorded) return std::move(recorded).error();
    return imported;
  });
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_DLPACK_STREAM_HPP
