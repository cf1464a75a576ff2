// SPDX-License-Identifier: Apache-2.0
//
// HIP: its row of the runtimes.
#ifndef FLETCHING_DETAIL_HIP_HPP
#define FLETCHING_DETAIL_HIP_HPP

#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "fletching/detail/capturing.hpp"
#include "fletching/detail/event_handle.hpp"
#include "fletching/detail/runtime.hpp"
#include "fletching/runtimes/hip.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

/// A result of HIP as a Status.
inline Status hip_status(const hip::Functions& hip, const char* function, hip::hipError_t result) {
  if (result == hip::kHipSuccess) return {};
  const char* name = hip.hip_get_error_name(result);
  if (name == nullptr) name = hip::status_name(result);
  return vendor_error({hip::kRuntime.title, function, result, name,
                       hip.hip_get_error_string(result), result == hip::kHipErrorInvalidHandle});
}

/// 1 is CUDA's number for the legacy default stream; HIP's is NULL, and older ones have no other.
inline hip::hipStream_t hip_stream(void* stream) noexcept {
  const bool is_legacy = reinterpret_cast<std::uintptr_t>(stream) == 1;
  return is_legacy ? nullptr : static_cast<hip::hipStream_t>(stream);
}

/// The calling thread's device, set for a while: as long as this object lives, or until leave().
class HipScope {
 public:
  explicit HipScope(const hip::Functions& hip) noexcept : hip_(hip) {}
  HipScope(const HipScope&) = delete;
  HipScope& operator=(const HipScope&) = delete;
  HipScope(HipScope&&) = delete;
  HipScope& operator=(HipScope&&) = delete;
  ~HipScope() {
    (void)guarded([&] { return leave(); });
  }

  /// The device of a stream. The default streams are those of the thread's device.
  Status enter_stream(void* stream, int64_t /*device_id*/) {
    Status status = note_device();
    if (!status.ok() || is_default(stream)) return status;
    const std::int32_t device = hip_.hip_get_stream_device_id(hip_stream(stream));
    if (device >= 0) return enter(device);
    return Error{EINVAL, std::string(hip::kRuntime.title) + ": hipGetStreamDeviceId failed with " +
                             std::to_string(device) + "; hint: check that the stream is alive"};
  }

  Status enter(std::int32_t device) {
    if (!is_known_) {
      Status status = note_device();
      if (!status.ok()) return status;
    }
    if (device == before_) return {};
    Status status = hip_status(hip_, "hipSetDevice", hip_.hip_set_device(device));
    is_set_ = status.ok();
    return status;
  }

  Status leave() {
    if (!std::exchange(is_set_, false)) return {};
    const auto result = hip_.hip_set_device(before_);
    if (result == hip::kHipSuccess) return {};
    (void)hip_.hip_set_device(before_);  // it may have reported an earlier error
    return hip_status(hip_, "hipSetDevice", result);
  }

  /// HIP knows the device of an event.
  static Status remember(RecordedEvent& /*recorded*/) { return {}; }

  static bool is_default(void* stream) noexcept {
    return reinterpret_cast<std::uintptr_t>(stream) <= hip::kHipStreamPerThread;
  }

 private:
  Status note_device() {
    Status status = hip_status(hip_, "hipGetDevice", hip_.hip_get_device(&before_));
    is_known_ = status.ok();
    return status;
  }

  const hip::Functions& hip_;
  std::int32_t before_ = 0;
  bool is_known_ = false;
  bool is_set_ = false;
};

/// Whether this HIP has events that belong to each launch of a graph. ROCm 6.4 can record one, and
/// ignores the flag of a wait.
inline Status hip_has_external_events(const hip::Functions& hip) {
  constexpr std::int32_t kFirst = 70000000;  // 7.0
  std::int32_t version = 0;
  const auto result = hip.hip_runtime_get_version(&version);
  if (result != hip::kHipSuccess) return hip_status(hip, "hipRuntimeGetVersion", result);
  if (hip.hip_event_record_with_flags != nullptr && version >= kFirst) return {};
  return Error{ENOTSUP, std::string(hip::kRuntime.title) +
                            ": no external events of graphs: expected ROCm 7.0 or later, got "
                            "version " +
                            std::to_string(version)};
}

