// SPDX-License-Identifier: Apache-2.0
//
// Threads that call release callbacks, so that a slow one delays no other.
#ifndef FLETCHING_DETAIL_RELEASER_HPP
#define FLETCHING_DETAIL_RELEASER_HPP

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <mutex>
#include <thread>
#include <utility>

#include "fletching/detail/event_hook.hpp"
#include "fletching/owner.hpp"
#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

/// Counts the arrays that are kept for a deferred release, until the callback has returned.
class DeferredCount {
 public:
  DeferredCount() noexcept { ++total(); }
  DeferredCount(const DeferredCount&) = delete;
  DeferredCount& operator=(const DeferredCount&) = delete;
  ~DeferredCount() { --total(); }

  FLETCHING_DETAIL_LOCAL static std::atomic<std::int64_t>& total() noexcept {
    static std::atomic<std::int64_t> count{0};
    return count;
  }
};

/// An array that is released when its event has passed.
struct DeferredRelease {
  DeferredCount counted;  // first: destroyed after the array
  const RecordFunctions* functions = nullptr;
  RecordedEvent recorded;
  DeviceArray array;
  // Of one whose event is recorded when the capture of this stream has ended.
  void* stream = nullptr;
  // How often in a row the runtime has refused to say whether the event has passed, as far as it
  // matters, and how often not to ask from now on.
  int refusals = 0;
  int skips = 0;
};
using DeferredReleases = std::list<DeferredRelease>;

/// Destroys the events of the entries and releases the arrays.
///
/// One thread is enough while callbacks are quick. When entries wait and no thread has taken one
/// since the last call of keep_up, another one is started, up to kMostWorkers. Of those that have
/// nothing to do kMostIdle stay, asleep. Lives as long as the process; its threads are never
/// joined.
class Releaser {
 public:
  /// Whether the process exits: what has not begun is left alone.
  FLETCHING_DETAIL_LOCAL static std::atomic<bool>& exiting() noexcept {
    static std::atomic<bool> flag{false};
    return flag;
  }

  /// Removes every entry of the list.
  void add(DeferredReleases& entries) noexcept {
    {
      const std::scoped_lock lock(mutex_);
      ready_.splice(ready_.end(), entries);
    }
    changed_.notify_one();
  }

  /// To be called now and then, by one thread, until it returns false: then nothing waits.
  bool keep_up() noexcept {
    std::unique_lock lock(mutex_);
    if (ready_.empty()) return false;
    if (std::exchange(seen_, taken_) != taken_) return true;
    if (idle_ > 0) {
      changed_.notify_one();
    } else if (workers_ < kMostWorkers && !start() && workers_ == 0) {
      release_first(lock);  // there can be no thread at all
    }
    return true;
  }

 private:
  static constexpr int kMostIdle = 2;
  static constexpr int kMostWorkers = 64;  // callbacks that all wait for one lock need no more

  // With the mutex held.
  bool start() noexcept {
    return attempt(
        [&] {
          std::thread([this] { work(); }).detach();
          ++workers_;
          return true;
        },
        [] { return false; });
  }

  void work() noexcept {
    std::unique_lock lock(mutex_);
    while (true) {
      while (!ready_.empty()) {
        if (exiting()) return;
        release_first(lock);
      }
      if (idle_ >= kMostIdle) break;
      ++idle_;
      changed_.wait(lock, [&] { return !ready_.empty(); });
      --idle_;
    }
    --workers_;
  }

  void release_first(std::unique_lock<std::mutex>& lock) noexcept {
    DeferredReleases taken;
    taken.splice(taken.end(), ready_, ready_.begin());
    ++taken_;
    lock.unlock();
    // The callback may well free memory, which another thread's capture would refuse.
    taken.front().functions->run_relaxed(&release, &taken);
    lock.lock();
  }

  static void release(void* data) {
    auto& taken = *static_cast<DeferredReleases*>(data);
    destroy_event(*taken.front().functions, taken.front().recorded);
    taken.clear();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  DeferredReleases ready_;   // guarded by the mutex, as is what follows
  std::uint64_t taken_ = 0;  // in all
  std::uint64_t seen_ = 0;   // taken_ at the last keep_up
  int workers_ = 0;
  int idle_ = 0;
};

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_DETAIL_RELEASER_HPP
