// SPDX-License-Identifier: Apache-2.0
//
// CUDA: its row of the runtimes.
#ifndef FLETCHING_DETAIL_CUDA_HPP
#define FLETCHING_DETAIL_CUDA_HPP

#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "fletching/detail/capturing.hpp"
#include "fletching/detail/cuda_scope.hpp"
#include "fletching/detail/event_handle.hpp"
#include "fletching/detail/runtime.hpp"
#include "fletching/runtimes/cuda.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

/// Calls `attempt(is_tried)`, which frees something. Nothing else frees it, so it is called once
/// more when the context that has to be current was not available.
template <class Attempt>
Status give_back(Attempt attempt) {
  bool is_tried = false;
  Status status = guarded([&] { return attempt(is_tried); });
  return is_tried ? std::move(status) : attempt(is_tried);
}

/// What CapturingEvents needs to know of CUDA.
struct CudaApi {
  using Functions = cuda::Functions;
  using Event = cuda::CUevent;
  using CaptureMode = cuda::CUstreamCaptureMode;
  using CaptureStatus = cuda::CUstreamCaptureStatus;
  using Scope = CudaScope;

  static constexpr const char* kTitle = cuda::kRuntime.title;
  static constexpr auto kSuccess = cuda::kCudaSuccess;
  static constexpr auto kImplicitCapture = cuda::kCudaErrorStreamCaptureImplicit;
  static constexpr auto kRelaxed = cuda::kCuStreamCaptureModeRelaxed;
  static constexpr auto kDisableTiming = cuda::kCuEventDisableTiming;
  static constexpr auto kWaitExternal = cuda::kCuEventWaitExternal;
  static constexpr auto kRecordExternal = cuda::kCuEventRecordExternal;

  static constexpr VendorCall kInit{"cuInit", &Functions::cu_init};
  static constexpr VendorCall kExchangeMode{"cuThreadExchangeStreamCaptureMode",
                                            &Functions::cu_thread_exchange_stream_capture_mode};
  static constexpr VendorCall kIsCapturing{"cuStreamIsCapturing",
                                           &Functions::cu_stream_is_capturing};
  static constexpr VendorCall kStreamWaitEvent{"cuStreamWaitEvent",
                                               &Functions::cu_stream_wait_event};
  static constexpr VendorCall kEventSynchronize{"cuEventSynchronize",
                                                &Functions::cu_event_synchronize};
  static constexpr VendorCall kEventQuery{"cuEventQuery", &Functions::cu_event_query};
  static constexpr VendorCall kEventCreate{"cuEventCreate", &Functions::cu_event_create};
  static constexpr VendorCall kEventRecord{"cuEventRecord", &Functions::cu_event_record};
  static constexpr VendorCall kEventRecordWithFlags{"cuEventRecordWithFlags",
                                                    &Functions::cu_event_record_with_flags};
  static constexpr VendorCall kEventDestroy{"cuEventDestroy", &Functions::cu_event_destroy};

  static Result<const Functions*> functions(Party party) noexcept { return cuda::functions(party); }
  static Status status(const Functions& cuda, const char* function, cuda::CUresult result) {
    return cuda_status(cuda, function, result);
  }
  static EventState event_state(cuda::CUresult answer) noexcept {
    return cuda::event_state(answer);
  }
  static bool is_lost(cuda::CUresult answer) noexcept { return cuda::is_lost(answer); }
  static cuda::CUstream stream(void* stream) noexcept {
    return reinterpret_cast<cuda::CUstream>(stream);
  }

  /// Drivers that do not know the flag of a wait refuse it.
  static Status can_wait_externally(const Functions& /*cuda*/) { return {}; }

  static Status can_record_externally(const Functions& cuda) {
    if (cuda.cu_event_record_with_flags != nullptr) return {};
    return Error{ENOTSUP, std::string(kTitle) +
                              ": no cuEventRecordWithFlags in this driver: expected CUDA 11.1 "
                              "or later for an event of a captured stream"};
  }

  /// Runs the body where an event can be waited on and asked: in any context.
  template <class Body>
  static Status in_any_place(const Functions& cuda, int64_t device_id, Body body) {
    CudaScope scope(cuda);
    return within(scope, scope.enter_any(device_id), body);
  }

  /// Runs the body unless the event was destroyed with its context; then nothing of it can still
  /// run, and `passed` is set.
  template <class Body>
  static Status unless_gone(const Functions& cuda, const RecordedEvent& recorded, bool& passed,
                            Body body) {
    CudaScope scope(cuda);
    return within(scope, Status{}, [&]() -> Status {
      const Result<bool> there = scope.holds(recorded);
      passed = scope.is_lost() || (there.ok() && !*there);
      if (passed) return {};
      if (!there.ok()) return there.error();
      return body();  // from whatever context there is: cuEventQuery needs none
    });
  }

  static Status destroy(const Functions& cuda, const RecordedEvent& recorded) {
    return give_back([&](bool& is_tried) -> Status {
      CudaScope scope(cuda);
      Status entered;
      if (!scope.is_current(recorded)) {
        const Result<bool> there = scope.holds(recorded);
        if (!there.ok()) return there.error();
        is_tried = !*there;
        if (is_tried) return {};
        entered = scope.enter(static_cast<cuda::CUcontext>(recorded.context));
      }
      return within(scope, std::move(entered), [&] {
        is_tried = true;
        return call<CudaApi>(cuda, kEventDestroy, static_cast<Event>(recorded.event));
      });
    });
  }
};

using CudaEvents = CapturingEvents<CudaApi>;

struct CudaRuntime : RuntimeRow {
  static constexpr Runtime kId = Runtime::kCuda;
  static constexpr const char* kTitle = cuda::kRuntime.title;
  static constexpr WaitFunctions kWaits = kWaitFunctions<CudaEvents>;
  static constexpr RecordFunctions kRecords = kRecordFunctions<CudaEvents>;
};

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_DETAIL_CUDA_HPP
