// SPDX-License-Identifier: Apache-2.0
//
// What an async producer decides with its lock: its state, what is due, and whether the executor
// has the job. The states are the table in docs/reference/async.md.
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
#include "fletching/detail/async_backlog.hpp"
#include "fletching/detail/async_copy.hpp"
#include "fletching/detail/async_task.hpp"
#include "fletching/executor.hpp"
#include "fletching/owner.hpp"
#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

/// A batch costs one lock, in its push, and none when it is pushed inside on_demand.
/// Everything that ends the stream takes the lock too, and writes the end into state_; it leaves
/// the job's own lists and counts alone. Only the job makes handler calls: it reads state_ before
/// each, without the lock, and takes the lock when its list is empty, when there is something else
/// to do, and before it stops. So the lock decides between "the job stops" and "there is more for
/// it", and no batch waits for ever.
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

  /// Notes the error for on_error, unless the stream is over.
  void note(Lock& lock, Error&& error, std::string&& metadata) noexcept {
    if (!is_open(state_)) return;
    state_ = job_settles() ? State::kErrorInCall : State::kErrorPending;
    failure_ = {std::move(error), std::move(metadata)};
    discard(lock);
  }

  /// Whether a handler call may be running. Then the job sets the final state: `settle`.
  [[nodiscard]] bool job_settles() const noexcept {
    return state_ == State::kInSchema || state_ == State::kStreaming;
  }

  /// Frees batches that were not delivered, without the lock. The job frees its own.
  void discard(Lock& lock) noexcept {
    const AsyncTaskList next = scheduled_ ? AsyncTaskList() : backlog_.pop_next();
    const AsyncTaskList ready = backlog_.pop_ready();
    const Schema schema(std::move(schema_));
    if (!stopped_) stop_news_ = source_ != nullptr && !backlog_.has_end();
    stopped_ = true;
    schedule(lock);
  }

  /// A state in which only release is due, once the count of open tasks allows it.
  void finish(State state) noexcept {
    state_ = state;
    open_ = backlog_.count_open();
    release_due_ = open_ == 0;
  }

  /// For the job, between its calls: sets the final state of a stream that was stopped, and frees
  /// the batches of its list.
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

  /// Unlocks. Nothing of the stream is touched after that.
  void schedule(Lock& lock) noexcept {
    const bool submit = !scheduled_ && due();
    scheduled_ = scheduled_ || submit;
    Executor& executor = executor_;
    lock.unlock();
    if (submit) executor.submit(*this);
  }

  std::shared_ptr<AsyncSource> source_;  // called by `run` alone
  std::atomic<bool> calling_{false};     // of on_schema and on_next_task; for `state`

  std::mutex mutex_;  // for everything below, except the job's own part of backlog_
  std::atomic<State> state_{State::kCreated};  // written with the lock
  bool scheduled_ = false;                     // the executor has the job
  bool schema_given_ = false;
  bool release_due_ = false;
  bool stop_news_ = false;
  bool stopped_ = false;
  std::int64_t open_ = 0;  // tasks that release waits for, once the stream is over
  AsyncBacklog backlog_;
  Schema schema_;
  OuterShape shape_;  // of the schema; not written any more once a task is delivered
  AsyncFailure failure_;

 private:
  Executor& executor_;
};

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_DETAIL_ASYNC_PRODUCER_STATES_HPP
