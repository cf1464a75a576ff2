// SPDX-License-Identifier: Apache-2.0
//
// The operations on events for runtimes whose streams can be captured into a graph: CUDA and HIP.
#ifndef FLETCHING_DETAIL_CAPTURING_HPP
#define FLETCHING_DETAIL_CAPTURING_HPP

#include <cstdint>
#include <string>
#include <utility>

#include "fletching/capture.hpp"
#include "fletching/detail/event_handle.hpp"
#include "fletching/detail/vendor.hpp"
#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

/// A function of a runtime, and what the vendor calls it.
template <class Functions, class Function>
struct VendorCall {
  const char* name;
  Function Functions::* function;
};
template <class Functions, class Function>
VendorCall(const char*, Function Functions::*) -> VendorCall<Functions, Function>;

// `Api` below is what CUDA and HIP spell in ways of their own: CudaApi in cuda.hpp is the longer
// one of the two.

/// A call of the runtime as a Status.
template <class Api, class Call, class... Arguments>
Status call(const typename Api::Functions& functions, const Call& call, Arguments... arguments) {
  return Api::status(functions, call.name, (functions.*call.function)(arguments...));
}

/// Lets the calling thread make calls that are unsafe while streams are captured, as long as this
/// object lives, or until leave(): then they fail neither themselves nor the capture. Does nothing
/// in a runtime without modes: HIP before ROCm 5.0.
template <class Api>
class RelaxedCaptures {
 public:
  explicit RelaxedCaptures(const typename Api::Functions& functions) noexcept
      : functions_(functions) {}
  RelaxedCaptures(const RelaxedCaptures&) = delete;
  RelaxedCaptures& operator=(const RelaxedCaptures&) = delete;
  RelaxedCaptures(RelaxedCaptures&&) = delete;
  RelaxedCaptures& operator=(RelaxedCaptures&&) = delete;
  ~RelaxedCaptures() {
    (void)guarded([&] { return leave(); });
  }

  Status enter() {
    if (functions_.*Api::kExchangeMode.function == nullptr) return {};
    const auto result = exchange();
    is_entered_ = result == Api::kSuccess;
    reports_loss_ = Api::is_lost(result);
    return Api::status(functions_, Api::kExchangeMode.name, result);
  }

  /// Whether enter() has failed because something is lost, of whatever context: then each call that
  /// the thread makes may report it.
  [[nodiscard]] bool reports_loss() const noexcept { return reports_loss_; }

  Status leave() {
    if (!std::exchange(is_entered_, false)) return {};
    const auto result = exchange();
    if (result == Api::kSuccess) return {};
    (void)exchange();  // it may have reported an earlier error
    return Api::status(functions_, Api::kExchangeMode.name, result);
  }

 private:
  auto exchange() { return (functions_.*Api::kExchangeMode.function)(&mode_); }

  const typename Api::Functions& functions_;
  typename Api::CaptureMode mode_ = Api::kRelaxed;  // then the previous one
  bool is_entered_ = false;
  bool reports_loss_ = false;
};

/// Whether the stream, whose context or device is current, is captured. Does not disturb the
/// capture. Errors: as of judge_capture.
template <class Api>
Result<bool> is_captured(const typename Api::Functions& functions, void* stream,
                         OnCapture on_capture) {
  if (functions.*Api::kIsCapturing.function == nullptr) return false;
  typename Api::CaptureStatus status{};
  const auto result = (functions.*Api::kIsCapturing.function)(Api::stream(stream), &status);
  if (result == Api::kImplicitCapture) {
    return judge_capture(Api::kTitle, StreamState::kBesideACapture, on_capture);
  }
  if (result != Api::kSuccess) {
    return Api::status(functions, Api::kIsCapturing.name, result).error();
  }
  return judge_capture(Api::kTitle, static_cast<StreamState>(status), on_capture);
}

/// The operations. Calls that another thread's capture would refuse are made in relaxed mode.
template <class Api>
struct CapturingEvents {
  using Functions = typename Api::Functions;
  using Event = typename Api::Event;

  static Status synchronize(const EventReference& event) {
    return on_event(event, [&](const Functions& functions, Event handle) {
      return relaxed(functions, [&] {
        return Api::in_any_place(functions, event.device_id, [&] {
          return call<Api>(functions, Api::kEventSynchronize, handle);
        });
      });
    });
  }

  static Status wait_on(const EventReference& event, void* stream, OnCapture on_capture) {
    return on_event(event, [&](const Functions& functions, Event handle) -> Status {
      typename Api::Scope scope(functions);
      return within(scope, scope.enter_stream(stream, event.device_id), [&]() -> Status {
        const Result<bool> captured = is_captured<Api>(functions, stream, on_capture);
        if (!captured.ok()) return refused_wait(captured.error());
        if (*captured) {
          Status supported = Api::can_wait_externally(functions);
          if (!supported.ok()) return supported;
        }
        return call<Api>(functions, Api::kStreamWaitEvent, Api::stream(stream), handle,
                         *captured ? Api::kWaitExternal : 0U);
      });
    });
  }

