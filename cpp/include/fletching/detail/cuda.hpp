// SPDX-License-Identifier: Apache-2.0
//
// The operations on events for CUDA.
#ifndef FLETCHING_DETAIL_CUDA_HPP
#define FLETCHING_DETAIL_CUDA_HPP

#include <cerrno>
#include <cstdint>
#include <string>
#include <utility>

#include "fletching/detail/cuda_scope.hpp"
#include "fletching/detail/event_handle.hpp"
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

/// The operations. Calls that another thread's capture would refuse are made in relaxed mode.
struct CudaEvents {
  static Status synchronize(const EventReference& event) {
    return on_event(event, [&](const cuda::Functions& cuda, cuda::CUevent handle) {
      return in_any_context(cuda, event, [&] {
        return cuda_status(cuda, "cuEventSynchronize", cuda.cu_event_synchronize(handle));
      });
    });
  }

  static Status wait_on(const EventReference& event, void* stream, OnCapture on_capture) {
    return on_event(event, [&](const cuda::Functions& cuda, cuda::CUevent handle) -> Status {
      CudaScope scope(cuda);
      return within(scope, scope.enter_stream(stream, event.device_id), [&]() -> Status {
        const Result<bool> captured = cuda_is_captured(cuda, stream, on_capture);
        if (!captured.ok()) return refused_wait(captured.error());
        const auto flags = *captured ? cuda::kCuEventWaitExternal : cuda::kCuEventWaitDefault;
        return cuda_status(
            cuda, "cuStreamWaitEvent",
            cuda.cu_stream_wait_event(reinterpret_cast<cuda::CUstream>(stream), handle, flags));
      });
    });
  }

  static Result<bool> ready(const EventReference& event) {
    bool done = false;
    Status status = on_event(event, [&](const cuda::Functions& cuda, cuda::CUevent handle) {
      return in_any_context(cuda, event, [&]() -> Status {
        const auto answer = cuda.cu_event_query(handle);
        const EventState state = cuda::event_state(answer);
        done = state == EventState::kDone;
        return state == EventState::kFailed ? cuda_status(cuda, "cuEventQuery", answer) : Status{};
      });
    });
    if (!status.ok()) return std::move(status).error();
    return done;
  }

  /// An event without timing that happens when all is done that is on the stream now; of a stream
  /// that is captured, what is on it at each launch of the graph.
  static Result<RecordedEvent> record(void* stream, int64_t device_id,
                                      OnCapture on_capture = OnCapture::kRefuse) {
    auto cuda = initialized(Party::kProducer);
    if (!cuda) return std::move(cuda).error();
    RecordedEvent recorded;
    Status status = guarded([&] {
      return relaxed(**cuda, [&] {
        CudaScope scope(**cuda);
        return within(scope, scope.enter_stream(stream, device_id), [&]() -> Status {
          const Result<bool> captured = cuda_is_captured(**cuda, stream, on_capture);
          if (!captured.ok()) return captured.error();
          Status remembered = scope.remember(recorded);
          if (!remembered.ok()) return remembered;
          return create_and_record(**cuda, stream, *captured, &recorded.event);
        });
      });
    });
    if (status.ok()) return recorded;
    if (recorded.event != nullptr) (void)destroy(recorded);
    return std::move(status).error();
  }

  /// Whether nothing that was on the stream can still run. An error says nothing about it.
  static Result<bool> has_passed(const RecordedEvent& recorded) {
    auto cuda = cuda::functions(Party::kProducer);
    if (!cuda) return std::move(cuda).error();
    bool passed = false;
    Status status = relaxed(**cuda, [&] {
      CudaScope scope(**cuda);
      return within(scope, Status{}, [&]() -> Status {
        const Result<bool> there = scope.holds(recorded);
        passed = scope.is_lost() || (there.ok() && !*there);
        if (passed) return {};
        if (!there.ok()) return there.error();
        // Asked from whatever context there is: cuEventQuery needs none.
        const auto answer = (*cuda)->cu_event_query(static_cast<cuda::CUevent>(recorded.event));
        const EventState state = cuda::event_state(answer);
        passed = state == EventState::kDone || cuda::is_lost(answer);
        if (passed || state == EventState::kPending) return {};
        return cuda_status(**cuda, "cuEventQuery", answer);
      });
    });
    if (passed) return true;
    if (!status.ok()) return std::move(status).error();
    return false;
  }

  /// An event whose context is gone went with it.
  static Status destroy(const RecordedEvent& recorded) {
    auto cuda = cuda::functions(Party::kProducer);
    if (!cuda) return std::move(cuda).error();
    // Nobody else will destroy it: without the mode it is done all the same.
    CudaRelaxed relaxed(**cuda);
    Status entered = guarded([&] { return relaxed.enter(); });
    Status destroyed = destroy_in_context(**cuda, recorded);
    return first_error(std::move(entered), first_error(std::move(destroyed), relaxed.leave()));
  }

  /// Runs the body in the mode in which no other thread's capture is in its way, nor it in theirs.
  static void run_relaxed(CFunction<void(void*)> body, void* data) {
    auto cuda = cuda::functions(Party::kProducer);
    if (!cuda) return body(data);
    CudaRelaxed relaxed(**cuda);
    (void)guarded([&] { return relaxed.enter(); });
    body(data);
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

  static Status destroy_in_context(const cuda::Functions& cuda, const RecordedEvent& recorded) {
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
        return cuda_status(cuda, "cuEventDestroy",
                           cuda.cu_event_destroy(static_cast<cuda::CUevent>(recorded.event)));
      });
    });
  }

  template <class Body>
  static Status relaxed(const cuda::Functions& cuda, Body body) {
    CudaRelaxed relaxed(cuda);
    return within(relaxed, relaxed.enter(), body);
  }

  template <class Body>
  static Status in_any_context(const cuda::Functions& cuda, const EventReference& event,
                               Body body) {
    return relaxed(cuda, [&] {
      CudaScope scope(cuda);
      return within(scope, scope.enter_any(event.device_id), body);
    });
  }

  static Status create_and_record(const cuda::Functions& cuda, void* stream, bool captured,
                                  void** event) {
    if (captured && cuda.cu_event_record_with_flags == nullptr) {
      return Error{ENOTSUP, std::string(cuda::kRuntime.title) +
                                ": no cuEventRecordWithFlags in this driver: expected CUDA 11.1 "
                                "or later for an event of a captured stream"};
    }
    cuda::CUevent handle = nullptr;
    Status status = cuda_status(cuda, "cuEventCreate",
                                cuda.cu_event_create(&handle, cuda::kCuEventDisableTiming));
    if (!status.ok()) return status;
    auto* on = reinterpret_cast<cuda::CUstream>(stream);
    const auto result =
        captured ? cuda.cu_event_record_with_flags(handle, on, cuda::kCuEventRecordExternal)
                 : cuda.cu_event_record(handle, on);
    if (result == cuda::kCudaSuccess) {
      *event = handle;
    } else {
      (void)cuda.cu_event_destroy(handle);  // before there are words, for which memory may run out
    }
    return cuda_status(cuda, captured ? "cuEventRecordWithFlags" : "cuEventRecord", result);
  }
};

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_DETAIL_CUDA_HPP
