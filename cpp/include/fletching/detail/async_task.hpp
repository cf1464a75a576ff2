// SPDX-License-Identifier: Apache-2.0
//
// One batch of an async producer, from the source to the consumer's extract_data.
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

/// What the private_data of a delivered ArrowAsyncTask leads to. Its memory goes when it was
/// extracted and on_next_task has returned, whichever comes last.
class AsyncTaskNode {
 public:
  AsyncTaskNode(AsyncProducerCore& producer, std::string&& block)
      : core(producer),
        metadata(block.empty() ? nullptr : std::make_unique<const std::string>(std::move(block))) {}
  virtual ~AsyncTaskNode() = default;
  AsyncTaskNode(const AsyncTaskNode&) = delete;
  AsyncTaskNode& operator=(const AsyncTaskNode&) = delete;

  /// Moves the data to *out, unless that fails.
  virtual Status give(ArrowDeviceArray* out) noexcept = 0;
  /// Frees the data.
  virtual void drop() noexcept = 0;

  /// Extraction and return of the call each leave once; true for the second.
  bool leave() noexcept { return left_.exchange(true, std::memory_order_acq_rel); }

  AsyncProducerCore& core;
  const std::unique_ptr<const std::string> metadata;  // NULL: none
  AsyncTaskNode* next = nullptr;

 private:
  std::atomic<bool> left_{false};
};

/// A batch that is there already.
class ArrayTaskNode final : public AsyncTaskNode {
 public:
  ArrayTaskNode(AsyncProducerCore& producer, DeviceArray&& array, std::string&& block)
      : AsyncTaskNode(producer, std::move(block)), array_(std::move(array)) {}

  Status give(ArrowDeviceArray* out) noexcept override {
    array_.move_to(out);
    return {};
  }
  void drop() noexcept override { array_.release(); }

 private:
  DeviceArray array_;
};

/// A batch that is made when the consumer extracts it: `make(out)` returns a Status.
template <class Make>
class MadeTaskNode final : public AsyncTaskNode {
 public:
  MadeTaskNode(AsyncProducerCore& producer, Make make, std::string&& block)
      : AsyncTaskNode(producer, std::move(block)), make_(std::move(make)) {}

  Status give(ArrowDeviceArray* out) noexcept override {
    DeviceArray made;
    Status status = guarded([&]() -> Status { return (*make_)(made.out()); });
    drop();
    if (status.ok()) made.move_to(out);
    return status;
  }
  void drop() noexcept override { make_.reset(); }

 private:
  std::optional<Make> make_;
};

/// Tasks in their order, linked through themselves.
class AsyncTaskList {
 public:
  AsyncTaskList() = default;
  AsyncTaskList(AsyncTaskList&& other) noexcept { swap(other); }
  AsyncTaskList& operator=(AsyncTaskList&&) = delete;
  ~AsyncTaskList() {
    while (AsyncTaskNode* node = pop()) delete node;
  }

  void push(AsyncTaskNode* node) noexcept {
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

  void swap(AsyncTaskList& other) noexcept {
    std::swap(first_, other.first_);
    std::swap(last_, other.last_);
    std::swap(size_, other.size_);
  }

  [[nodiscard]] std::int64_t size() const noexcept { return size_; }

 private:
  AsyncTaskNode* first_ = nullptr;
  AsyncTaskNode* last_ = nullptr;
  std::int64_t size_ = 0;
};

/// Counts the delivered tasks that are not extracted: release of the handler waits for them.
class OpenTasks {
 public:
  /// A task was extracted. True when the stream is over and this was the last one.
  bool close_one() noexcept { return open_.fetch_sub(1, std::memory_order_acq_rel) == 1; }

  /// The stream is over, after `delivered` tasks. True when none of them is open.
  bool no_more(std::int64_t delivered) noexcept {
    const std::int64_t change = delivered - kGoesOn;
    return open_.fetch_add(change, std::memory_order_acq_rel) + change == 0;
  }

 private:
  /// kGoesOn less the extracted tasks; once the stream is over, the tasks that are still open.
  static constexpr std::int64_t kGoesOn = std::int64_t{1} << 62;
  std::atomic<std::int64_t> open_{kGoesOn};
};

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_DETAIL_ASYNC_TASK_HPP
