// SPDX-License-Identifier: Apache-2.0
//
// A thread that asks whether the work that reads an array has passed.
#ifndef FLETCHING_DETAIL_REAPER_HPP
#define FLETCHING_DETAIL_REAPER_HPP

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "fletching/detail/event_hook.hpp"
#include "fletching/detail/process.hpp"
#include "fletching/detail/releaser.hpp"
#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

/// One for the process. It is never destroyed and its thread is never joined: what the device has
/// not finished when the process exits is left alone. In a child of fork there is no such thread,
/// and none of the members may be used but process().
class Reaper {
 public:
  /// With its thread, which the first call starts. Throws when there cannot be one.
  FLETCHING_DETAIL_LOCAL static Reaper& instance() {
    static Reaper* const reaper = start();
    return *reaper;
  }

  /// nullptr before the first call of instance().
  static Reaper* if_started() noexcept { return started().load(); }

  /// That which the thread is of.
  [[nodiscard]] std::int64_t process() const noexcept { return process_; }

  /// Removes the one entry of the list.
  void add(DeferredReleases& entry) noexcept {
    ++pending_count_;
    {
      const std::scoped_lock lock(mutex_);
      incoming_.splice(incoming_.end(), entry);
    }
    wake_.notify_one();
  }

  /// How many entries have not passed, as far as is known.
  [[nodiscard]] std::int64_t pending() const noexcept { return pending_count_; }
  /// Of these, those for which the last answer was an error.
  [[nodiscard]] std::int64_t refused() const noexcept { return refused_count_; }
  /// The newest of these errors; "" when there was none. May throw.
  [[nodiscard]] std::string last_refusal() {
    const std::scoped_lock lock(mutex_);
    return last_refusal_;
  }

 private:
  using Clock = std::chrono::steady_clock;
  using Pause = std::chrono::microseconds;
  static constexpr Pause kShortest{20};
  static constexpr Pause kLongest{20000};
  static constexpr Pause kWhileBehind{500};  // the longest while a release waits for a thread
  static constexpr int kRest = 50;           // times the duration of a query of every entry
  static constexpr Pause kLongestRest{100000};
  static constexpr int kMostRefusals = 4;  // then every 16th time is often enough

  FLETCHING_DETAIL_LOCAL static std::atomic<Reaper*>& started() noexcept {
    static std::atomic<Reaper*> reaper{nullptr};
    return reaper;
  }

  static Reaper* start() {
    auto reaper = std::make_unique<Reaper>();
    std::atexit([] { Releaser::exiting().store(true); });
    std::thread([raw = reaper.get()] { raw->run(); }).detach();
    started().store(reaper.get());
    return reaper.release();
  }

  /// Asks about new entries at once, and about every entry when that is due: often while things
  /// happen, then ever more rarely, and never for more than a fiftieth of the time.
  void run() noexcept {
    bool is_behind = false;
    Pause rest{0};
    Pause pause = kShortest;
    for (Clock::time_point due = Clock::now(); !Releaser::exiting();) {
      const auto first_new = collect(due, is_behind);
      const auto begin = Clock::now();
      const bool is_due = begin >= due;
      const bool is_busy = first_new != pending_.end();
      const bool has_passed = hand_over_what_has_passed(is_due ? pending_.begin() : first_new);
      const auto end = Clock::now();
      if (is_due) {
        pause = (std::min)(pause * 2, kLongest);
        rest = (std::min)(std::chrono::duration_cast<Pause>(end - begin) * kRest, kLongestRest);
      }
      if (is_busy || has_passed) pause = kShortest;
      const auto next = end + (std::max)(pause, rest);
      due = is_due ? next : (std::min)(due, next);
      is_behind = releaser_.keep_up();
    }
  }

  /// Sleeps until there is something to do. Returns the first entry that is new.
  DeferredReleases::iterator collect(Clock::time_point due, bool is_behind) noexcept {
    std::unique_lock lock(mutex_);
    const auto has_more = [&] { return !incoming_.empty(); };
    if (is_behind) due = (std::min)(due, Clock::now() + kWhileBehind);
    if (pending_.empty() && !is_behind) {
      wake_.wait(lock, has_more);
    } else {
      wake_.wait_until(lock, due, has_more);
    }
    const auto first_new = incoming_.begin();
    const bool more = has_more();
    pending_.splice(pending_.end(), incoming_);
    return more ? first_new : pending_.end();
  }

  bool hand_over_what_has_passed(DeferredReleases::iterator first) noexcept {
    DeferredReleases passed;
    for (auto entry = first; entry != pending_.end();) {
      const auto next = std::next(entry);
      if (has_passed(*entry)) passed.splice(passed.end(), pending_, entry);
      entry = next;
    }
    if (passed.empty()) return false;
    pending_count_ -= static_cast<std::int64_t>(passed.size());
    releaser_.add(passed);
    return true;
  }

  /// An error from a query says nothing about the work: however often it is returned, the array
  /// stays as it is, and is asked for again, ever more rarely.
  bool has_passed(DeferredRelease& entry) noexcept {
    if (entry.skips > 0) {
      --entry.skips;
      return false;
    }
    const Result<bool> passed = guarded([&] { return ask(entry); });
    if (passed.ok()) {
      if (std::exchange(entry.refusals, 0) > 0) --refused_count_;
      return *passed;
    }
    if (entry.refusals == 0) ++refused_count_;
    entry.refusals = (std::min)(entry.refusals + 1, kMostRefusals);
    entry.skips = (1 << entry.refusals) - 1;
    (void)guarded([&]() -> Status {
      const std::scoped_lock lock(mutex_);
      last_refusal_ = passed.error().message();
      return {};
    });
    return false;
  }

  static Result<bool> ask(DeferredRelease& entry) {
    if (entry.recorded.event != nullptr) return entry.functions->has_passed(entry.recorded);
    auto recorded =
        entry.functions->record(entry.stream, entry.array->device_id, OnCapture::kRefuse);
    if (recorded.ok()) {
      entry.recorded = *recorded;
    } else if (recorded.error().code() != EBUSY) {
      return std::move(recorded).error();
    }
    return false;
  }

  const std::int64_t process_ = process_id();
  Releaser releaser_;
  std::atomic<std::int64_t> pending_count_{0};
  std::atomic<std::int64_t> refused_count_{0};
  std::mutex mutex_;
  std::condition_variable wake_;
  DeferredReleases incoming_;  // guarded by the mutex
  std::string last_refusal_;   // likewise
  DeferredReleases pending_;   // of the thread
};

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_DETAIL_REAPER_HPP
