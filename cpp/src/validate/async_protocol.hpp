// SPDX-License-Identifier: Apache-2.0
//
// Checks the order of an async stream's calls against the rules. Makes no calls and does not
// allocate; the owner holds a lock.
#ifndef FLETCHING_SRC_VALIDATE_ASYNC_PROTOCOL_HPP
#define FLETCHING_SRC_VALIDATE_ASYNC_PROTOCOL_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <thread>
#include <utility>

#include "rules.hpp"

namespace fletching::validate {

/// A call of either side. kEnd is on_next_task with NULL; kLateCancel is any cancel after the
/// first.
enum class Call : std::uint8_t {
  kNone,
  kSchema,
  kTask,
  kEnd,
  kError,
  kRelease,
  kRequest,
  kCancel,
  kLateCancel,
  kExtract,
};

constexpr bool is_task(Call call) noexcept { return call == Call::kTask || call == Call::kEnd; }

/// Rules broken by one call, and whether to forward the call.
class Verdict {
 public:
  struct Broken {
    Rule rule = {};
    const char* message = nullptr;
    const char* party = nullptr;
  };

  void add(Rule rule, const char* message, const char* party = nullptr) noexcept {
    if (count_ < broken_.size()) broken_[count_++] = {rule, message, party};
  }
  void refuse(Rule rule, const char* message, const char* party = nullptr) noexcept {
    add(rule, message, party);
    forward = false;
  }
  [[nodiscard]] const Broken* begin() const noexcept { return broken_.data(); }
  [[nodiscard]] const Broken* end() const noexcept { return broken_.data() + count_; }

  bool forward = true;

 private:
  std::array<Broken, 4> broken_{};
  std::size_t count_ = 0;
};

/// A pending on_error. One handler call that another thread has begun may precede it.
class OwedError {
 public:
  void begin() noexcept {
    owed_ = true;
    passed_one_ = false;
    thread_ = std::this_thread::get_id();
  }
  [[nodiscard]] bool is_owed() const noexcept { return owed_; }

  /// Records a handler call other than on_error. Returns true if it must have begun after the
  /// failure.
  bool is_overdue() noexcept {
    if (!owed_) return false;
    if (!passed_one_ && thread_ != std::this_thread::get_id()) {
      passed_one_ = true;
      return false;
    }
    owed_ = false;
    return true;
  }

 private:
  bool owed_ = false;
  bool passed_one_ = false;
  std::thread::id thread_;
};

class AsyncProtocol {
 public:
  /// `inside` is the innermost call of the same stream on this thread.
  Verdict begin_handler(Call call, Call inside) noexcept {
    Verdict verdict;
    if (gone_) {
      refuse_late(call, verdict);
      return verdict;
    }
    check_inside(call, inside, verdict);
    if (running_ != Call::kNone) {
      refuse_overlap(call, verdict);
      return verdict;
    }
    running_ = call;
    if (call == Call::kRelease) {
      check_release(verdict);
    } else {
      check_order(call, verdict);
      advance(call, verdict);
    }
    return verdict;
  }

  /// Returns true if release was called during this call: it is now due and counts as running.
  bool end_handler(Call call, int result) noexcept {
    running_ = Call::kNone;
    if (result != 0 && refused_ == Call::kNone) refused_ = call;
    if (call == Call::kRelease) gone_ = true;
    if (!std::exchange(release_is_due_, false)) return false;
    running_ = Call::kRelease;
    return true;
  }

  Verdict begin_request(Call inside, std::int64_t n) noexcept {
    Verdict verdict;
    check_control(inside, verdict);
    if (!verdict.forward) return verdict;
    add_demand(n);
    if (n > 0) return verdict;
    verdict.add(Rule::async_request_positive, "n is not positive: expected 1 or more");
    if (is_over()) return verdict;
    failed_ = true;
    owed_by_request_.begin();
    return verdict;
  }

  /// Sets *call to kCancel or kLateCancel.
  Verdict begin_cancel(Call inside, Call* call) noexcept {
    Verdict verdict;
    *call = cancelling_ ? Call::kLateCancel : Call::kCancel;
    check_control(inside, verdict);
    cancelling_ = true;
    return verdict;
  }

