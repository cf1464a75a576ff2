// SPDX-License-Identifier: Apache-2.0
//
// A queue that does not allocate while it is empty.
#ifndef FLETCHING_DETAIL_ASYNC_FIFO_HPP
#define FLETCHING_DETAIL_ASYNC_FIFO_HPP

#include <cstddef>
#include <utility>
#include <vector>

#include "fletching/version.h"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

/// First in, first out. Unlike std::deque it does not allocate while it is empty, nor in steady
/// state while its length stays bounded.
template <class T>
class Fifo {
 public:
  Fifo() noexcept = default;
  Fifo(Fifo&& other) noexcept
      : items_(std::exchange(other.items_, {})), first_(std::exchange(other.first_, 0)) {}
  Fifo& operator=(Fifo&& other) noexcept {
    items_ = std::exchange(other.items_, {});
    first_ = std::exchange(other.first_, 0);
    return *this;
  }

  [[nodiscard]] bool empty() const noexcept { return items_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return items_.size() - first_; }

  /// Reserves room for `n` more items. Throws std::bad_alloc.
  void reserve(std::size_t n) { items_.reserve(items_.size() + n); }

  /// Throws std::bad_alloc and leaves the item unchanged.
  void push(T&& item) {
    if (items_.size() == items_.capacity() && first_ >= items_.size() / 2) {
      items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(first_));
      first_ = 0;
    }
    items_.push_back(std::move(item));
  }

  T pop() noexcept {
    T item = std::move(items_[first_++]);
    if (first_ == items_.size()) {
      items_.clear();
      first_ = 0;
    }
    return item;
  }

 private:
  std::vector<T> items_;
  std::size_t first_ = 0;
};

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_DETAIL_ASYNC_FIFO_HPP
