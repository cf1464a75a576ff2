// SPDX-License-Identifier: Apache-2.0
//
// The verbs of events for CUDA, by the driver API alone.
#ifndef FLETCHING_DETAIL_CUDA_EVENTS_HPP
#define FLETCHING_DETAIL_CUDA_EVENTS_HPP

#include <cerrno>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "fletching/detail/event_handle.hpp"
#include "fletching/runtimes/cuda.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

/// A result of the driver API as a Status.
inline Status cuda_status(const cuda::Functions& cuda, const char* function,
                          cuda::CUresult result) {
  if (result == cuda::kCudaSuccess) return {};
  const char* name = nullptr;
  const char* text = nullptr;
  if (cuda.cu_get_error_name(result, &name) != cuda::kCudaSuccess) name = nullptr;
  if (cuda.cu_get_error_string(result, &text) != cuda::kCudaSuccess) text = nullptr;
  if (name == nullptr) name = cuda::status_name(result);
  return vendor_error({cuda::kRuntime.title, function, result, name, text,
                       result == cuda::kCudaErrorInvalidHandle});
}

/// A context that is current for the calling thread as long as this object lives, or until leave().
///
/// No context is created: only one that somebody else has made is used. Afterwards the thread's
/// contexts, and the references of the primary one, are as before.
class CudaScope {
 public:
  explicit CudaScope(const cuda::Functions& cuda) noexcept : cuda_(cuda) {}
  CudaScope(const CudaScope&) = delete;
  CudaScope& operator=(const CudaScope&) = delete;
  CudaScope(CudaScope&&) = delete;
  CudaScope& operator=(CudaScope&&) = delete;
  ~CudaScope() {
    (void)guarded([&] { return leave(); });
  }

  /// The context of a stream. The default streams NULL, 1 and 2 are those of the current context.
  Status enter_stream(void* stream, int64_t device_id) {
    if (reinterpret_cast<std::uintptr_t>(stream) <= cuda::kCuStreamPerThread) {
      return enter_any(device_id);
    }
    cuda::CUcontext context = nullptr;
    const auto result = cuda_.cu_stream_get_ctx(reinterpret_cast<cuda::CUstream>(stream), &context);
    Status status = cuda_status(cuda_, "cuStreamGetCtx", result);
    return status.ok() ? enter(context) : std::move(status);
  }

  /// The current context; without one the primary context of the device, if it is active.
  Status enter_any(int64_t device_id) {
    Status status = cuda_status(cuda_, "cuCtxGetCurrent", cuda_.cu_ctx_get_current(&current_));
    if (!status.ok() || current_ != nullptr) return status;
    if (device_id < 0 || device_id > (std::numeric_limits<std::int32_t>::max)()) {
      return Error{EINVAL, "device_id " + std::to_string(device_id) + " is no CUDA device ordinal"};
    }
    cuda::CUdevice device = 0;
    const auto result = cuda_.cu_device_get(&device, static_cast<std::int32_t>(device_id));
    status = cuda_status(cuda_, "cuDeviceGet", result);
    return status.ok() ? enter_primary(device) : std::move(status);
  }

  Status enter(cuda::CUcontext context) {
    cuda::CUcontext before = nullptr;
    Status status = cuda_status(cuda_, "cuCtxGetCurrent", cuda_.cu_ctx_get_current(&before));
    if (!status.ok()) return status;
    current_ = context;
    if (before == context) return {};
    status = cuda_status(cuda_, "cuCtxPushCurrent", cuda_.cu_ctx_push_current(context));
    is_pushed_ = status.ok();
    return status;
  }

  Status leave() {
    Status popped;
    if (std::exchange(is_pushed_, false)) popped = pop();
    if (!std::exchange(is_retained_, false)) return popped;
    return first_error(std::move(popped),
                       cuda_status(cuda_, "cuDevicePrimaryCtxRelease",
                                   cuda_.cu_device_primary_ctx_release(device_)));
  }

  [[nodiscard]] cuda::CUcontext current() const noexcept { return current_; }

 private:
  Status enter_primary(cuda::CUdevice device) {
    std::uint32_t flags = 0;
    std::int32_t active = 0;
    Status status = cuda_status(cuda_, "cuDevicePrimaryCtxGetState",
                                cuda_.cu_device_primary_ctx_get_state(device, &flags, &active));
    if (!status.ok()) return status;
    if (active == 0) {
      return Error{EINVAL,
                   "no CUDA context is current on this thread, and the primary context of "
                   "device " +
                       std::to_string(device) +
                       " is not active; make the context current that the array is of"};
    }
    cuda::CUcontext context = nullptr;
    status = cuda_status(cuda_, "cuDevicePrimaryCtxRetain",
                         cuda_.cu_device_primary_ctx_retain(&context, device));
    if (!status.ok()) return status;
    is_retained_ = true;
    device_ = device;
    return enter(context);
  }

  Status pop() {
    cuda::CUcontext popped = nullptr;
    const auto result = cuda_.cu_ctx_pop_current(&popped);
    if (result == cuda::kCudaSuccess) return {};
    // It may report what went wrong before, and have popped nonetheless: ours must not stay, and
    // the caller's must not go.
    cuda::CUcontext left = nullptr;
    if (cuda_.cu_ctx_get_current(&left) == cuda::kCudaSuccess && left == current_) {
      (void)cuda_.cu_ctx_pop_current(&popped);
    }
    return cuda_status(cuda_, "cuCtxPopCurrent", result);
  }

