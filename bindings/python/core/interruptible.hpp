// SPDX-License-Identifier: Apache-2.0
//
// Waits that Ctrl-C can interrupt.
#ifndef FLETCHING_PYTHON_INTERRUPTIBLE_HPP
#define FLETCHING_PYTHON_INTERRUPTIBLE_HPP

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "python.hpp"

namespace fletching::python {

/// The result of a wait that runs on another thread.
class WaitResult {
 public:
  void set(Status status) {
    const std::lock_guard lock(mutex_);
    status_ = std::move(status);
    is_set_.notify_all();
  }
  /// Returns nullopt if the wait is still running.
  std::optional<Status> get_soon() {
    constexpr std::chrono::milliseconds kBetweenSignals{20};
    std::unique_lock lock(mutex_);
    is_set_.wait_for(lock, kBetweenSignals, [&] { return status_.has_value(); });
    return status_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable is_set_;
  std::optional<Status> status_;
};

/// Calls `wait(owned)` without the GIL and raises its Error. On the main thread, which runs
/// Python's signal handlers, the wait runs on another thread; if a handler raises, its exception is
/// raised here, while the wait continues there and keeps `owned`.
template <class Owned, class Wait>
void wait_interruptibly(Owned owned, Wait wait) {
  if (!is_main_thread()) return unwrap(without_gil([&] { return wait(owned); }));
  auto result = std::make_shared<WaitResult>();
  try {
    std::thread([result, wait, kept = std::optional<Owned>(std::move(owned))]() mutable {
      Status status = wait(*kept);
      kept.reset();
      result->set(std::move(status));
    }).detach();
  } catch (const std::system_error&) {
    raise(Error(EAGAIN, "synchronize: no thread for the wait: expected one"));
  }
  std::optional<Status> status;
  while (!(status = without_gil([&] { return result->get_soon(); }))) {
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
  unwrap(*status);
}

}  // namespace fletching::python

#endif  // FLETCHING_PYTHON_INTERRUPTIBLE_HPP
