// SPDX-License-Identifier: Apache-2.0
//
// Locked part of an async producer: its state, the due steps, and whether the executor has the job.
// The states are the table in docs/reference/async.md.
#ifndef FLETCHING_DETAIL_ASYNC_PRODUCER_STATES_HPP
#define FLETCHING_DETAIL_ASYNC_PRODUCER_STATES_HPP

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "fletching/async_source.hpp"
#include "fletching/detail/async/backlog.hpp"
#include "fletching/detail/async/copy.hpp"
#include "fletching/detail/async/task.hpp"
#include "fletching/executor.hpp"
#include "fletching/owner.hpp"
#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

/// A push takes the lock once, or not at all inside on_demand. An operation that ends the stream
/// also takes the lock and writes the end to state_. It leaves the job's lists and counts alone.
/// Only the job makes handler calls. It reads state_ before each one without the lock, and takes
/// the lock when its list is empty, when other work is due, and before it stops. The lock therefore
/// orders "the job stops" and "the job has more work", and no batch waits forever.
class AsyncProducerStates : public Job {
 protected:
  using State = AsyncProducerState;
  using Lock = std::unique_lock<std::mutex>;

 public:
  /// Requested batches that are not pushed yet.
  [[nodiscard]] std::int64_t unmet_demand() noexcept {
    const std::lock_guard lock(mutex_);
    return accepts_batches(state_) ? backlog_.unmet() : 0;
  }

  [[nodiscard]] State state() noexcept {
    const std::lock_guard lock(mutex_);
    const bool calling = calling_.load(std::memory_order_relaxed);
    if (state_ == State::kStreaming && calling) return State::kInTask;
    if (state_ == State::kStopping && !calling) return State::kCancelled;
    if (state_ == State::kErrorInCall && !calling) return State::kErrorPending;
    return state_;
  }

 protected:
  static constexpr std::string_view kBatchRule =
      "push: out of order: expected a batch after the schema and before the end";

  AsyncProducerStates(Executor& executor, std::shared_ptr<AsyncSource>&& source) noexcept
      : source_(std::move(source)), executor_(executor) {}

  [[nodiscard]] bool streaming() const noexcept {
    return state_.load(std::memory_order_acquire) == State::kStreaming;
  }

  /// Stores the error for on_error unless the stream is over.
  void note(Lock& lock, Error&& error, std::string&& metadata) noexcept {
    if (!is_open(state_)) return;
    state_ = job_settles() ? State::kErrorInCall : State::kErrorPending;
    failure_ = {std::move(error), std::move(metadata)};
    discard(lock);
  }

  /// Whether a handler call may be running. If so, the job sets the final state in settle().
  [[nodiscard]] bool job_settles() const noexcept {
    return state_ == State::kInSchema || state_ == State::kStreaming;
  }

  /// Frees undelivered batches without the lock. The job frees the batches in its lists.
  void discard(Lock& lock) noexcept {
    const AsyncTaskList next = scheduled_ ? AsyncTaskList() : backlog_.pop_next();
    const AsyncTaskList ready = backlog_.pop_ready();
    const Schema schema(std::move(schema_));
    if (!stopped_) stop_news_ = source_ != nullptr && !backlog_.has_end();
    stopped_ = true;
    schedule(lock);
  }

  /// Enters a state in which only release is due, once no counted task is open.
  void finish(State state) noexcept {
    state_ = state;
    open_ = backlog_.count_open();
    release_due_ = open_ == 0;
  }

  /// Sets the final state of a stopped stream and frees the batches in the job's list. The job
  /// calls this between its handler calls.
  void settle(Lock& lock) noexcept {
    if (state_ == State::kStopping) finish(State::kCancelled);
    if (state_ == State::kErrorInCall) state_ = State::kErrorPending;
    if (is_open(state_)) return;
    {
      const AsyncTaskList next = backlog_.pop_next();
      lock.unlock();
    }
    lock.lock();
  }

  Status refused(Lock& lock, std::string_view rule) noexcept {
    const bool wrong = state_ == State::kCreated || backlog_.has_end();
    lock.unlock();
    return wrong ? plain_error(EINVAL, rule) : over();
  }

  [[nodiscard]] bool accepts_more() const noexcept {
    return accepts_batches(state_) && !backlog_.has_end();
  }

  static Error over() noexcept {
    return plain_error(ECANCELED,
                       "stream: over: expected a call before cancel, refusal or failure");
  }

  // Scheduling.

  [[nodiscard]] bool more() noexcept {
    scheduled_ = due();
    return scheduled_;
  }

  [[nodiscard]] bool due() const noexcept {
    if (stop_news_ || release_due_) return true;
    switch (state_) {
      case State::kSchema:
      case State::kStopping:
      case State::kErrorInCall:
      case State::kErrorPending:
        return true;
      case State::kStreaming:
        return backlog_.any_task_is_due() || backlog_.end_is_due() || demand_due();
      default:
        return false;
    }
  }

  [[nodiscard]] bool demand_due() const noexcept {
    return source_ != nullptr && backlog_.has_news();
  }

  /// Unlocks. The stream must not be touched afterwards.
  void schedule(Lock& lock) noexcept {
    const bool submit = !scheduled_ && due();
    scheduled_ = scheduled_ || submit;
    Executor& executor = executor_;
    lock.unlock();
    if (submit) executor.submit(*this);
  }

  std::shared_ptr<AsyncSource> source_;  // called only by run()
  std::atomic<bool> calling_{false};     // in on_schema or on_next_task; for state()

  std::mutex mutex_;  // protects all members below except the job's part of backlog_
  std::atomic<State> state_{State::kCreated};  // written under the lock
  bool scheduled_ = false;                     // the executor has the job
  bool schema_given_ = false;
  bool release_due_ = false;
  bool stop_news_ = false;
  bool stopped_ = false;
  std::int64_t open_ = 0;  // tasks that release waits for, once the stream is over
  AsyncBacklog backlog_;
  Schema schema_;
  OuterShape shape_;  // the schema's shape; constant after the first task is delivered
  AsyncFailure failure_;

 private:
  Executor& executor_;
};

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_DETAIL_ASYNC_PRODUCER_STATES_HPP
