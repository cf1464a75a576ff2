// SPDX-License-Identifier: Apache-2.0
//
// Queue of an async consumer: the tasks between on_next_task and `take`, the state and the demand.
#ifndef FLETCHING_DETAIL_ASYNC_CONSUMER_QUEUE_HPP
#define FLETCHING_DETAIL_ASYNC_CONSUMER_QUEUE_HPP

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "fletching/async_listener.hpp"
#include "fletching/detail/async/calls.hpp"
#include "fletching/detail/async/copy.hpp"
#include "fletching/detail/async/news.hpp"
#include "fletching/detail/async/queued.hpp"
#include "fletching/detail/checked.hpp"
#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

/// `take` locks once per batch; on_next_task queues it without the lock. So a task may be queued
/// while another thread ends the stream. One thread writes the task and the other writes state_.
/// Each then adds to news_ and reads the other's variable; the later thread sees both writes. So a
/// task that is queued too late is dropped by at least one of the threads, or by both in turn.
class AsyncConsumerQueue : public std::enable_shared_from_this<AsyncConsumerQueue> {
 protected:
  using State = AsyncConsumerState;

 public:
  AsyncConsumerQueue(const AsyncConsumerQueue&) = delete;
  AsyncConsumerQueue& operator=(const AsyncConsumerQueue&) = delete;

  bool drop() noexcept {
    std::unique_lock lock(mutex_);
    if (!may_take()) {
      wait_for_kept(lock);
      if (kept_.empty()) return false;
      const std::optional<Result<AsyncBatch>> batch = kept_.pop();
      lock.unlock();
      return true;
    }
    QueuedTask task = queue_.pop();
    const AsyncCalls::Out out(calls_);
    lock.unlock();
    detail::drop(task);
    return true;
  }

  [[nodiscard]] State state() const noexcept { return state_.load(std::memory_order_acquire); }

 protected:
  AsyncConsumerQueue() noexcept = default;
  ~AsyncConsumerQueue() = default;

  // For handler calls, one at a time, without the lock.

  [[nodiscard]] bool has_demand() const noexcept {
    return asked_.load(std::memory_order_acquire) != received_.load(std::memory_order_relaxed);
  }

  /// Returns false if out of memory.
  bool make_room() noexcept {
    if (queue_.has_room()) return true;
    return guarded([&]() -> Status { return queue_.make_room(), Status(); }).ok();
  }

  /// Requires demand and room. Returns false if the stream ended before the task was queued.
  bool queue(QueuedTask&& task) noexcept {
    count_task();
    queue_.push(std::move(task));
    news_.add_for_one();
    if (state_.load(std::memory_order_acquire) == State::kStreaming) return true;
    drop_late();
    return false;
  }

  void drop_cancelled(QueuedTask& task) noexcept {
    count_task();
    std::unique_lock lock(mutex_);
    const AsyncCalls::Out out(calls_);
    lock.unlock();
    detail::drop(task);
  }

  /// Drops tasks queued while the stream was cancelled, unless cancel() dropped them.
  void drop_late() noexcept {
    std::unique_lock lock(mutex_);
    if (closed_) drop_queued(lock);
  }

  // The caller holds the lock.

  /// Adds to the demand, up to INT64_MAX.
  void add_demand(std::int64_t n) noexcept {
    const std::uint64_t came = received_.load(std::memory_order_relaxed);
    const std::uint64_t asked = asked_.load(std::memory_order_relaxed);
    const std::int64_t demand = saturating_add(static_cast<std::int64_t>(asked - came), n);
    asked_.store(came + static_cast<std::uint64_t>(demand), std::memory_order_release);
  }

  /// Ends `take`. Returns true if the caller must drop or extract the queued tasks, and false if
  /// another caller does.
  bool close() noexcept { return !std::exchange(closed_, true); }

  /// Called with the lock, returns without it.
  void drop_queued(std::unique_lock<std::mutex>& lock) noexcept {
    const AsyncCalls::Out out(calls_);
    while (!queue_.empty()) {
      QueuedTask task = queue_.pop();
      lock.unlock();
      detail::drop(task);
      lock.lock();
    }
    lock.unlock();
  }

  /// Keeps the queued tasks at a regular end, while the producer still exists.
  void keep_queued() noexcept {
    std::unique_lock lock(mutex_);
    const AsyncCalls::Out out(calls_);
    kept_.extract_from(queue_, promise_, lock);
    lock.unlock();
  }

  [[nodiscard]] bool may_take() const noexcept { return !closed_ && !queue_.empty(); }

  /// Waits until a task is queued or no more tasks will be. Called without the lock. The returned
  /// pointer keeps the stream alive: the listener may have destroyed the handle meanwhile.
  std::shared_ptr<const AsyncConsumerQueue> wait_for_task() noexcept {
    std::shared_ptr<const AsyncConsumerQueue> self;
    while (true) {
      const std::uint32_t news = news_.count();
      if (!queue_.empty() || !is_live(state_)) return self;
      if (self == nullptr) self = weak_from_this().lock();
      news_.wait(news);
    }
  }

  /// The caller holds the lock.
  void go(State state) noexcept {
    state_.store(state, std::memory_order_release);
    news_.add();
  }

  /// Does not wait inside release, which would wait for itself.
  void wait_for_kept(std::unique_lock<std::mutex>& lock) noexcept {
    if (!calls_.inside()) kept_.wait(lock);
  }

  std::optional<Result<AsyncBatch>> take_kept(std::unique_lock<std::mutex>& lock) noexcept {
    wait_for_kept(lock);
    return kept_.pop();
  }

  void wait_for_calls(AsyncListener& listener) noexcept {
    std::unique_lock lock(mutex_);
    if (calls_.any()) {
      lock.unlock();
      listener.on_release_waits();
      lock.lock();
    }
    calls_.wait(lock);
    go(State::kReleased);
  }

  std::mutex mutex_;                           // protects all members below that are not atomic
  std::atomic<State> state_{State::kCreated};  // written under the lock
  bool closed_ = false;                        // `take` no longer pops from queue_
  TaskQueue queue_;                            // popped under the lock
  KeptBatches kept_;
  AsyncCalls calls_{mutex_};
  StreamPromise promise_;  // constant once a task is queued

 private:
  void count_task() noexcept {
    received_.store(received_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

  News news_;  // counts tasks and state changes; takers wait on it
  // Counts of tasks since the beginning. The difference is the demand. They may wrap.
  std::atomic<std::uint64_t> asked_{0};     // written under the lock
  std::atomic<std::uint64_t> received_{0};  // written by handler calls
};

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_DETAIL_ASYNC_CONSUMER_QUEUE_HPP
