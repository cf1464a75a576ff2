// SPDX-License-Identifier: Apache-2.0
//
// What an async consumer holds between on_next_task and `take`: tasks to extract, and the batches
// of tasks that had to be extracted before the application took them.
#ifndef FLETCHING_DETAIL_ASYNC_QUEUED_HPP
#define FLETCHING_DETAIL_ASYNC_QUEUED_HPP

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>

#include "fletching/abi.h"
#include "fletching/async_listener.hpp"
#include "fletching/detail/async_copy.hpp"
#include "fletching/detail/fifo.hpp"
#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

/// Copies of what on_next_task was called with. To be extracted or dropped, once.
struct QueuedTask {
  ArrowAsyncTask task{};
  MetadataCopy metadata;
};

/// Into `batch`, which has a released array in it: a batch is some 150 bytes to move. Errors: what
/// extract_data returned; EINVAL when the array is released or not of the stream's schema or
/// device.
///
/// Returns whether the producer knows the error: false for one that is found here.
inline bool extract(QueuedTask& queued, const StreamPromise& promise,
                    Result<AsyncBatch>& batch) noexcept {
  batch->metadata = std::move(queued.metadata);
  ArrowDeviceArray* out = batch->array.get();  // zeroed
  const int code = queued.task.extract_data(&queued.task, out);
  if (code != 0) {
    out->array.release = nullptr;  // not ours, even if extract_data has written it
    batch = foreign_error(code, "extract_data: failed without a message");
    return true;
  }
  if (keeps_promise(*out, promise)) return true;
  Status kept = check_promise(*out, promise);
  if (kept.ok()) return true;
  batch = std::move(kept).error();
  return false;
}

/// A task that the application is taking, and the place for its batch.
struct TakenTask {
  /// Once: release may run, and extract it, before the application does.
  void extract_once(const StreamPromise& promise) noexcept {
    if (!std::exchange(extracted, true)) producer_knows = extract(task, promise, batch);
  }

  QueuedTask task;
  Result<AsyncBatch>& batch;
  bool extracted = false;
  bool producer_knows = true;  // of the error, when there is one
};

/// Extracts with NULL: the data is not needed.
inline void drop(QueuedTask& queued) noexcept { queued.task.extract_data(&queued.task, nullptr); }

/// First in, first out, between two sides without a lock: one thread at a time pushes, and one at a
/// time pops. It allocates nothing before the first task, and nothing in the long run when its
/// length stays bounded.
///
/// The sides share received_ alone. What a push has written, a task or the link to another block,
/// is read once received_ says so; a block is left when its successor is read, so that a push that
/// is about to link to it finds it.
class TaskQueue {
 public:
  TaskQueue() noexcept = default;
  TaskQueue(const TaskQueue&) = delete;
  TaskQueue& operator=(const TaskQueue&) = delete;
  ~TaskQueue() {
    while (first_ != nullptr) delete std::exchange(first_, first_->next);
    delete spare_.load(std::memory_order_relaxed);
  }

  /// False when `push` needs a block more.
  [[nodiscard]] bool has_room() const noexcept {
    return last_ != nullptr && received_.load(std::memory_order_relaxed) != last_end_;
  }
  /// Throws std::bad_alloc, and then nothing has changed.
  void make_room() {
    Block* block = spare_.exchange(nullptr, std::memory_order_acq_rel);
    if (block == nullptr) block = new Block;
    block->next = nullptr;
    (last_ == nullptr ? first_ : last_->next) = block;
    last_ = block;
    last_end_ += kTasks;
  }
  /// There is room.
  void push(QueuedTask&& task) noexcept {
    const std::uint64_t came = received_.load(std::memory_order_relaxed);
    last_->tasks[came % kTasks] = std::move(task);
    received_.store(came + 1, std::memory_order_release);
  }

  /// There is one.
  QueuedTask pop() noexcept {
    const std::uint64_t taken = taken_.load(std::memory_order_relaxed);
    if (taken % kTasks == 0 && taken != 0) {
      Block* read = std::exchange(first_, first_->next);
      delete spare_.exchange(read, std::memory_order_acq_rel);
    }
    taken_.store(taken + 1, std::memory_order_relaxed);
    return std::move(first_->tasks[taken % kTasks]);
  }

  /// Exact for the side that pops.
  [[nodiscard]] std::size_t size() const noexcept {
    return static_cast<std::size_t>(received_.load(std::memory_order_acquire) -
                                    taken_.load(std::memory_order_relaxed));
  }
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }

 private:
  static constexpr std::size_t kTasks = 32;
  struct Block {
    QueuedTask tasks[kTasks];
    Block* next = nullptr;
  };

  std::atomic<std::uint64_t> received_{0};  // of the side that pushes
  std::uint64_t last_end_ = 0;              // of the side that pushes: received_ when last_ is full
  Block* last_ = nullptr;                   // of the side that pushes
  std::atomic<std::uint64_t> taken_{0};     // of the side that pops
  Block* first_ = nullptr;                  // of the side that pops, once a task was pushed
  std::atomic<Block*> spare_{nullptr};      // one that was read
};

/// The batches of a stream that has ended and was released with tasks in its queue. The producer is
/// destroyed when release returns, so they are extracted inside it, and taken from here later.
class KeptBatches {
 public:
  /// With the lock: `extract_from` is about to begin.
  void begin() noexcept { extracting_ = true; }

  /// With the lock, which is released during each extraction. Without memory the tasks are dropped,
  /// and `pop` says so.
  void extract_from(TaskQueue& queue, const StreamPromise& promise,
                    std::unique_lock<std::mutex>& lock) noexcept {
    Fifo<Result<AsyncBatch>> batches;
    const Status reserved =
        guarded([&]() -> Status { return batches.reserve(queue.size()), Status(); });
    for (std::size_t n = queue.size(); n > 0 && !queue.empty(); --n) {
      QueuedTask queued = queue.pop();
      lock.unlock();
      if (!reserved.ok()) {
        drop(queued);
      } else {
        Result<AsyncBatch> batch(std::in_place);
        extract(queued, promise, batch);
        batches.push(std::move(batch));
      }
      lock.lock();
    }
    batches_ = std::move(batches);
    lost_ = !reserved.ok();
    extracting_ = false;
    there_.notify_all();
  }

  // With the lock.

  /// While they are extracted, they are in no queue.
  void wait(std::unique_lock<std::mutex>& lock) noexcept {
    there_.wait(lock, [this] { return !extracting_; });
  }

  [[nodiscard]] bool empty() const noexcept { return batches_.empty(); }

  /// The oldest batch, or its error; empty when there is none; ENOMEM, once, when they are lost.
  std::optional<Result<AsyncBatch>> pop() noexcept {
    if (!batches_.empty()) return batches_.pop();
    if (std::exchange(lost_, false)) return plain_error(ENOMEM, "out of memory");
    return std::nullopt;
  }

  Fifo<Result<AsyncBatch>> pop_all() noexcept { return std::exchange(batches_, {}); }

 private:
  std::condition_variable there_;
  Fifo<Result<AsyncBatch>> batches_;
  bool extracting_ = false;
  bool lost_ = false;
};

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_DETAIL_ASYNC_QUEUED_HPP
