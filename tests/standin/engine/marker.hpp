// SPDX-License-Identifier: Apache-2.0
// A position in a stream that others wait for. Recording an event again gives it a new marker;
// waiters for the old marker keep waiting for it.
#ifndef FLETCHING_STANDIN_MARKER_HPP
#define FLETCHING_STANDIN_MARKER_HPP

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <stop_token>

namespace fletching::standin {

class Marker {
 public:
  using Clock = std::chrono::steady_clock;

  void reach() {
    const std::lock_guard lock(mutex_);
    reached_ = true;
    at_ = Clock::now();
    changed_.notify_all();
  }

  bool reached() {
    const std::lock_guard lock(mutex_);
    return reached_;
  }

  // The time at which the stream reached the marker. Meaningful only afterwards.
  Clock::time_point at() {
    const std::lock_guard lock(mutex_);
    return at_;
  }

  void wait() { wait(std::stop_token{}); }

  // Returns early when the waiter's context is destroyed.
  void wait(const std::stop_token& gone) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, gone, [this] { return reached_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool reached_ = false;
  Clock::time_point at_;
};

using MarkerPtr = std::shared_ptr<Marker>;

}  // namespace fletching::standin

#endif  // FLETCHING_STANDIN_MARKER_HPP