/// What CapturingEvents needs to know of HIP. Events are waited on, asked and destroyed from
/// whatever device the thread has: HIP knows the device of an event.
struct HipApi {
  using Functions = hip::Functions;
  using Event = hip::hipEvent_t;
  using CaptureMode = hip::hipStreamCaptureMode;
  using CaptureStatus = hip::hipStreamCaptureStatus;
  using Scope = HipScope;

  static constexpr const char* kTitle = hip::kRuntime.title;
  static constexpr auto kSuccess = hip::kHipSuccess;
  static constexpr auto kImplicitCapture = hip::kHipErrorStreamCaptureImplicit;
  static constexpr auto kRelaxed = hip::kHipStreamCaptureModeRelaxed;
  static constexpr auto kDisableTiming = hip::kHipEventDisableTiming;
  // hipEventWaitExternal and hipEventRecordExternal, which are newer than the table.
  static constexpr std::uint32_t kWaitExternal = 1;
  static constexpr std::uint32_t kRecordExternal = 1;

  static constexpr VendorCall kInit{"hipInit", &Functions::hip_init};
  static constexpr VendorCall kExchangeMode{"hipThreadExchangeStreamCaptureMode",
                                            &Functions::hip_thread_exchange_stream_capture_mode};
  static constexpr VendorCall kIsCapturing{"hipStreamIsCapturing",
                                           &Functions::hip_stream_is_capturing};
  static constexpr VendorCall kStreamWaitEvent{"hipStreamWaitEvent",
                                               &Functions::hip_stream_wait_event};
  static constexpr VendorCall kEventSynchronize{"hipEventSynchronize",
                                                &Functions::hip_event_synchronize};
  static constexpr VendorCall kEventQuery{"hipEventQuery", &Functions::hip_event_query};
  static constexpr VendorCall kEventCreate{"hipEventCreateWithFlags",
                                           &Functions::hip_event_create_with_flags};
  static constexpr VendorCall kEventRecord{"hipEventRecord", &Functions::hip_event_record};
  static constexpr VendorCall kEventRecordWithFlags{"hipEventRecordWithFlags",
                                                    &Functions::hip_event_record_with_flags};
  static constexpr VendorCall kEventDestroy{"hipEventDestroy", &Functions::hip_event_destroy};

  static Result<const Functions*> functions(Party party) noexcept { return hip::functions(party); }
  static Status status(const Functions& hip, const char* function, hip::hipError_t result) {
    return hip_status(hip, function, result);
  }
  static EventState event_state(hip::hipError_t answer) noexcept {
    return hip::event_state(answer);
  }
  static bool is_lost(hip::hipError_t answer) noexcept { return hip::is_lost(answer); }
  static hip::hipStream_t stream(void* stream) noexcept { return hip_stream(stream); }

  static Status can_wait_externally(const Functions& hip) { return hip_has_external_events(hip); }
  static Status can_record_externally(const Functions& hip) { return hip_has_external_events(hip); }

  template <class Body>
  static Status in_any_place(const Functions& /*hip*/, int64_t /*device_id*/, Body body) {
    return body();
  }

  template <class Body>
  static Status unless_gone(const Functions& /*hip*/, const RecordedEvent& /*recorded*/,
                            bool& /*passed*/, Body body) {
    return body();
  }

  static Status destroy(const Functions& hip, const RecordedEvent& recorded) {
    return call<HipApi>(hip, kEventDestroy, static_cast<Event>(recorded.event));
  }
};

using HipEvents = CapturingEvents<HipApi>;

struct HipRuntime : RuntimeRow {
  static constexpr Runtime kId = Runtime::kHip;
  static constexpr const char* kTitle = hip::kRuntime.title;
  static constexpr WaitFunctions kWaits = kWaitFunctions<HipEvents>;
  static constexpr RecordFunctions kRecords = kRecordFunctions<HipEvents>;
};

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_DETAIL_HIP_HPP