  void end_cancel() noexcept { cancelled_ = true; }

  void begin_extract() noexcept { ++extracting_; }
  void end_extract(int code) noexcept {
    --extracting_;
    if (code == 0) return;
    if (!is_over()) owed_by_extraction_.begin();
    failed_ = true;
  }

 private:
  [[nodiscard]] bool is_over() const noexcept {
    return ended_ || errored_ || cancelling_ || refused_ != Call::kNone;
  }

  static std::int64_t sum(std::int64_t a, std::int64_t b) noexcept {
    constexpr auto kMost = (std::numeric_limits<std::int64_t>::max)();
    return b <= 0 ? a : (a > kMost - b ? kMost : a + b);
  }

  void add_demand(std::int64_t n) noexcept {
    std::int64_t& demand = cancelled_ ? requested_late_ : requested_;
    demand = sum(demand, n);
  }

  // Handler calls.

  static void refuse_late(Call call, Verdict& verdict) noexcept {
    if (call == Call::kRelease) {
      verdict.refuse(Rule::async_release_like_array, "release was called again: expected one call",
                     "producer");
    } else {
      verdict.refuse(Rule::async_release_last, "called after release: expected no call");
    }
  }

  void check_inside(Call call, Call inside, Verdict& verdict) const noexcept {
    const bool is_release = call == Call::kRelease;
    if (inside == Call::kRequest) {
      verdict.add(is_release ? Rule::async_request_scheduled : Rule::async_request_not_synchronous,
                  "called inside request: expected a call after request has returned");
    } else if (inside == Call::kCancel && call != Call::kError) {
      verdict.add(Rule::async_cancel_calls_no_handler,
                  "called inside cancel: expected a call after cancel has returned");
    } else if (inside == Call::kLateCancel) {
      verdict.add(Rule::async_cancel_idempotent,
                  "called inside a later cancel: expected a cancel that does nothing");
    } else if (inside == Call::kExtract && is_release && running_ == Call::kNone) {
      verdict.add(Rule::async_handlers_serialized,
                  "called inside extract_data: expected a call after extract_data has returned");
    }
  }

  void refuse_overlap(Call call, Verdict& verdict) noexcept {
    if (call == Call::kRelease && running_ == Call::kRelease) return refuse_late(call, verdict);
    verdict.refuse(is_task(call) && is_task(running_) ? Rule::async_next_not_concurrent
                                                      : Rule::async_handlers_serialized,
                   "two handler calls at once: expected one call at a time");
    if (call == Call::kRelease) {
      release_is_due_ = gone_ = true;
    } else if (call == Call::kError) {
      errored_ = true;
    } else if (refused_ == Call::kNone) {
      refused_ = call;  // the producer sees the error
    }
  }

  void check_order(Call call, Verdict& verdict) noexcept {
    if (refused_ != Call::kNone) return check_after_refusal(call, verdict);
    if (errored_) {
      verdict.add(Rule::async_error_then_release_only, "called after on_error: expected release");
    } else if (call == Call::kError) {
      check_error(verdict);
    } else if (is_task(call) != schema_) {
      verdict.add(Rule::async_schema_first_and_once,
                  schema_ ? "on_schema was called again: expected one call"
                          : "called before on_schema: expected on_schema first");
    } else if (ended_) {
      verdict.add(Rule::async_next_null_task_is_end, "called after the end: expected release");
    } else if (!cancelling_) {
      check_owed(call, verdict);
    }
  }

  void check_after_refusal(Call call, Verdict& verdict) const noexcept {
    const Rule rule = call == Call::kError        ? Rule::async_handler_failure_ends_stream
                      : refused_ == Call::kSchema ? Rule::async_schema_only_release_after_failure
                                                  : Rule::async_next_only_release_after_failure;
    verdict.add(rule, "called after a handler call has failed: expected release");
  }

