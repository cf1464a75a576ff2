// SPDX-License-Identifier: Apache-2.0
//
// CUDA's contexts, as the operations on events need them, by the driver API alone.
#ifndef FLETCHING_DETAIL_CUDA_SCOPE_HPP
#define FLETCHING_DETAIL_CUDA_SCOPE_HPP

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
      return Error{EINVAL, "device_id: not a CUDA device ordinal: expected 0 to 2147483647, got " +
                               std::to_string(device_id)};
    }
    cuda::CUdevice device = 0;
    const auto result = cuda_.cu_device_get(&device, static_cast<std::int32_t>(device_id));
    status = cuda_status(cuda_, "cuDeviceGet", result);
    return status.ok() ? enter_primary(device) : std::move(status);
  }

  /// Notes the current context in the event, and what holds() needs to know it again.
  Status remember(RecordedEvent& recorded) {
    // What a context is never changes, and no other one has its number.
    struct Known {
      std::uint64_t id = 0;
      cuda::CUdevice device = 0;
      bool is_primary = false;
    };
    static thread_local Known known;
    std::uint64_t id = 0;
    if (cuda_.cu_ctx_get_id != nullptr) {
      Status status = cuda_status(cuda_, "cuCtxGetId", cuda_.cu_ctx_get_id(current_, &id));
      if (!status.ok()) return status;
    }
    if (id == 0 || id != known.id) {
      Known found;
      Status status = find_primary(&found.device, &found.is_primary);
      if (!status.ok()) return status;
      found.id = id;
      known = found;
    }
    recorded.context = current_;
    recorded.context_id = id;
    recorded.device = known.device;
    recorded.is_primary = known.is_primary;
    return {};
  }

  /// Whether the context of the event is current for this thread, and alive. The driver answers
  /// also when the current one was destroyed elsewhere.
  bool is_current(const RecordedEvent& recorded) const noexcept {
    std::uint64_t id = 0;
    return recorded.context_id != 0 && cuda_.cu_ctx_get_id(nullptr, &id) == cuda::kCudaSuccess &&
           id == recorded.context_id;
  }

  /// Whether the context of the event is still there, and with it the event. A primary context
  /// stays as long as this object lives, unless it is reset.
  ///
  /// Of a primary context the driver knows at any time whether it is active, and the number of the
  /// one that is. A context that was created can only be asked itself, which the driver answers
  /// with CUDA_ERROR_CONTEXT_IS_DESTROYED, but does not promise to. Without cuCtxGetId, before
  /// CUDA 12.0, a primary context that was reset and is active again counts as the same.
  Result<bool> holds(const RecordedEvent& recorded) {
    auto* context = static_cast<cuda::CUcontext>(recorded.context);
    if (recorded.is_primary) {
      const auto device = static_cast<cuda::CUdevice>(recorded.device);
      std::int32_t active = 0;
      Status status = primary_state(device, &active);
      if (status.ok() && active != 0) status = retain(device, &context);
      if (!status.ok()) return std::move(status).error();
      if (active == 0 || context != recorded.context) return false;
    }
    if (cuda_.cu_ctx_get_id == nullptr) return true;
    std::uint64_t id = 0;
    const auto result = cuda_.cu_ctx_get_id(context, &id);
    if (result == cuda::kCudaErrorContextIsDestroyed || result == cuda::kCudaErrorInvalidContext) {
      return false;
    }
    if (result != cuda::kCudaSuccess) return note(result, "cuCtxGetId").error();
    return id == recorded.context_id;
  }

  /// Whether a call of this object has failed because nothing of the context can still run.
  [[nodiscard]] bool is_lost() const noexcept { return is_lost_; }

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
    std::int32_t active = 0;
    Status status = primary_state(device, &active);
    if (!status.ok()) return status;
    if (active == 0) {
      return Error{
          EINVAL,
          "CUDA context: none is current on this thread, and the primary context of device " +
              std::to_string(device) + " is not active; hint: make the array's context current"};
    }
    cuda::CUcontext context = nullptr;
    status = retain(device, &context);
    return status.ok() ? enter(context) : std::move(status);
  }

  Status primary_state(cuda::CUdevice device, std::int32_t* active) {
    std::uint32_t flags = 0;
    return note(cuda_.cu_device_primary_ctx_get_state(device, &flags, active),
                "cuDevicePrimaryCtxGetState");
  }

  /// One that is active. Released by leave().
  Status retain(cuda::CUdevice device, cuda::CUcontext* context) {
    const auto result = cuda_.cu_device_primary_ctx_retain(context, device);
    is_retained_ = result == cuda::kCudaSuccess;
    device_ = device;
    return note(result, "cuDevicePrimaryCtxRetain");
  }

  /// The device of the current context, and whether the context is the primary one of it.
  Status find_primary(cuda::CUdevice* device, bool* is_primary) {
    Status status = note(cuda_.cu_ctx_get_device(device), "cuCtxGetDevice");
    std::int32_t active = 0;
    if (status.ok()) status = primary_state(*device, &active);
    if (!status.ok() || active == 0) return status;
    cuda::CUcontext primary = nullptr;
    status =
        note(cuda_.cu_device_primary_ctx_retain(&primary, *device), "cuDevicePrimaryCtxRetain");
    if (!status.ok()) return status;
    *is_primary = primary == current_;
    return note(cuda_.cu_device_primary_ctx_release(*device), "cuDevicePrimaryCtxRelease");
  }

  Status note(cuda::CUresult result, const char* function) {
    is_lost_ = is_lost_ || cuda::is_lost(result);
    return cuda_status(cuda_, function, result);
  }

  Status pop() {
    cuda::CUcontext popped = nullptr;
    const auto result = cuda_.cu_ctx_pop_current(&popped);
    if (result == cuda::kCudaSuccess) return {};
    // It may report an earlier error, and have popped nonetheless: ours must not stay, and
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
  bool is_lost_ = false;
};

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_DETAIL_CUDA_SCOPE_HPP
