// SPDX-License-Identifier: Apache-2.0
//
// What an async consumer holds between on_next_task and its application: tasks to extract, and the
// batches of those that had to be extracted before the application came for them.
#ifndef FLETCHING_DETAIL_ASYNC_QUEUED_HPP
#define FLETCHING_DETAIL_ASYNC_QUEUED_HPP

#include <cerrno>
#include <condition_variable>
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
/// extract_data returned; EINVAL when it gave nothing, or not what the stream has promised.
///
/// Returns whether the producer knows of an error: false for one that is found here.
inline bool extract(QueuedTask& queued, const StreamPromise& promise,
                    Result<AsyncBatch>& batch) noexcept {
  batch->metadata = std::move(queued.metadata);
  ArrowDeviceArray* out = batch->array.get();  // zeroed
  const int code = queued.task.extract_data(&queued.task, out);
  if (code != 0) {
    out->array.release = nullptr;  // whatever was written there is not ours
    batch = foreign_error(code, "extract_data of the task has failed");
    return true;
  }
  Status kept = check_promise(*out, promise);
  if (kept.ok()) return true;
  batch = std::move(kept).error();
  return false;
}

/// A task that the application is taking, and where the batch goes.
struct TakenTask {
  /// Once: release may come, and extract it, before the application gets to it.
  void extract_once(const StreamPromise& promise) noexcept {
    if (!std::exchange(extracted, true)) producer_knows = extract(task, promise, batch);
  }

  QueuedTask task;
  Result<AsyncBatch>& batch;
  bool extracted = false;
  bool producer_knows = true;  // of the error, when there is one
};

/// Tells the producer that nobody wants the data.
inline void drop(QueuedTask& queued) noexcept { queued.task.extract_data(&queued.task, nullptr); }

inline void drop_all(Fifo<QueuedTask>& queue) noexcept {
  while (!queue.empty()) {
    QueuedTask queued = queue.pop();
    drop(queued);
  }
}

/// The batches of a stream that has ended and was released with tasks in its queue. The producer is
/// gone when release returns, so they are extracted inside it, and taken from here later.
class KeptBatches {
 public:
  /// With the lock: `extract_from` is about to begin.
  void begin() noexcept { extracting_ = true; }

  /// Without the lock, which is that of `mutex`. Without memory the tasks are dropped, and `pop`
  /// says so.
  void extract_from(Fifo<QueuedTask>& queue, const StreamPromise& promise,
                    std::mutex& mutex) noexcept {
    Fifo<Result<AsyncBatch>> batches;
    const Status reserved =
        guarded([&]() -> Status { return batches.reserve(queue.size()), Status(); });
    if (!reserved.ok()) drop_all(queue);
    while (!queue.empty()) {
      QueuedTask queued = queue.pop();
      Result<AsyncBatch> batch(std::in_place);
      extract(queued, promise, batch);
      batches.push(std::move(batch));
    }
    const std::lock_guard lock(mutex);
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
