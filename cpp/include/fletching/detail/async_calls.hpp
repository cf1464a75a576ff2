// SPDX-License-Identifier: Apache-2.0
//
// Which calls of an async stream are running on the consumer's side.
#ifndef FLETCHING_DETAIL_ASYNC_CALLS_HPP
#define FLETCHING_DETAIL_ASYNC_CALLS_HPP

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

struct TakenTask;

/// Counts the calls that go out to the producer, from any thread, and knows whether a handler call
/// is running. Release has to wait for the ones, and must not end in the midst of the other.
class AsyncCalls {
 public:
  /// `mutex` is the stream's.
  explicit AsyncCalls(std::mutex& mutex) noexcept : mutex_(mutex) {}
  AsyncCalls(const AsyncCalls&) = delete;
  AsyncCalls& operator=(const AsyncCalls&) = delete;
  ~AsyncCalls() = default;

  /// What a call is made to, and how it is counted: calls to the producer itself in the upper half.
  enum class To : std::int64_t { kTask = 1, kProducer = std::int64_t{1} << 31 };

  /// A call of the other side that is running. Made with the lock, unless a handler call is
  /// running; release waits for those of other threads.
  class Out {
   public:
    explicit Out(AsyncCalls& calls, To to = To::kTask, TakenTask* taken = nullptr) noexcept
        : calls_(calls), to_(to), taken_(taken) {
      innermost_ = this;
      calls_.running_.fetch_add(static_cast<std::int64_t>(to_), std::memory_order_relaxed);
    }
    ~Out() {
      innermost_ = outer_;
      const std::int64_t before =
          calls_.running_.fetch_sub(static_cast<std::int64_t>(to_), std::memory_order_acq_rel);
      if ((before & kWaited) != 0) calls_.wake();
    }
    Out(const Out&) = delete;
    Out& operator=(const Out&) = delete;

   private:
    friend AsyncCalls;
    AsyncCalls& calls_;
    const Out* const outer_ = innermost_;
    const To to_;
    TakenTask* const taken_;
    FLETCHING_DETAIL_LOCAL static inline thread_local const Out* innermost_ = nullptr;
  };

  /// Whether this thread is inside a call that is made for this stream.
  [[nodiscard]] bool inside() const noexcept { return here() != 0; }

  /// The tasks that this thread has taken from this stream, and may not have extracted yet.
  template <class Visit>
  void for_taken_here(const Visit& visit) const noexcept {
    for (const Out* out = Out::innermost_; out != nullptr; out = out->outer_) {
      if (&out->calls_ == this && out->taken_ != nullptr) visit(*out->taken_);
    }
  }

  /// Whether a call is out on any thread.
  [[nodiscard]] bool any() const noexcept {
    return (running_.load(std::memory_order_acquire) & ~kWaited) != 0;
  }

  /// Release is about to wait: from now on a call that returns wakes it. True when another thread's
  /// call to the producer is out.
  bool begin_wait() noexcept { return any_to_producer(running_.fetch_or(kWaited) - here()); }

  /// Without the lock: until the last call of another thread to the producer has returned.
  void wait_for_producer() noexcept {
    std::unique_lock lock(mutex_);
    returned_.wait(lock, [this, mine = here()] {
      return !any_to_producer(running_.load(std::memory_order_acquire) - mine);
    });
  }

  /// With the lock: until the last call has returned.
  void wait(std::unique_lock<std::mutex>& lock) noexcept {
    returned_.wait(lock, [this] { return !any(); });
  }

  /// A handler call begins. False when another one is running, which breaks the rules.
  bool enter() noexcept {
    int idle = kIdle;
    return handler_.compare_exchange_strong(idle, kCalling);
  }

  /// The handler call ends. True when release has come meanwhile, and left its last step to it.
  bool leave() noexcept { return handler_.exchange(kIdle) == kReleasedMeanwhile; }

  /// Release ends. True when a handler call is running, to which its last step is left.
  bool leave_to_handler() noexcept {
    int calling = kCalling;
    return handler_.compare_exchange_strong(calling, kReleasedMeanwhile);
  }

 private:
  /// The calls of this thread, as running_ counts them.
  [[nodiscard]] std::int64_t here() const noexcept {
    std::int64_t sum = 0;
    for (const Out* out = Out::innermost_; out != nullptr; out = out->outer_) {
      if (&out->calls_ == this) sum += static_cast<std::int64_t>(out->to_);
    }
    return sum;
  }

  static constexpr bool any_to_producer(std::int64_t running) noexcept {
    return (running & ~kWaited) >= static_cast<std::int64_t>(To::kProducer);
  }

  void wake() noexcept {
    const std::lock_guard lock(mutex_);
    returned_.notify_all();
  }

  static constexpr int kIdle = 0;
  static constexpr int kCalling = 1;
  static constexpr int kReleasedMeanwhile = 2;
  static constexpr std::int64_t kWaited = std::int64_t{1} << 62;

  std::mutex& mutex_;
  std::condition_variable returned_;
  std::atomic<int> handler_{kIdle};
  std::atomic<std::int64_t> running_{0};  // calls that are out; kWaited once release waits
};

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_DETAIL_ASYNC_CALLS_HPP
