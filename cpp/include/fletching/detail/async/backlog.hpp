// SPDX-License-Identifier: Apache-2.0
//
// Pushed but undelivered batches of an async stream, its demand, and its error.
#ifndef FLETCHING_DETAIL_ASYNC_BACKLOG_HPP
#define FLETCHING_DETAIL_ASYNC_BACKLOG_HPP

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <string>
#include <utility>

#include "fletching/detail/async/task.hpp"
#include "fletching/detail/checked.hpp"
#include "fletching/owner.hpp"
#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

/// Batches from the source and demand from the consumer.
///
/// Source and consumer modify it under the stream's lock. The stream has one job at a time, which
/// delivers from separate lists and takes the lock to exchange them. A batch that the source pushes
/// on the job's thread, inside on_demand, is added to these lists without the lock. While the job
/// is not scheduled, the lists belong to the thread that holds the lock. Any thread may read the
/// counts.
class AsyncBacklog {
 public:
  // Called by the source, until the end. The caller holds the lock.

  /// Throws std::bad_alloc and leaves the backlog unchanged.
  void add(AsyncProducerCore& core, DeviceArray& array, TaskMetadata metadata) {
    add(node_for(core, spare_, array, std::move(metadata)));
  }
  void add(AsyncTaskNode* node) noexcept {
    ready_.push(node);
    increase(given_);
  }
  void end() noexcept { has_end_.store(true, std::memory_order_release); }

  // Called by the consumer. The caller holds the lock.

  void add_demand(std::int64_t n) noexcept {
    const std::uint64_t sent = sent_count_.load(std::memory_order_relaxed);
    const std::int64_t demand = saturating_add(difference(asked(), sent), n);
    asked_.store(sent + static_cast<std::uint64_t>(demand), std::memory_order_release);
  }

  // Called on any thread.

  [[nodiscard]] bool has_end() const noexcept { return has_end_.load(std::memory_order_acquire); }
  /// Requested batches that are not pushed yet. Returns 0 after the end.
  [[nodiscard]] std::int64_t unmet() const noexcept {
    return has_end() ? 0 : (std::max<std::int64_t>)(difference(asked(), given()), 0);
  }

  // Called by the job.

  /// Whether a batch added by add_here() follows all batches that were pushed earlier.
  [[nodiscard]] bool is_in_order() const noexcept {
    return given_.load(std::memory_order_acquire) == seen_;
  }
  /// Like add(), for the job's lists.
  void add_here(AsyncProducerCore& core, DeviceArray& array, TaskMetadata metadata) {
    next_.push(node_for(core, sent_, array, std::move(metadata)));
    increase(given_here_);
  }

  /// Whether the source has not been notified of unmet demand.
  [[nodiscard]] bool has_news() const noexcept {
    return (notified_asked_ != asked() || notified_sent_ != sent_count_) && unmet() > 0;
  }
  /// Returns the demand for on_demand and marks it as notified.
  std::int64_t notify() noexcept {
    notified_asked_ = asked();
    notified_sent_ = sent_count_;
    return unmet();
  }
  [[nodiscard]] bool task_is_due() const noexcept { return !next_.empty() && may_send(); }
  AsyncTaskNode* pop() noexcept {
    increase(sent_count_);
    return next_.pop();
  }
  /// Keeps the node after on_next_task has returned.
  void sent(AsyncTaskNode* node) noexcept {
    sent_.push(node);
    trim(sent_);
  }

  // Called by the job, or on any thread while the job is not scheduled. The caller holds the lock.

  void exchange() noexcept {
    if (!ready_.empty()) {
      seen_ += static_cast<std::uint64_t>(ready_.size());
      next_.append(ready_);
      spare_.append(sent_);
    }
    trim(spare_);
  }
  /// Whether a task from next_ or ready_ can be sent.
  [[nodiscard]] bool any_task_is_due() const noexcept {
    return may_send() && !(next_.empty() && ready_.empty());
  }
  [[nodiscard]] bool end_is_due() const noexcept {
    return has_end() && next_.empty() && ready_.empty();
  }
  /// Removes the batches that were not sent.
  AsyncTaskList pop_next() noexcept { return std::move(next_); }
  AsyncTaskList pop_ready() noexcept { return std::move(ready_); }
  /// Counts the open tasks at the end of the stream. Each of them then reports when it is closed.
  [[nodiscard]] std::int64_t count_open() noexcept {
    spare_.append(sent_);
    std::int64_t open = 0;
    for (AsyncTaskNode* node = spare_.first(); node != nullptr; node = node->next) {
      if (node->count()) ++open;
    }
    return open;
  }

 private:
  static constexpr std::int64_t kSpare = 64;  // limit of retained nodes

  [[nodiscard]] std::uint64_t asked() const noexcept {
    return asked_.load(std::memory_order_acquire);
  }
  [[nodiscard]] std::uint64_t given() const noexcept {
    return given_.load(std::memory_order_acquire) + given_here_.load(std::memory_order_acquire);
  }
  /// Only one thread at a time writes `count`.
  static void increase(std::atomic<std::uint64_t>& count) noexcept {
    count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  static std::int64_t difference(std::uint64_t a, std::uint64_t b) noexcept {
    return static_cast<std::int64_t>(a - b);
  }
  [[nodiscard]] bool may_send() const noexcept {
    return difference(asked(), sent_count_.load(std::memory_order_relaxed)) > 0;
  }

  /// Returns a node from `used`, or a new one. Tasks are mostly extracted in order; an open task
  /// moves to the back.
  static AsyncTaskNode* node_for(AsyncProducerCore& core, AsyncTaskList& used, DeviceArray& array,
                                 TaskMetadata&& metadata) {
    for (int tries = 0; tries < 2 && !used.empty(); ++tries) {
      AsyncTaskNode* node = used.pop();
      if (!node->is_closed()) {
        used.push(node);
      } else if (node->is_made_later) {
        delete node;
      } else {
        node->refill(array, std::move(metadata));
        return node;
      }
    }
    // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new): see add()
    return new AsyncTaskNode(core, array, std::move(metadata));
  }

  static void trim(AsyncTaskList& used) noexcept {
    while (used.size() > kSpare && used.first()->is_closed()) delete used.pop();
  }

  // Written under the lock.
  AsyncTaskList ready_;  // pushed, not yet seen by the job
  AsyncTaskList spare_;  // sent, open or closed
  // Counts of batches since the beginning. They may wrap: only differences are meaningful.
  std::atomic<std::uint64_t> asked_{0};
  std::atomic<std::uint64_t> given_{0};
  std::atomic<bool> has_end_{false};
  // Used by the job.
  AsyncTaskList next_;      // to send
  AsyncTaskList sent_;      // open or closed
  std::uint64_t seen_ = 0;  // of given_
  std::atomic<std::uint64_t> given_here_{0};
  std::atomic<std::uint64_t> sent_count_{0};
  std::uint64_t notified_asked_ = 0;
  std::uint64_t notified_sent_ = 0;
};

/// The arguments of on_error.
struct AsyncFailure {
  Error error{EIO, {}};
  std::string metadata;  // encoded; empty: no metadata

  [[nodiscard]] const char* text() const noexcept {
    return error.message().empty() ? "producer: failed without a message" : error.message().c_str();
  }
  [[nodiscard]] const char* block() const noexcept {
    return metadata.empty() ? nullptr : metadata.data();
  }
};

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_DETAIL_ASYNC_BACKLOG_HPP
