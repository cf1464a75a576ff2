// SPDX-License-Identifier: Apache-2.0
//
// OpenCL: its row of the runtimes.
#ifndef FLETCHING_DETAIL_OPENCL_HPP
#define FLETCHING_DETAIL_OPENCL_HPP

#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "fletching/detail/event_handle.hpp"
#include "fletching/detail/runtime.hpp"
#include "fletching/runtimes/opencl.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

/// A result of OpenCL as a Status.
inline Status opencl_status(const char* function, opencl::cl_int result) {
  if (result == opencl::kClSuccess) return {};
  return vendor_error({opencl::kRuntime.title, function, result, opencl::status_name(result),
                       nullptr, result == opencl::kClInvalidEvent});
}

/// The operations. A wait is enqueued on a queue of the event's own cl_context. OpenCL captures
/// nothing.
struct OpenclEvents {
  static Status synchronize(const EventReference& event) {
    return on_event(event, [&](const opencl::Functions& cl, opencl::cl_event handle) -> Status {
      const auto result = cl.cl_wait_for_events(1, &handle);
      if (result != opencl::kClExecStatusErrorForEventsInWaitList) {
        return opencl_status("clWaitForEvents", result);
      }
      // The command itself has failed, and its state says how.
      bool done = false;
      return first_error(query(cl, handle, &done), opencl_status("clWaitForEvents", result));
    });
  }

  static Status wait_on(const EventReference& event, void* stream, OnCapture /*on_capture*/) {
    if (stream == nullptr) {
      return Error{EINVAL,
                   "wait_on: stream is NULL: expected a cl_command_queue, because OpenCL has no "
                   "default queue"};
    }
    auto* queue = static_cast<opencl::cl_command_queue>(stream);
    return on_event(event, [&](const opencl::Functions& cl, opencl::cl_event handle) -> Status {
      Status status = same_context(cl, handle, queue);
      if (!status.ok()) return status;
      status = flush_queue_of(cl, handle);
      if (!status.ok()) return status;
      return opencl_status("clEnqueueBarrierWithWaitList",
                           cl.cl_enqueue_barrier_with_wait_list(queue, 1, &handle, nullptr));
    });
  }

  static Result<bool> ready(const EventReference& event) {
    bool done = false;
    Status status = on_event(event, [&](const opencl::Functions& cl, opencl::cl_event handle) {
      return query(cl, handle, &done);
    });
    if (!status.ok()) return std::move(status).error();
    return done;
  }

  /// An event that happens when all is done that is on the queue now.
  static Result<RecordedEvent> record(void* stream, int64_t /*device_id*/,
                                      OnCapture /*on_capture*/) {
    if (stream == nullptr) {
      return Error{
          EINVAL,
          "stream is NULL: expected a cl_command_queue, because OpenCL has no default queue"};
    }
    auto cl = opencl::functions(Party::kProducer);
    if (!cl) return std::move(cl).error();
    auto* queue = static_cast<opencl::cl_command_queue>(stream);
    opencl::cl_event handle = nullptr;
    Status status =
        opencl_status("clEnqueueMarkerWithWaitList",
                      (*cl)->cl_enqueue_marker_with_wait_list(queue, 0, nullptr, &handle));
    if (!status.ok()) return std::move(status).error();
    // An event that no queue has submitted never happens.
    const auto flushed = (*cl)->cl_flush(queue);
    if (flushed == opencl::kClSuccess) return RecordedEvent{.event = handle};
    (void)(*cl)->cl_release_event(handle);  // before the message, for which memory may run out
    return opencl_status("clFlush", flushed).error();
  }

  /// Whether nothing that was on the queue can still run. An error says nothing about it.
  static Result<bool> has_passed(const RecordedEvent& recorded) {
    auto cl = opencl::functions(Party::kProducer);
    if (!cl) return std::move(cl).error();
    const Result<opencl::cl_int> answer =
        state_of(**cl, static_cast<opencl::cl_event>(recorded.event));
    if (!answer) return answer.error();
    return opencl::event_state(*answer) == EventState::kDone || opencl::is_lost(*answer);
  }

  static Status destroy(const RecordedEvent& recorded) {
    auto cl = opencl::functions(Party::kProducer);
    if (!cl) return std::move(cl).error();
    return opencl_status("clReleaseEvent",
                         (*cl)->cl_release_event(static_cast<opencl::cl_event>(recorded.event)));
  }

  static void run_relaxed(CFunction<void(void*)> body, void* data) { body(data); }

 private:
  template <class Body>
  static Status on_event(const EventReference& event, Body body) {
    auto handle = handle_at<opencl::cl_event>(event);
    if (!handle) return std::move(handle).error();
    auto cl = opencl::functions();
    if (!cl) return std::move(cl).error();
    return body(**cl, *handle);
  }

  static Result<opencl::cl_int> state_of(const opencl::Functions& cl, opencl::cl_event handle) {
    opencl::cl_int answer = opencl::kClQueued;
    Status status = opencl_status(
        "clGetEventInfo", cl.cl_get_event_info(handle, opencl::kClEventCommandExecutionStatus,
                                               sizeof answer, &answer, nullptr));
    if (!status.ok()) return std::move(status).error();
    return answer;
  }

  static Status query(const opencl::Functions& cl, opencl::cl_event handle, bool* done) {
    const Result<opencl::cl_int> answer = state_of(cl, handle);
    if (!answer) return answer.error();
    const EventState state = opencl::event_state(*answer);
    *done = state == EventState::kDone;
    return state == EventState::kFailed ? opencl_status("the command of the event", *answer)
                                        : Status{};
  }

  static Status same_context(const opencl::Functions& cl, opencl::cl_event handle,
                             opencl::cl_command_queue queue) {
    opencl::cl_context of_event = nullptr;
    Status status = opencl_status(
        "clGetEventInfo", cl.cl_get_event_info(handle, opencl::kClEventContext, sizeof of_event,
                                               static_cast<void*>(&of_event), nullptr));
    if (!status.ok()) return status;
    opencl::cl_context of_queue = nullptr;
    status =
        opencl_status("clGetCommandQueueInfo",
                      cl.cl_get_command_queue_info(queue, opencl::kClQueueContext, sizeof of_queue,
                                                   static_cast<void*>(&of_queue), nullptr));
    if (!status.ok() || of_event == of_queue) return status;
    return Error{EINVAL,
                 "wait_on: cl_context of the queue differs from the event's; hint: pass a queue of "
                 "the event's context, or call synchronize"};
  }

  /// A queue need not begin with a command before it is flushed. A user event has no queue.
  static Status flush_queue_of(const opencl::Functions& cl, opencl::cl_event handle) {
    opencl::cl_command_queue queue = nullptr;
    Status status = opencl_status(
        "clGetEventInfo", cl.cl_get_event_info(handle, opencl::kClEventCommandQueue, sizeof queue,
                                               static_cast<void*>(&queue), nullptr));
    if (!status.ok() || queue == nullptr) return status;
    return opencl_status("clFlush", cl.cl_flush(queue));
  }
};

struct OpenclRuntime : RuntimeRow {
  static constexpr Runtime kId = Runtime::kOpencl;
  static constexpr const char* kTitle = opencl::kRuntime.title;
  static constexpr WaitFunctions kWaits = kWaitFunctions<OpenclEvents>;
  static constexpr RecordFunctions kRecords = kRecordFunctions<OpenclEvents>;
};

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_DETAIL_OPENCL_HPP
