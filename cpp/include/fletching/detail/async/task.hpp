// SPDX-License-Identifier: Apache-2.0
//
// A batch of an async producer, from the source to the consumer's extract_data.
#ifndef FLETCHING_DETAIL_ASYNC_TASK_HPP
#define FLETCHING_DETAIL_ASYNC_TASK_HPP

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "fletching/abi.h"
#include "fletching/owner.hpp"
#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

class AsyncProducerCore;

/// Metadata encoded as ArrowSchema.metadata. NULL: no metadata.
using TaskMetadata = std::unique_ptr<const std::string>;

inline TaskMetadata task_metadata(std::string&& block) {
  return block.empty() ? nullptr : std::make_unique<const std::string>(std::move(block));
}

/// Target of a delivered ArrowAsyncTask's private_data, owned by the stream. It is reused once it
/// is extracted and on_next_task has returned, in either order.
class AsyncTaskNode {
 public:
  AsyncTaskNode(AsyncProducerCore& producer, DeviceArray& batch, TaskMetadata&& block) noexcept
      : core(producer), array(std::move(batch)), metadata(std::move(block)) {}
  virtual ~AsyncTaskNode() = default;
  AsyncTaskNode(const AsyncTaskNode&) = delete;
  AsyncTaskNode& operator=(const AsyncTaskNode&) = delete;

  /// Frees the data.
  virtual void drop() noexcept { array.release(); }
  /// Makes a batch on extraction, into a released struct. For nodes with is_made_later only.
  virtual Status make(ArrowDeviceArray* /*out*/) noexcept { return {}; }

  /// Holds the next batch. Requires that the previous one was extracted.
  void refill(DeviceArray& batch, TaskMetadata&& block) noexcept {
    move_struct(batch.get(), array.get());
    metadata = std::move(block);
    life_.store(Life::kOpen, std::memory_order_relaxed);
  }

  // Extraction, on any thread, and the end of the stream take one atomic step each: the second sees
  // the result of the first.

  /// Marks the task as extracted. Returns true if release waits for it. Otherwise neither node nor
  /// stream may be touched afterwards.
  bool close() noexcept {
    return life_.exchange(Life::kClosed, std::memory_order_acq_rel) == Life::kCounted;
  }
  /// Handles the end of the stream. Returns true if the task is open, so that release waits for it.
  bool count() noexcept { return change(Life::kCounted); }
  /// Handles a rejection by the handler. Returns true if the task was not extracted.
  bool refuse() noexcept { return change(Life::kClosed); }
  [[nodiscard]] bool is_closed() const noexcept {
    return life_.load(std::memory_order_acquire) == Life::kClosed;
  }

  AsyncProducerCore& core;
  AsyncTaskNode* next = nullptr;
  DeviceArray array;
  TaskMetadata metadata;
  const bool is_made_later = false;

 protected:
  AsyncTaskNode(AsyncProducerCore& producer, TaskMetadata&& block) noexcept
      : core(producer), metadata(std::move(block)), is_made_later(true) {}

 private:
  enum class Life : std::uint8_t { kOpen, kCounted, kClosed };

  bool change(Life life) noexcept {
    Life open = Life::kOpen;
    return life_.compare_exchange_strong(open, life, std::memory_order_acq_rel);
  }

  std::atomic<Life> life_{Life::kOpen};
};

/// A batch that is made by `make(out)`, which returns a Status. It is used once.
template <class Make>
class MadeTaskNode final : public AsyncTaskNode {
 public:
  MadeTaskNode(AsyncProducerCore& producer, Make make, TaskMetadata block)
      : AsyncTaskNode(producer, std::move(block)), make_(std::move(make)) {}

  void drop() noexcept override { make_.reset(); }
  Status make(ArrowDeviceArray* out) noexcept override {
    DeviceArray made;
    Status status = guarded([&]() -> Status { return (*make_)(made.out()); });
    drop();
    if (status.ok()) move_struct(made.get(), out);
    return status;
  }

 private:
  std::optional<Make> make_;
};

/// Intrusive list of tasks in order.
class AsyncTaskList {
 public:
  AsyncTaskList() = default;
  AsyncTaskList(AsyncTaskList&& other) noexcept { append(other); }
  AsyncTaskList& operator=(AsyncTaskList&&) = delete;
  ~AsyncTaskList() {
    while (AsyncTaskNode* node = pop()) delete node;
  }

  void push(AsyncTaskNode* node) noexcept {
    node->next = nullptr;
    (last_ == nullptr ? first_ : last_->next) = node;
    last_ = node;
    ++size_;
  }

  AsyncTaskNode* pop() noexcept {
    AsyncTaskNode* node = first_;
    if (node == nullptr) return nullptr;
    first_ = node->next;
    if (first_ == nullptr) last_ = nullptr;
    --size_;
    return node;
  }

  /// Moves all tasks of `other` to the end of this list.
  void append(AsyncTaskList& other) noexcept {
    if (other.first_ == nullptr) return;
    (last_ == nullptr ? first_ : last_->next) = std::exchange(other.first_, nullptr);
    last_ = std::exchange(other.last_, nullptr);
    size_ += std::exchange(other.size_, 0);
  }

  [[nodiscard]] AsyncTaskNode* first() const noexcept { return first_; }
  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
  [[nodiscard]] std::int64_t size() const noexcept { return size_; }

 private:
  AsyncTaskNode* first_ = nullptr;
  AsyncTaskNode* last_ = nullptr;
  std::int64_t size_ = 0;
};

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_DETAIL_ASYNC_TASK_HPP