  const cuda::Functions& cuda_;
  cuda::CUcontext current_ = nullptr;
  cuda::CUdevice device_ = 0;
  bool is_pushed_ = false;
  bool is_retained_ = false;
};

/// Calls `attempt(is_tried)`, which gives something back. Nobody else will, so that it is called
/// once more when it did not come to that: what has to be current was not to be had.
template <class Attempt>
Status give_back(Attempt attempt) {
  bool is_tried = false;
  Status status = guarded([&] { return attempt(is_tried); });
  return is_tried ? std::move(status) : attempt(is_tried);
}

/// The verbs.
struct CudaEvents {
  static Status synchronize(const EventReference& event) {
    return on_event(event, [&](const cuda::Functions& cuda, cuda::CUevent handle) -> Status {
      CudaScope scope(cuda);
      return within(scope, scope.enter_any(event.device_id), [&] {
        return cuda_status(cuda, "cuEventSynchronize", cuda.cu_event_synchronize(handle));
      });
    });
  }

  static Status wait_on(const EventReference& event, void* stream) {
    return on_event(event, [&](const cuda::Functions& cuda, cuda::CUevent handle) -> Status {
      CudaScope scope(cuda);
      return within(scope, scope.enter_stream(stream, event.device_id), [&] {
        return cuda_status(cuda, "cuStreamWaitEvent",
                           cuda.cu_stream_wait_event(reinterpret_cast<cuda::CUstream>(stream),
                                                     handle, cuda::kCuEventWaitDefault));
      });
    });
  }

  static Result<bool> ready(const EventReference& event) {
    bool done = false;
    Status status = on_event(event, [&](const cuda::Functions& cuda, cuda::CUevent handle) {
      CudaScope scope(cuda);
      return within(scope, scope.enter_any(event.device_id),
                    [&] { return query(cuda, handle, &done); });
    });
    if (!status.ok()) return std::move(status).error();
    return done;
  }

  /// An event without timing that happens when all is done that is on the stream now.
  static Result<RecordedEvent> record(void* stream, int64_t device_id) {
    auto cuda = initialized(Party::kProducer);
    if (!cuda) return std::move(cuda).error();
    RecordedEvent recorded;
    CudaScope scope(**cuda);
    Status status = guarded([&] {
      return within(scope, scope.enter_stream(stream, device_id), [&] {
        recorded.context = scope.current();
        return create_and_record(**cuda, stream, &recorded.event);
      });
    });
    if (status.ok()) return recorded;
    if (recorded.event != nullptr) (void)destroy(recorded);
    return std::move(status).error();
  }

  static Result<bool> has_happened(const RecordedEvent& recorded) {
    bool done = false;
    Status status = in_its_context(recorded, [&](const cuda::Functions& cuda) {
      return query(cuda, static_cast<cuda::CUevent>(recorded.event), &done);
    });
    if (!status.ok()) return std::move(status).error();
    return done;
  }

  static Status destroy(const RecordedEvent& recorded) {
    return give_back([&](bool& is_tried) {
      return in_its_context(recorded, [&](const cuda::Functions& cuda) {
        is_tried = true;
        return cuda_status(cuda, "cuEventDestroy",
                           cuda.cu_event_destroy(static_cast<cuda::CUevent>(recorded.event)));
      });
    });
  }

 private:
  static Result<const cuda::Functions*> initialized(Party party) {
    auto cuda = cuda::functions(party);
    if (!cuda) return cuda;
    Status status = cuda_status(**cuda, "cuInit", (*cuda)->cu_init(0));
    if (!status.ok()) return std::move(status).error();
    return cuda;
  }

  template <class Body>
  static Status on_event(const EventReference& event, Body body) {
    auto handle = handle_at<cuda::CUevent>(event);
    if (!handle) return std::move(handle).error();
    auto cuda = initialized(Party::kConsumer);
    if (!cuda) return std::move(cuda).error();
    return body(**cuda, *handle);
  }

  template <class Body>
  static Status in_its_context(const RecordedEvent& recorded, Body body) {
    auto cuda = cuda::functions(Party::kProducer);
    if (!cuda) return std::move(cuda).error();
    CudaScope scope(**cuda);
    Status entered = scope.enter(static_cast<cuda::CUcontext>(recorded.context));
    return within(scope, std::move(entered), [&] { return body(**cuda); });
  }

  static Status query(const cuda::Functions& cuda, cuda::CUevent handle, bool* done) {
    const auto answer = cuda.cu_event_query(handle);
    const EventState state = cuda::event_state(answer);
    *done = state == EventState::kDone;
    return state == EventState::kFailed ? cuda_status(cuda, "cuEventQuery", answer) : Status{};
  }

  static Status create_and_record(const cuda::Functions& cuda, void* stream, void** event) {
    cuda::CUevent handle = nullptr;
    Status status = cuda_status(cuda, "cuEventCreate",
                                cuda.cu_event_create(&handle, cuda::kCuEventDisableTiming));
    if (!status.ok()) return status;
    const auto result = cuda.cu_event_record(handle, reinterpret_cast<cuda::CUstream>(stream));
    if (result == cuda::kCudaSuccess) {
      *event = handle;
    } else {
      (void)cuda.cu_event_destroy(handle);  // before there are words, for which memory may run out
    }
    return cuda_status(cuda, "cuEventRecord", result);
  }
};

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_DETAIL_CUDA_EVENTS_HPP
