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
#include "fletching/detail/found_devices.hpp"
#include "fletching/detail/runtime.hpp"
#include "fletching/runtimes/cuda.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

/// Calls `attempt(is_tried)`, which gives something back. Nobody else will, so that it is called
/// once more when it did not come to that: what has to be current was not to be had.
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

  /// Runs the body unless the event is gone with its context; then nothing of it can still run, and
  /// `passed` is set.
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

inline std::string name_of(const cuda::Functions& cuda, cuda::CUdevice device) {
  char name[FoundDevice::kMaxName] = {};
  const Status status =
      cuda_status(cuda, "cuDeviceGetName", cuda.cu_device_get_name(name, sizeof name - 1, device));
  return status.ok() ? printable(std::string_view(name)) : not_told(status);
}

inline FoundDevices find_cuda_devices() {
  FoundDevices found;
  const auto* cuda = load_runtime<cuda::Functions>(cuda::kRuntime, found);
  if (cuda == nullptr) return found;
  if (!has_all({{"cuDeviceGetName", cuda->cu_device_get_name != nullptr},
                {"cuDeviceGetAttribute", cuda->cu_device_get_attribute != nullptr}},
               cuda::kRuntime, found)) {
    return found;
  }
  std::int32_t version = 0;
  Status status = cuda_status(*cuda, "cuDriverGetVersion", cuda->cu_driver_get_version(&version));
  found.version = status.ok() ? "CUDA " + std::to_string(version / 1000) + "." +
                                    std::to_string(version % 1000 / 10)
                              : not_told(status);
  status = cuda_status(*cuda, "cuInit", cuda->cu_init(0));
  std::int32_t count = 0;
  if (status.ok()) {
    status = cuda_status(*cuda, "cuDeviceGetCount", cuda->cu_device_get_count(&count));
  }
  for (std::int32_t ordinal = 0; status.ok() && ordinal < count; ++ordinal) {
    cuda::CUdevice device = 0;
    status = cuda_status(*cuda, "cuDeviceGet", cuda->cu_device_get(&device, ordinal));
    if (!status.ok()) break;
    std::int32_t managed = 0;
    status = cuda_status(
        *cuda, "cuDeviceGetAttribute",
        cuda->cu_device_get_attribute(&managed, cuda::kCuDeviceAttributeManagedMemory, device));
    found.devices.push_back({ordinal, name_of(*cuda, device), managed != 0});
  }
  if (!status.ok()) return absent(std::move(found), status.error().message());
  return checked(std::move(found), cuda::kRuntime);
}

struct CudaRuntime : RuntimeRow {
  static constexpr Runtime kId = Runtime::kCuda;
  static constexpr const char* kTitle = cuda::kRuntime.title;
  static constexpr WaitFunctions kWaits = kWaitFunctions<CudaEvents>;
  static constexpr RecordFunctions kRecords = kRecordFunctions<CudaEvents>;
  static constexpr FoundDevices (*kFindDevices)() = &find_cuda_devices;
};

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_DETAIL_CUDA_HPP
