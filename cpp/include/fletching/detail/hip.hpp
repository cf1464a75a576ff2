// SPDX-License-Identifier: Apache-2.0
//
// The operations on events for HIP.
#ifndef FLETCHING_DETAIL_HIP_HPP
#define FLETCHING_DETAIL_HIP_HPP

#include <cerrno>
#include <cstdint>
#include <string>
#include <utility>

#include "fletching/detail/event_handle.hpp"
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
  Status enter_stream(hip::hipStream_t stream) {
    Status status = remember();
    if (!status.ok() || is_default(stream)) return status;
    const std::int32_t device = hip_.hip_get_stream_device_id(stream);
    if (device >= 0) return enter(device);
    return Error{EINVAL, std::string(hip::kRuntime.title) + ": hipGetStreamDeviceId failed with " +
                             std::to_string(device) + "; check that the stream is alive"};
  }

  Status enter(std::int32_t device) {
    if (!is_known_) {
      Status status = remember();
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
    (void)hip_.hip_set_device(before_);  // it may have reported what went wrong before
    return hip_status(hip_, "hipSetDevice", result);
  }

  static bool is_default(hip::hipStream_t stream) noexcept {
    return reinterpret_cast<std::uintptr_t>(stream) <= hip::kHipStreamPerThread;
  }

 private:
  Status remember() {
    Status status = hip_status(hip_, "hipGetDevice", hip_.hip_get_device(&before_));
    is_known_ = status.ok();
    return status;
  }

  const hip::Functions& hip_;
  std::int32_t before_ = 0;
  bool is_known_ = false;
  bool is_set_ = false;
};

/// Lets the calling thread make calls that are unsafe while streams are captured, as long as this
/// object lives, or until leave(). Does nothing in a HIP without modes, before ROCm 5.0.
class HipRelaxed {
 public:
  explicit HipRelaxed(const hip::Functions& hip) noexcept : hip_(hip) {}
  HipRelaxed(const HipRelaxed&) = delete;
  HipRelaxed& operator=(const HipRelaxed&) = delete;
  HipRelaxed(HipRelaxed&&) = delete;
  HipRelaxed& operator=(HipRelaxed&&) = delete;
  ~HipRelaxed() {
    (void)guarded([&] { return leave(); });
  }

  Status enter() {
    if (hip_.hip_thread_exchange_stream_capture_mode == nullptr) return {};
    const auto result = hip_.hip_thread_exchange_stream_capture_mode(&mode_);
    is_entered_ = result == hip::kHipSuccess;
    return hip_status(hip_, "hipThreadExchangeStreamCaptureMode", result);
  }

  Status leave() {
    if (!std::exchange(is_entered_, false)) return {};
    const auto result = hip_.hip_thread_exchange_stream_capture_mode(&mode_);
    if (result == hip::kHipSuccess) return {};
    // It may have reported what went wrong before.
    (void)hip_.hip_thread_exchange_stream_capture_mode(&mode_);
    return hip_status(hip_, "hipThreadExchangeStreamCaptureMode", result);
  }

 private:
  const hip::Functions& hip_;
  hip::hipStreamCaptureMode mode_ = hip::kHipStreamCaptureModeRelaxed;  // then that of before
  bool is_entered_ = false;
};

/// Whether the stream, whose device is current, is captured. Errors: as of judge_capture.
inline Result<bool> hip_is_captured(const hip::Functions& hip, hip::hipStream_t stream,
                                    OnCapture on_capture) {
  if (hip.hip_stream_is_capturing == nullptr) return false;
  hip::hipStreamCaptureStatus status = hip::kHipStreamCaptureStatusNone;
  const auto result = hip.hip_stream_is_capturing(stream, &status);
  if (result == hip::kHipErrorStreamCaptureImplicit) {
    return judge_capture(hip::kRuntime.title, StreamState::kBesideACapture, on_capture);
  }
  if (result != hip::kHipSuccess) return hip_status(hip, "hipStreamIsCapturing", result).error();
  return judge_capture(hip::kRuntime.title, static_cast<StreamState>(status), on_capture);
}

/// Whether this HIP has events that belong to each launch of a graph. ROCm 6.4 can record one, and
/// takes the flag of a wait for nothing.
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

/// The operations. Events are waited on, asked and destroyed from whatever device the thread has:
/// HIP knows the device of an event.
struct HipEvents {
  static Status synchronize(const EventReference& event) {
    return on_event(event, [&](const hip::Functions& hip, hip::hipEvent_t handle) {
      return relaxed(hip, [&] {
        return hip_status(hip, "hipEventSynchronize", hip.hip_event_synchronize(handle));
      });
    });
  }

  static Status wait_on(const EventReference& event, void* stream, OnCapture on_capture) {
    return on_event(event, [&](const hip::Functions& hip, hip::hipEvent_t handle) -> Status {
      HipScope scope(hip);
      return within(scope, scope.enter_stream(of(stream)), [&]() -> Status {
        const Result<bool> captured = hip_is_captured(hip, of(stream), on_capture);
        if (!captured.ok()) return refused_wait(captured.error());
        if (*captured) {
          Status supported = hip_has_external_events(hip);
          if (!supported.ok()) return supported;
        }
        return hip_status(hip, "hipStreamWaitEvent",
                          hip.hip_stream_wait_event(of(stream), handle, *captured ? kExternal : 0));
      });
    });
  }

