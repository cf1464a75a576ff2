// SPDX-License-Identifier: Apache-2.0
//
// Contents of an async consumer between on_next_task and `take`: tasks to extract, and batches of
// tasks that had to be extracted before the application took them.
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
#include "fletching/detail/async/copy.hpp"
#include "fletching/detail/async/fifo.hpp"
#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

/// Copies of the arguments of on_next_task. Must be extracted or dropped exactly once.
struct QueuedTask {
  ArrowAsyncTask task{};
  MetadataCopy metadata;
};

/// Extracts into `batch`, which contains a released array. An out parameter avoids moving about 150
/// bytes. Errors: the code that extract_data returned; EINVAL if the array is released or does not
/// match the stream's schema or device type.
///
/// Returns false if the producer does not know of the error because it was found here.
inline bool extract(QueuedTask& queued, const StreamPromise& promise,
                    Result<AsyncBatch>& batch) noexcept {
  batch->metadata = std::move(queued.metadata);
  ArrowDeviceArray* out = batch->array.get();  // zeroed
  const int code = queued.task.extract_data(&queued.task, out);
  if (code != 0) {
    out->array.release = nullptr;  // not valid, even if extract_data has written it
    batch = foreign_error(code, "extract_data: failed without a message");
    return true;
  }
  if (keeps_promise(*out, promise)) return true;
  Status kept = check_promise(*out, promise);
  if (kept.ok()) return true;
  batch = std::move(kept).error();
  return false;
}

/// A task that the application is taking, and the destination of its batch.
struct TakenTask {
  /// Extracts at most once: release may run and extract the task before the application does.
  void extract_once(const StreamPromise& promise) noexcept {
    if (!std::exchange(extracted, true)) producer_knows = extract(task, promise, batch);
  }

  QueuedTask task;
  Result<AsyncBatch>& batch;
  bool extracted = false;
  bool producer_knows = true;  // whether the producer knows of the error, if any
};

/// Calls extract_data with NULL, because the data is not needed.
inline void drop(QueuedTask& queued) noexcept { queued.task.extract_data(&queued.task, nullptr); }

/// Lock-free FIFO for one pushing and one popping thread at a time. Does not allocate before the
/// first task, nor in steady state while its length stays bounded.
///
/// The sides synchronize through received_: a task or a link to another block is read only once
/// received_ covers it. The popping side leaves a block only when it reads a task of the next one,
/// so that a push can still link to it.
class TaskQueue {
 public:
  TaskQueue() noexcept = default;
  TaskQueue(const TaskQueue&) = delete;
  TaskQueue& operator=(const TaskQueue&) = delete;
  ~TaskQueue() {
    while (first_ != nullptr) delete std::exchange(first_, first_->next);
    delete spare_.load(std::memory_order_relaxed);
  }

  /// Returns false if push() needs another block.
  [[nodiscard]] bool has_room() const noexcept {
    return last_ != nullptr && received_.load(std::memory_order_relaxed) != last_end_;
  }
  /// Throws std::bad_alloc and leaves the queue unchanged.
  void make_room() {
    Block* block = spare_.exchange(nullptr, std::memory_order_acq_rel);
    if (block == nullptr) block = new Block;
    block->next = nullptr;
    (last_ == nullptr ? first_ : last_->next) = block;
    last_ = block;
    last_end_ += kTasks;
  }
  /// Requires room.
  void push(QueuedTask&& task) noexcept {
    const std::uint64_t came = received_.load(std::memory_order_relaxed);
    last_->tasks[came % kTasks] = std::move(task);
    received_.store(came + 1, std::memory_order_release);
  }

  /// Requires a task.
  QueuedTask pop() noexcept {
    const std::uint64_t taken = taken_.load(std::memory_order_relaxed);
    if (taken % kTasks == 0 && taken != 0) {
      Block* read = std::exchange(first_, first_->next);
      delete spare_.exchange(read, std::memory_order_acq_rel);
    }
    taken_.store(taken + 1, std::memory_order_relaxed);
    return std::move(first_->tasks[taken % kTasks]);
  }

  /// Exact only on the popping side.
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

  std::atomic<std::uint64_t> received_{0};  // pushing side
  std::uint64_t last_end_ = 0;              // pushing side: received_ when last_ is full
  Block* last_ = nullptr;                   // pushing side
  std::atomic<std::uint64_t> taken_{0};     // popping side
  Block* first_ = nullptr;                  // popping side, once a task was pushed
  std::atomic<Block*> spare_{nullptr};      // a block that was read
};

/// Batches of an ended stream that was released with tasks in its queue. The producer is destroyed
/// when release returns, so the tasks are extracted inside it and taken from here later.
class KeptBatches {
 public:
  /// Announces extract_from(). Requires the lock.
  void begin() noexcept { extracting_ = true; }

  /// Called with the lock, which it releases during each extraction. If out of memory, it drops the
  /// tasks and pop() returns ENOMEM.
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

  // The caller holds the lock.

  /// Waits for the end of the extraction: until then the batches are in no queue.
  void wait(std::unique_lock<std::mutex>& lock) noexcept {
    there_.wait(lock, [this] { return !extracting_; });
  }

  [[nodiscard]] bool empty() const noexcept { return batches_.empty(); }

  /// Returns the oldest batch or its error. Empty if there is no batch; ENOMEM once if the batches
  /// were lost.
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
