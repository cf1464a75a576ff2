// SPDX-License-Identifier: Apache-2.0
//
// The lock of a stream, which is held while the producer is called for a batch.
#ifndef FLETCHING_PYTHON_STREAM_LOCK_HPP
#define FLETCHING_PYTHON_STREAM_LOCK_HPP

#include <atomic>
#include <thread>

#include "python.hpp"

namespace fletching::python {

/// A mutex that knows its holder. A child of fork lacks the thread that held a mutex in the parent,
/// and would wait for it forever.
class StreamLock {
 public:
  enum State {
    kLocked,  ///< by this call
    kWithin,  ///< by an earlier call of this thread
    kLost,    ///< by a thread of the parent process
  };

  State lock() noexcept {
    if (thread_ == std::this_thread::get_id()) return kWithin;
    const int own = fork_count() + 1;
    for (int holder = 0; !holder_.compare_exchange_weak(holder, own); holder = 0) {
      if (holder == own) holder_.wait(own);
      if (holder != own && holder != 0) return kLost;
    }
    thread_ = std::this_thread::get_id();
    return kLocked;
  }

  void unlock() noexcept {
    thread_ = std::thread::id();
    holder_ = 0;
    holder_.notify_one();
  }

 private:
  std::atomic<int> holder_{0};  // 1 + fork_count() of the holder's process; 0 if unlocked
  std::atomic<std::thread::id> thread_{};
};

}  // namespace fletching::python

#endif  // FLETCHING_PYTHON_STREAM_LOCK_HPP
