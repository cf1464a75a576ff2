// The queue for a backend's blocking copies.
#ifndef FLETCHING_PRODUCER_TRANSFERS_HPP
#define FLETCHING_PRODUCER_TRANSFERS_HPP

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

namespace fletching::producer {

// A queue shared by all blocking copies of a backend, which run one at a time. The first copy
// creates it. It is destroyed with the last buffer: copies need buffers, and at process exit the
// vendor's library may already be unloaded. No other work is enqueued on it, so no copy waits for
// work behind a gate. Thread-safe.
template <class Queue>
class Transfers {
 public:
  using Make = std::function<std::unique_ptr<Queue>()>;

  explicit Transfers(Make make) : make_(std::move(make)) {}

  // Counts a new buffer that can be copied.
  void add_buffer() noexcept {
    const std::lock_guard lock(mutex_);
    ++buffers_;
  }

  // Counts a freed buffer.
  void remove_buffer() noexcept {
    std::unique_ptr<Queue> last;
    const std::lock_guard lock(mutex_);
    if (--buffers_ == 0) last = std::move(queue_);
  }

  // Calls `copy(queue)`, which must block until the copy is done.
  template <class Copy>
  void run(Copy copy) {
    const std::lock_guard lock(mutex_);
    if (queue_ == nullptr) queue_ = make_();
    try {
      copy(*queue_);
    } catch (...) {
      queue_.reset();  // waits: the copy may still use the host memory
      throw;
    }
  }

 private:
  const Make make_;
  std::mutex mutex_;
  std::unique_ptr<Queue> queue_;
  int64_t buffers_ = 0;
};

}  // namespace fletching::producer

#endif  // FLETCHING_PRODUCER_TRANSFERS_HPP
