// SPDX-License-Identifier: Apache-2.0
//
// Ends the program if a check hangs, because a thread inside a driver cannot be stopped. This is
// the only use of a clock: it decides that a check hangs, never its result.
#ifndef FLETCHING_TESTS_GPU_WATCHDOG_HPP
#define FLETCHING_TESTS_GPU_WATCHDOG_HPP

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace fletching::gpu {

/// The exit code of a program in which a check hung.
inline constexpr int kHung = 3;

/// FLETCHING_GPU_CHECK_SECONDS, or 20 by default.
inline std::chrono::seconds check_limit() {
  const char* text = std::getenv("FLETCHING_GPU_CHECK_SECONDS");
  const long seconds = text == nullptr ? 0 : std::atol(text);
  return std::chrono::seconds(seconds > 0 ? seconds : 20);
}

/// The current case of a check, for the row of a check that hangs. The string must outlive the
/// check.
inline std::atomic<const char*> g_subject{""};

/// Watches one check during its lifetime. After the limit it prints the check's row and ends the
/// program without cleanup.
class Watchdog {
 public:
  explicit Watchdog(std::string check) : check_(std::move(check)), thread_([this] { watch(); }) {
    g_subject = "";
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }

 private:
  void watch() {
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, check_limit(), [this] { return done_; })) return;
    const char* subject = g_subject;
    std::printf("check\t%s\tFAILED\t0\thangs: %s%sdid not end in %lld s\n", check_.c_str(), subject,
                *subject == '\0' ? "" : ": ", static_cast<long long>(check_limit().count()));
    std::fflush(stdout);
    _exit(kHung);
  }

  const std::string check_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::thread thread_;  // last, because it uses the other members
};

}  // namespace fletching::gpu

#endif  // FLETCHING_TESTS_GPU_WATCHDOG_HPP
