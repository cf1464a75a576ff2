// SPDX-License-Identifier: Apache-2.0
//
// A counter of events on which threads can wait.
#ifndef FLETCHING_DETAIL_ASYNC_NEWS_HPP
#define FLETCHING_DETAIL_ASYNC_NEWS_HPP

#include <atomic>
#include <cstdint>

#include "fletching/version.h"

#if defined(__GLIBCXX__) && !defined(_GLIBCXX_HAVE_LINUX_FUTEX)  // MinGW
#define FLETCHING_DETAIL_OWN_WAIT
#include <condition_variable>
#include <mutex>
#endif

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

/// The additions are ordered: the second one sees everything written before the first.
class News {
 public:
  [[nodiscard]] std::uint32_t count() const noexcept {
    return count_.load(std::memory_order_acquire);
  }

#ifndef FLETCHING_DETAIL_OWN_WAIT
  /// Wakes one thread that waits.
  void add_for_one() noexcept {
    count_.fetch_add(1, std::memory_order_acq_rel);
    count_.notify_one();
  }

  /// Wakes all threads that wait.
  void add() noexcept {
    count_.fetch_add(1, std::memory_order_acq_rel);
    count_.notify_all();
  }

  /// Waits while count() is `seen`.
  void wait(std::uint32_t seen) const noexcept { count_.wait(seen, std::memory_order_acquire); }
#else
  // Without a futex, atomics of libstdc++ 12 notify without a lock, between the waiting thread's
  // last look and its sleep: the thread sleeps forever.
  void add_for_one() noexcept { add(); }

  void add() noexcept {
    const std::lock_guard lock(mutex_);
    count_.fetch_add(1, std::memory_order_acq_rel);
    changed_.notify_all();
  }

  void wait(std::uint32_t seen) noexcept {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this, seen] { return count() != seen; });
  }
#endif

 private:
  std::atomic<std::uint32_t> count_{0};
#ifdef FLETCHING_DETAIL_OWN_WAIT
  std::mutex mutex_;
  std::condition_variable changed_;
#endif
};

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#undef FLETCHING_DETAIL_OWN_WAIT

#endif  // FLETCHING_DETAIL_ASYNC_NEWS_HPP
