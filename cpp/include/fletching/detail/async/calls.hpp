// SPDX-License-Identifier: Apache-2.0
//
// Calls of an async stream that are running on the consumer's side.
#ifndef FLETCHING_DETAIL_ASYNC_CALLS_HPP
#define FLETCHING_DETAIL_ASYNC_CALLS_HPP

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

struct TakenTask;

/// Counts the calls to the producer, from any thread, and tracks whether a handler call is running.
/// Release must wait for the calls to the producer and must not finish during the handler call.
///
/// A call costs one atomic addition when it ends. It is counted at its beginning under the lock,
/// which its caller holds anyway. Calls that end before release begins to wait are counted in one
/// sum, which release reads and marks in one step. Each later call finds the mark and takes the
/// lock to be counted. So a thread that holds the lock and finds no running call is right, and a
/// call that ends without finding the mark does not touch the stream afterwards.
class AsyncCalls {
 public:
  /// `mutex` is the stream's mutex.
  explicit AsyncCalls(std::mutex& mutex) noexcept : mutex_(mutex) {}
  AsyncCalls(const AsyncCalls&) = delete;
  AsyncCalls& operator=(const AsyncCalls&) = delete;
  ~AsyncCalls() = default;

  /// Target of a call and its weight in the counts: calls to the producer itself use the upper
  /// half.
  enum class To : std::uint64_t { kTask = 2, kProducer = std::uint64_t{1} << 32 };

  /// A running call to the other side. It begins with the lock and ends without it. Release waits
  /// for the calls of other threads, and the stream outlives all calls.
  class Out {
   public:
    explicit Out(AsyncCalls& calls, To to = To::kTask, TakenTask* taken = nullptr) noexcept
        : calls_(calls), to_(static_cast<std::uint64_t>(to)), taken_(taken) {
      innermost_ = this;
      calls_.begun_ += to_;
    }
    ~Out() {
      innermost_ = outer_;
      const std::uint64_t before = calls_.ended_.fetch_add(to_, std::memory_order_acq_rel);
      if ((before & kMark) != 0) calls_.end_marked(to_);
    }
    Out(const Out&) = delete;
    Out& operator=(const Out&) = delete;

   private:
    friend AsyncCalls;
    AsyncCalls& calls_;
    const Out* const outer_ = innermost_;
    const std::uint64_t to_;
    TakenTask* const taken_;
    FLETCHING_DETAIL_LOCAL static inline thread_local const Out* innermost_ = nullptr;
  };

  /// Whether this thread is inside a call made for this stream.
  [[nodiscard]] bool inside() const noexcept { return here() != 0; }

  /// Visits the tasks that this thread has taken from this stream and may not have extracted yet.
  template <class Visit>
  void for_taken_here(const Visit& visit) const noexcept {
    for (const Out* out = Out::innermost_; out != nullptr; out = out->outer_) {
      if (&out->calls_ == this && out->taken_ != nullptr) visit(*out->taken_);
    }
  }

  // For release, with the lock.

  /// Whether a call is running on any thread.
  [[nodiscard]] bool any() const noexcept { return out() != 0; }

  /// Sets the mark. Returns true if another thread is calling the producer.
  bool begin_wait() noexcept {
    ended_unmarked_ = ended_.fetch_or(kMark, std::memory_order_acq_rel);
    marked_ = true;
    return any_to_producer(here());
  }

  /// Waits until no other thread is calling the producer. Takes the lock itself.
  void wait_for_producer() noexcept {
    std::unique_lock lock(mutex_);
    ended_changed_.wait(lock, [this, mine = here()] { return !any_to_producer(mine); });
  }

  /// Waits until the last call has ended.
  void wait(std::unique_lock<std::mutex>& lock) noexcept {
    ended_changed_.wait(lock, [this] { return !any(); });
  }

  /// Keeps the stream until the running calls have ended. Requires the mark.
  void keep(std::shared_ptr<void> stream) noexcept {
    if (any()) kept_ = std::move(stream);
  }

  // For handler calls, without the lock.

  /// Begins a handler call. Returns false if another one is running, which violates the protocol.
  bool enter() noexcept {
    int idle = kIdle;
    return handler_.compare_exchange_strong(idle, kCalling);
  }

  /// Ends the handler call. Returns true if release ran meanwhile and left its last step to it.
  bool leave() noexcept { return handler_.exchange(kIdle) == kReleasedMeanwhile; }

  /// Ends release. Returns true if a handler call is running, which then performs the last step.
  bool leave_to_handler() noexcept {
    int calling = kCalling;
    return handler_.compare_exchange_strong(calling, kReleasedMeanwhile);
  }

 private:
  /// Returns the count of this thread's running calls.
  [[nodiscard]] std::uint64_t here() const noexcept {
    std::uint64_t sum = 0;
    for (const Out* out = Out::innermost_; out != nullptr; out = out->outer_) {
      if (&out->calls_ == this) sum += out->to_;
    }
    return sum;
  }

  [[nodiscard]] std::uint64_t out() const noexcept {
    const std::uint64_t ended =
        marked_ ? ended_unmarked_ + ended_marked_ : ended_.load(std::memory_order_acquire);
    return begun_ - ended;
  }

  [[nodiscard]] bool any_to_producer(std::uint64_t mine) const noexcept {
    return out() - mine >= static_cast<std::uint64_t>(To::kProducer);
  }

  /// The unlock is the last step: release may free the stream after it.
  void end_marked(std::uint64_t to) noexcept {
    std::shared_ptr<void> last;
    const std::lock_guard lock(mutex_);
    ended_marked_ += to;
    if (!any()) last = std::move(kept_);
    ended_changed_.notify_all();
  }

  static constexpr int kIdle = 0;
  static constexpr int kCalling = 1;
  static constexpr int kReleasedMeanwhile = 2;
  static constexpr std::uint64_t kMark = 1;  // below all counts, which may wrap

  std::mutex& mutex_;
  std::condition_variable ended_changed_;
  std::atomic<int> handler_{kIdle};
  std::atomic<std::uint64_t> ended_{0};  // includes kMark once release was called

  // Protected by the lock.
  std::uint64_t begun_ = 0;
  std::uint64_t ended_unmarked_ = 0;
  std::uint64_t ended_marked_ = 0;
  bool marked_ = false;
  std::shared_ptr<void> kept_;
};

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_DETAIL_ASYNC_CALLS_HPP
