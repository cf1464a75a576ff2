// SPDX-License-Identifier: Apache-2.0
//
// What an async stream has been given and asked for, and has not delivered yet; its error too.
#ifndef FLETCHING_DETAIL_ASYNC_BACKLOG_HPP
#define FLETCHING_DETAIL_ASYNC_BACKLOG_HPP

#include <cerrno>
#include <cstdint>
#include <string>
#include <utility>

#include "fletching/detail/async_task.hpp"
#include "fletching/detail/checked.hpp"
#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

/// Batches of the source and demand of the consumer. It is used with the stream's lock.
class AsyncBacklog {
 public:
  // The source gives, until the end.

  void add(AsyncTaskNode* node) noexcept { ready_.push(node); }
  void end() noexcept { has_end_ = true; }
  [[nodiscard]] bool has_end() const noexcept { return has_end_; }

  // The consumer asks.

  void want(std::int64_t n) noexcept {
    demand_ = saturating_add(demand_, n);
    news_ = true;
  }
  /// How many batches more it wants than it was given; none after the end.
  [[nodiscard]] std::int64_t unmet() const noexcept {
    return !has_end_ && demand_ > ready_.size() ? demand_ - ready_.size() : 0;
  }
  /// Whether the source has still to hear of that.
  [[nodiscard]] bool has_news() const noexcept { return news_ && unmet() > 0; }
  void told() noexcept { news_ = false; }

  // The stream delivers.

  [[nodiscard]] bool task_is_due() const noexcept { return demand_ > 0 && ready_.size() > 0; }
  [[nodiscard]] bool end_is_due() const noexcept { return has_end_ && ready_.size() == 0; }
  AsyncTaskNode* pop() noexcept {
    --demand_;
    news_ = true;
    return ready_.pop();
  }
  AsyncTaskList pop_all() noexcept { return std::move(ready_); }

 private:
  AsyncTaskList ready_;
  std::int64_t demand_ = 0;
  bool has_end_ = false;
  bool news_ = false;
};

/// What on_error is going to tell.
struct AsyncFailure {
  Error error{EIO, {}};
  std::string metadata;  // encoded; empty: none

  [[nodiscard]] const char* text() const noexcept {
    return error.message().empty() ? "the producer has failed" : error.message().c_str();
  }
  [[nodiscard]] const char* block() const noexcept {
    return metadata.empty() ? nullptr : metadata.data();
  }
};

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_DETAIL_ASYNC_BACKLOG_HPP