  void check_error(Verdict& verdict) const noexcept {
    if (failed_ || extracting_ > 0) return;
    if (cancelled_) {
      verdict.add(Rule::async_cancel_no_on_error,
                  "called after cancel: expected release, unless the error came before the cancel");
    } else if (ended_) {
      verdict.add(Rule::async_next_null_task_is_end, "called after the end: expected release");
    }
  }

  void check_owed(Call call, Verdict& verdict) noexcept {
    if (owed_by_extraction_.is_overdue()) {
      verdict.add(Rule::async_task_failure_then_on_error,
                  "called after extract_data has failed: expected on_error");
    }
    if (call == Call::kEnd && owed_by_request_.is_overdue()) {
      verdict.add(Rule::async_request_refused_when_not_positive,
                  "called after a request that is not positive: expected on_error");
    }
  }

  void advance(Call call, Verdict& verdict) noexcept {
    schema_ = schema_ || call == Call::kSchema;
    ended_ = ended_ || call == Call::kEnd;
    errored_ = errored_ || call == Call::kError;
    if (call == Call::kTask) count_task(verdict);
  }

  void count_task(Verdict& verdict) noexcept {
    if (++tasks_ <= requested_) return;
    if (verdict.begin() != verdict.end()) return;  // the order is already wrong
    const bool asked_late = tasks_ <= sum(requested_, requested_late_);
    verdict.add(
        asked_late ? Rule::async_request_nothing_after_cancel : Rule::async_request_not_exceeded,
        asked_late ? "more tasks than were requested before cancel: expected no effect of a later "
                     "request"
                   : "more tasks than were requested: expected at most the sum of the requests");
  }

  void check_release(Verdict& verdict) const noexcept {
    if (is_over()) return;
    if (!schema_) {
      verdict.add(Rule::async_schema_first_and_once,
                  "called before on_schema: expected on_schema first");
    } else if (owed_by_extraction_.is_owed()) {
      verdict.add(Rule::async_task_failure_then_on_error,
                  "called after extract_data has failed: expected on_error");
    } else if (owed_by_request_.is_owed()) {
      verdict.add(Rule::async_request_refused_when_not_positive,
                  "called after a request that is not positive: expected on_error");
    } else {
      verdict.add(Rule::async_error_ends_stream,
                  "called without an end: expected on_next_task with NULL or on_error first");
    }
  }

  // Calls of the consumer.

  void check_control(Call inside, Verdict& verdict) const noexcept {
    if (gone_) {
      verdict.forward = false;
      // During a running handler call it is the producer that has released too early.
      if (running_ != Call::kNone) return;
      verdict.add(Rule::async_producer_outlives_handler,
                  "called after release: expected no call on the producer", "consumer");
    } else if (inside == Call::kRelease) {
      verdict.refuse(Rule::async_release_calls_no_producer,
                     "called inside release: expected no call on the producer");
    } else if (inside == Call::kError) {
      verdict.add(Rule::async_error_calls_no_producer,
                  "called inside on_error: expected no call on the producer");
    } else if (!schema_) {
      verdict.add(Rule::async_handler_producer_not_before_schema,
                  "called before on_schema: expected a call inside on_schema or later");
    }
  }

  Call running_ = Call::kNone;  // the running handler call
  Call refused_ = Call::kNone;  // the handler call that failed
  bool schema_ = false;         // on_schema was called; the next two: end of stream, on_error
  bool ended_ = false;
  bool errored_ = false;
  bool cancelling_ = false;  // cancel was called
  bool cancelled_ = false;   // cancel has returned
  bool gone_ = false;        // release has returned to the producer
  bool release_is_due_ = false;
  bool failed_ = false;  // an extraction or request failed; the producer reports it
  int extracting_ = 0;
  OwedError owed_by_extraction_;
  OwedError owed_by_request_;
  std::int64_t tasks_ = 0;
  std::int64_t requested_ = 0;
  std::int64_t requested_late_ = 0;  // requested after cancel had returned
};

}  // namespace fletching::validate

#endif  // FLETCHING_SRC_VALIDATE_ASYNC_PROTOCOL_HPP