  static Result<bool> ready(const EventReference& event) {
    bool done = false;
    Status status = on_event(event, [&](const Functions& functions, Event handle) {
      return relaxed(functions, [&] {
        return Api::in_any_place(functions, event.device_id, [&]() -> Status {
          const auto answer = (functions.*Api::kEventQuery.function)(handle);
          const EventState state = Api::event_state(answer);
          done = state == EventState::kDone;
          if (state != EventState::kFailed) return {};
          return Api::status(functions, Api::kEventQuery.name, answer);
        });
      });
    });
    if (!status.ok()) return std::move(status).error();
    return done;
  }

  /// An event without timing that happens when all is done that is on the stream now; of a stream
  /// that is captured, what is on it at each launch of the graph.
  static Result<RecordedEvent> record(void* stream, int64_t device_id, OnCapture on_capture) {
    auto functions = initialized(Party::kProducer);
    if (!functions) return std::move(functions).error();
    RecordedEvent recorded;
    Status status = guarded([&] {
      return relaxed(**functions, [&] {
        typename Api::Scope scope(**functions);
        return within(scope, scope.enter_stream(stream, device_id), [&]() -> Status {
          const Result<bool> captured = is_captured<Api>(**functions, stream, on_capture);
          if (!captured.ok()) return captured.error();
          Status remembered = scope.remember(recorded);
          if (!remembered.ok()) return remembered;
          return create_and_record(**functions, stream, *captured, &recorded.event);
        });
      });
    });
    if (status.ok()) return recorded;
    if (recorded.event != nullptr) (void)destroy(recorded);
    return std::move(status).error();
  }

  /// Whether nothing that was on the stream can still run. An error says nothing about it.
  static Result<bool> has_passed(const RecordedEvent& recorded) {
    auto functions = Api::functions(Party::kProducer);
    if (!functions) return std::move(functions).error();
    bool passed = false;
    RelaxedCaptures<Api> relaxed(**functions);
    Status entered = relaxed.enter();
    // Whether it is the event's context that is lost, the event is asked.
    if (relaxed.reports_loss()) entered = {};
    Status status = within(relaxed, std::move(entered), [&] {
      return Api::unless_gone(**functions, recorded, passed, [&]() -> Status {
        const auto answer =
            ((*functions)->*Api::kEventQuery.function)(static_cast<Event>(recorded.event));
        const EventState state = Api::event_state(answer);
        passed = state == EventState::kDone || Api::is_lost(answer);
        if (passed || state == EventState::kPending) return {};
        return Api::status(**functions, Api::kEventQuery.name, answer);
      });
    });
    if (passed) return true;
    if (!status.ok()) return std::move(status).error();
    return false;
  }

  /// An event is destroyed with its context.
  static Status destroy(const RecordedEvent& recorded) {
    auto functions = Api::functions(Party::kProducer);
    if (!functions) return std::move(functions).error();
    // Only this call destroys it, so it is tried without the mode too.
    RelaxedCaptures<Api> relaxed(**functions);
    Status entered = guarded([&] { return relaxed.enter(); });
    Status destroyed = Api::destroy(**functions, recorded);
    return first_error(std::move(entered), first_error(std::move(destroyed), relaxed.leave()));
  }

  /// Runs the body in the mode in which no other thread's capture is in its way, nor it in theirs.
  static void run_relaxed(CFunction<void(void*)> body, void* data) {
    auto functions = Api::functions(Party::kProducer);
    if (!functions) return body(data);
    RelaxedCaptures<Api> relaxed(**functions);
    (void)guarded([&] { return relaxed.enter(); });
    body(data);
  }

 private:
  static Result<const Functions*> initialized(Party party) {
    auto functions = Api::functions(party);
    if (!functions) return functions;
    Status status = call<Api>(**functions, Api::kInit, 0U);
    if (!status.ok()) return std::move(status).error();
    return functions;
  }

  template <class Body>
  static Status on_event(const EventReference& event, Body body) {
    auto handle = handle_at<Event>(event);
    if (!handle) return std::move(handle).error();
    auto functions = initialized(Party::kConsumer);
    if (!functions) return std::move(functions).error();
    return body(**functions, *handle);
  }

  template <class Body>
  static Status relaxed(const Functions& functions, Body body) {
    RelaxedCaptures<Api> relaxed(functions);
    return within(relaxed, relaxed.enter(), body);
  }

  static Status create_and_record(const Functions& functions, void* stream, bool captured,
                                  void** event) {
    if (captured) {
      Status supported = Api::can_record_externally(functions);
      if (!supported.ok()) return supported;
    }
    Event handle = nullptr;
    Status status = call<Api>(functions, Api::kEventCreate, &handle, Api::kDisableTiming);
    if (!status.ok()) return status;
    const auto result = captured
                            ? (functions.*Api::kEventRecordWithFlags.function)(
                                  handle, Api::stream(stream), Api::kRecordExternal)
                            : (functions.*Api::kEventRecord.function)(handle, Api::stream(stream));
    if (result == Api::kSuccess) {
      *event = handle;
    } else {
      // Before there is a message, for which memory may run out.
      (void)(functions.*Api::kEventDestroy.function)(handle);
    }
    return Api::status(functions,
                       captured ? Api::kEventRecordWithFlags.name : Api::kEventRecord.name, result);
  }
};

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_DETAIL_CAPTURING_HPP