  static Result<bool> ready(const EventReference& event) {
    bool done = false;
    Status status = on_event(event, [&](const hip::Functions& hip, hip::hipEvent_t handle) {
      return relaxed(hip, [&]() -> Status {
        const auto answer = hip.hip_event_query(handle);
        const EventState state = hip::event_state(answer);
        done = state == EventState::kDone;
        return state == EventState::kFailed ? hip_status(hip, "hipEventQuery", answer) : Status{};
      });
    });
    if (!status.ok()) return std::move(status).error();
    return done;
  }

  /// An event without timing that happens when all is done that is on the stream now; of a stream
  /// that is captured, what is on it at each launch of the graph.
  static Result<RecordedEvent> record(void* stream, int64_t /*device_id*/, OnCapture on_capture) {
    auto hip = initialized(Party::kProducer);
    if (!hip) return std::move(hip).error();
    RecordedEvent recorded;
    Status status = guarded([&] {
      return relaxed(**hip, [&] {
        HipScope scope(**hip);
        return within(scope, scope.enter_stream(of(stream)), [&]() -> Status {
          const Result<bool> captured = hip_is_captured(**hip, of(stream), on_capture);
          if (!captured.ok()) return captured.error();
          return create_and_record(**hip, of(stream), *captured, &recorded.event);
        });
      });
    });
    if (status.ok()) return recorded;
    if (recorded.event != nullptr) (void)destroy(recorded);
    return std::move(status).error();
  }

  /// Whether nothing that was on the stream can still run. An error says nothing about it.
  static Result<bool> has_passed(const RecordedEvent& recorded) {
    auto hip = hip::functions(Party::kProducer);
    if (!hip) return std::move(hip).error();
    bool passed = false;
    Status status = relaxed(**hip, [&]() -> Status {
      const auto answer = (*hip)->hip_event_query(static_cast<hip::hipEvent_t>(recorded.event));
      const EventState state = hip::event_state(answer);
      passed = state == EventState::kDone || hip::is_lost(answer);
      if (passed || state == EventState::kPending) return {};
      return hip_status(**hip, "hipEventQuery", answer);
    });
    if (passed) return true;
    if (!status.ok()) return std::move(status).error();
    return false;
  }

  static Status destroy(const RecordedEvent& recorded) {
    auto hip = hip::functions(Party::kProducer);
    if (!hip) return std::move(hip).error();
    // Nobody else will destroy it: without the mode it is done all the same.
    HipRelaxed relaxed(**hip);
    Status entered = guarded([&] { return relaxed.enter(); });
    Status destroyed =
        hip_status(**hip, "hipEventDestroy",
                   (*hip)->hip_event_destroy(static_cast<hip::hipEvent_t>(recorded.event)));
    return first_error(std::move(entered), first_error(std::move(destroyed), relaxed.leave()));
  }

  /// Runs the body in the mode in which no other thread's capture is in its way, nor it in theirs.
  static void run_relaxed(CFunction<void(void*)> body, void* data) {
    auto hip = hip::functions(Party::kProducer);
    if (!hip) return body(data);
    HipRelaxed relaxed(**hip);
    (void)guarded([&] { return relaxed.enter(); });
    body(data);
  }

 private:
  /// hipEventRecordExternal and hipEventWaitExternal, which are newer than the table.
  static constexpr std::uint32_t kExternal = 1;

  /// 1 is CUDA's number for the legacy default stream; HIP's is NULL, and older ones have no other.
  static hip::hipStream_t of(void* stream) noexcept {
    const bool is_legacy = reinterpret_cast<std::uintptr_t>(stream) == 1;
    return is_legacy ? nullptr : static_cast<hip::hipStream_t>(stream);
  }

  static Result<const hip::Functions*> initialized(Party party) {
    auto hip = hip::functions(party);
    if (!hip) return hip;
    Status status = hip_status(**hip, "hipInit", (*hip)->hip_init(0));
    if (!status.ok()) return std::move(status).error();
    return hip;
  }

  template <class Body>
  static Status on_event(const EventReference& event, Body body) {
    auto handle = handle_at<hip::hipEvent_t>(event);
    if (!handle) return std::move(handle).error();
    auto hip = initialized(Party::kConsumer);
    if (!hip) return std::move(hip).error();
    return body(**hip, *handle);
  }

  template <class Body>
  static Status relaxed(const hip::Functions& hip, Body body) {
    HipRelaxed relaxed(hip);
    return within(relaxed, relaxed.enter(), body);
  }

  static Status create_and_record(const hip::Functions& hip, hip::hipStream_t stream, bool captured,
                                  void** event) {
    if (captured) {
      Status supported = hip_has_external_events(hip);
      if (!supported.ok()) return supported;
    }
    hip::hipEvent_t handle = nullptr;
    Status status =
        hip_status(hip, "hipEventCreateWithFlags",
                   hip.hip_event_create_with_flags(&handle, hip::kHipEventDisableTiming));
    if (!status.ok()) return status;
    const auto result = captured ? hip.hip_event_record_with_flags(handle, stream, kExternal)
                                 : hip.hip_event_record(handle, stream);
    if (result == hip::kHipSuccess) {
      *event = handle;
    } else {
      (void)hip.hip_event_destroy(handle);  // before there are words, for which memory may run out
    }
    return hip_status(hip, captured ? "hipEventRecordWithFlags" : "hipEventRecord", result);
  }
};

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_DETAIL_HIP_HPP
