// SPDX-License-Identifier: Apache-2.0
//
// A thread that releases arrays after the work that reads them.
#ifndef FLETCHING_DETAIL_REAPER_HPP
#define FLETCHING_DETAIL_REAPER_HPP

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <iterator>
#include <list>
#include <mutex>
#include <thread>
#include <utility>

#include "fletching/detail/event_hook.hpp"
#include "fletching/owner.hpp"
#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

/// One for the process. It is never destroyed and its thread is never joined: what the device has
/// not finished when the process exits is left alone.
class Reaper {
 public:
  struct Entry {
    const EventFunctions* functions = nullptr;
    RecordedEvent recorded;
    DeviceArray array;
  };
  using Entries = std::list<Entry>;

  /// With its thread, which the first call starts. Throws when there cannot be one.
  static Reaper& instance() {
    static Reaper* const reaper = start();
    return *reaper;
  }

  /// Takes the one entry of the list.
  void add(Entries& entry) noexcept {
    {
      const std::scoped_lock lock(mutex_);
      incoming_.splice(incoming_.end(), entry);
    }
    wake_.notify_one();
  }

 private:
  using Pause = std::chrono::microseconds;
  static constexpr Pause kShortest{20};
  static constexpr Pause kLongest{1000};

  static Reaper* start() {
    auto reaper = std::make_unique<Reaper>();
    std::atexit([] { exiting().store(true); });
    std::thread([raw = reaper.get()] { raw->run(); }).detach();
    return reaper.release();
  }

  static std::atomic<bool>& exiting() noexcept {
    static std::atomic<bool> flag{false};
    return flag;
  }

  void run() noexcept {
    for (Pause pause = kShortest; !exiting();) {
      if (collect(pause)) pause = kShortest;
      pause = release_what_may_be() ? kShortest : (std::min)(pause * 2, kLongest);
    }
  }

  /// Sleeps: until there is something to do, or for the pause when something is pending.
  bool collect(Pause pause) noexcept {
    std::unique_lock lock(mutex_);
    const auto has_more = [&] { return !incoming_.empty(); };
    if (pending_.empty()) {
      wake_.wait(lock, has_more);
    } else {
      wake_.wait_for(lock, pause, has_more);
    }
    const bool more = has_more();
    pending_.splice(pending_.end(), incoming_);
    return more;
  }

  bool release_what_may_be() noexcept {
    bool released = false;
    for (auto entry = pending_.begin(); entry != pending_.end();) {
      if (exiting()) return false;
      const auto next = std::next(entry);
      if (has_passed(*entry)) {
        (void)guarded([&] { return entry->functions->destroy(entry->recorded); });
        pending_.erase(entry);
        released = true;
      }
      entry = next;
    }
    return released;
  }

  /// Whether the device is done with the array: its work has happened or has failed. One failure to
  /// ask is no answer, and is asked again; a device that is gone gives none other.
  static bool has_passed(Entry& entry) noexcept {
    for (int attempt = 0; attempt < 2; ++attempt) {
      const Result<bool> done =
          guarded([&] { return entry.functions->has_happened(entry.recorded); });
      if (done.ok()) return *done;
      if (done.error().code() == ENOMEM) return false;
    }
    return !exiting();
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  Entries incoming_;  // guarded by the mutex
  Entries pending_;   // of the thread
};

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_DETAIL_REAPER_HPP
