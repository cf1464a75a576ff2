// SPDX-License-Identifier: Apache-2.0
//
// Which calls of an async stream are running on the consumer's side.
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

/// Counts the calls that go out to the producer, from any thread, and knows whether a handler call
/// is running. Release has to wait for the ones, and must not end in the midst of the other.
///
/// A call costs one atomic addition: it is counted when it begins, with the lock that its caller
/// has in any case, and when it ends. The ends before release begins to wait are one sum, which it
/// reads and marks in one step; each later one finds the mark, and takes the lock to be counted. So
/// a thread that finds no call out, with the lock, is right, and an end without the mark touches
/// nothing of the stream afterwards.
class AsyncCalls {
 public:
  /// `mutex` is the stream's.
  explicit AsyncCalls(std::mutex& mutex) noexcept : mutex_(mutex) {}
  AsyncCalls(const AsyncCalls&) = delete;
  AsyncCalls& operator=(const AsyncCalls&) = delete;
  ~AsyncCalls() = default;

  /// What a call is made to, and how it is counted: calls to the producer itself in the upper half.
  enum class To : std::uint64_t { kTask = 2, kProducer = std::uint64_t{1} << 32 };

  /// A call of the other side that is running. It begins with the lock and ends without; release
  /// waits for those of other threads, and the stream lives until the end of all.
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

  /// Whether this thread is inside a call that is made for this stream.
  [[nodiscard]] bool inside() const noexcept { return here() != 0; }

  /// The tasks that this thread has taken from this stream, and may not have extracted yet.
  template <class Visit>
  void for_taken_here(const Visit& visit) const noexcept {
    for (const Out* out = Out::innermost_; out != nullptr; out = out->outer_) {
      if (&out->calls_ == this && out->taken_ != nullptr) visit(*out->taken_);
    }
  }

  // Release, with the lock.

  /// Whether a call is out on any thread.
  [[nodiscard]] bool any() const noexcept { return out() != 0; }

  /// Marks the ends. True when another thread's call to the producer is out.
  bool begin_wait() noexcept {
    ended_unmarked_ = ended_.fetch_or(kMark, std::memory_order_acq_rel);
    marked_ = true;
    return any_to_producer(here());
  }

  /// Until the last call of another thread to the producer has ended. Takes the lock itself.
  void wait_for_producer() noexcept {
    std::unique_lock lock(mutex_);
    ended_changed_.wait(lock, [this, mine = here()] { return !any_to_producer(mine); });
  }

  /// Until the last call has ended.
  void wait(std::unique_lock<std::mutex>& lock) noexcept {
    ended_changed_.wait(lock, [this] { return !any(); });
  }

  /// The stream is destroyed when the calls that are out have ended. The ends are marked.
  void keep(std::shared_ptr<void> stream) noexcept {
    if (any()) kept_ = std::move(stream);
  }

  // Handler calls, without the lock.

  /// A handler call begins. False when another one is running, which breaks the rules.
  bool enter() noexcept {
    int idle = kIdle;
    return handler_.compare_exchange_strong(idle, kCalling);
  }

  /// The handler call ends. True when release was called meanwhile, and left its last step to it.
  bool leave() noexcept { return handler_.exchange(kIdle) == kReleasedMeanwhile; }

  /// Release ends. True when a handler call is running, to which its last step is left.
  bool leave_to_handler() noexcept {
    int calling = kCalling;
    return handler_.compare_exchange_strong(calling, kReleasedMeanwhile);
  }

 private:
  /// The calls of this thread, as they are counted.
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

  /// After its last step, which is to unlock, release may free the stream.
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
  std::atomic<std::uint64_t> ended_{0};  // and kMark once release was called

  // With the lock.
  std::uint64_t begun_ = 0;
  std::uint64_t ended_unmarked_ = 0;
  std::uint64_t ended_marked_ = 0;
  bool marked_ = false;
  std::shared_ptr<void> kept_;
};

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_DETAIL_ASYNC_CALLS_HPP
