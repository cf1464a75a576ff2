// SPDX-License-Identifier: Apache-2.0
//
// The verbs of events for HIP.
#ifndef FLETCHING_DETAIL_HIP_EVENTS_HPP
#define FLETCHING_DETAIL_HIP_EVENTS_HPP

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
    device_ = device;
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

  [[nodiscard]] std::int32_t device() const noexcept { return device_; }

  static bool is_default(hip::hipStream_t stream) noexcept {
    return reinterpret_cast<std::uintptr_t>(stream) <= hip::kHipStreamPerThread;
  }

 private:
  Status remember() {
    Status status = hip_status(hip_, "hipGetDevice", hip_.hip_get_device(&before_));
    is_known_ = status.ok();
    device_ = before_;
    return status;
  }

  const hip::Functions& hip_;
  std::int32_t before_ = 0;
  std::int32_t device_ = 0;
  bool is_known_ = false;
  bool is_set_ = false;
};

/// The verbs. Events are waited on and asked from whatever device the thread has.
struct HipEvents {
  static Status synchronize(const EventReference& event) {
    return on_event(event, [&](const hip::Functions& hip, hip::hipEvent_t handle) {
      return hip_status(hip, "hipEventSynchronize", hip.hip_event_synchronize(handle));
    });
  }

  static Status wait_on(const EventReference& event, void* stream) {
    return on_event(event, [&](const hip::Functions& hip, hip::hipEvent_t handle) {
      HipScope scope(hip);
      return within(scope, scope.enter_stream(of(stream)), [&] {
        return hip_status(hip, "hipStreamWaitEvent",
                          hip.hip_stream_wait_event(of(stream), handle, 0));
      });
    });
  }

  static Result<bool> ready(const EventReference& event) {
    bool done = false;
    Status status = on_event(event, [&](const hip::Functions& hip, hip::hipEvent_t handle) {
      return query(hip, handle, &done);
    });
    if (!status.ok()) return std::move(status).error();
    return done;
  }

  /// An event without timing that happens when all is done that is on the stream now.
  static Result<RecordedEvent> record(void* stream, int64_t /*device_id*/) {
    auto hip = initialized(Party::kProducer);
    if (!hip) return std::move(hip).error();
    RecordedEvent recorded;
    HipScope scope(**hip);
    Status status = guarded([&] {
      return within(scope, scope.enter_stream(of(stream)), [&] {
        recorded.device = scope.device();
        return create_and_record(**hip, of(stream), &recorded.event);
      });
    });
    if (status.ok()) return recorded;
    if (recorded.event != nullptr) (void)destroy(recorded);
    return std::move(status).error();
  }

  static Result<bool> has_happened(const RecordedEvent& recorded) {
    auto hip = hip::functions(Party::kProducer);
    if (!hip) return std::move(hip).error();
    bool done = false;
    Status status = query(**hip, static_cast<hip::hipEvent_t>(recorded.event), &done);
    if (!status.ok()) return std::move(status).error();
    return done;
  }

  static Status destroy(const RecordedEvent& recorded) {
    auto hip = hip::functions(Party::kProducer);
    if (!hip) return std::move(hip).error();
    HipScope scope(**hip);
    // Nobody else will destroy it: without its device it is done from the one that there is.
    Status entered =
        guarded([&] { return scope.enter(static_cast<std::int32_t>(recorded.device)); });
    Status status =
        hip_status(**hip, "hipEventDestroy",
                   (*hip)->hip_event_destroy(static_cast<hip::hipEvent_t>(recorded.event)));
    return first_error(first_error(std::move(entered), std::move(status)), scope.leave());
  }

 private:
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

  static Status query(const hip::Functions& hip, hip::hipEvent_t handle, bool* done) {
    const auto answer = hip.hip_event_query(handle);
    const EventState state = hip::event_state(answer);
    *done = state == EventState::kDone;
    return state == EventState::kFailed ? hip_status(hip, "hipEventQuery", answer) : Status{};
  }

  static Status create_and_record(const hip::Functions& hip, hip::hipStream_t stream,
                                  void** event) {
    hip::hipEvent_t handle = nullptr;
    Status status =
        hip_status(hip, "hipEventCreateWithFlags",
                   hip.hip_event_create_with_flags(&handle, hip::kHipEventDisableTiming));
    if (!status.ok()) return status;
    const auto result = hip.hip_event_record(handle, stream);
    if (result == hip::kHipSuccess) {
      *event = handle;
    } else {
      (void)hip.hip_event_destroy(handle);  // before there are words, for which memory may run out
    }
    return hip_status(hip, "hipEventRecord", result);
  }
};

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_DETAIL_HIP_EVENTS_HPP
