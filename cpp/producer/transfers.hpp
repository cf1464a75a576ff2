// The queue of a backend's blocking copies.
#ifndef FLETCHING_PRODUCER_TRANSFERS_HPP
#define FLETCHING_PRODUCER_TRANSFERS_HPP

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

namespace fletching::producer {

// One queue that all blocking copies of a backend go to, one after the other. The first copy makes
// it, and it is destroyed with the last buffer: without one nothing copies, and at the end of the
// process the vendor's library may be unloaded already. Nothing else is enqueued on it, so that no
// copy waits for work behind a gate. From any thread.
template <class Queue>
class Transfers {
 public:
  using Make = std::function<std::unique_ptr<Queue>()>;

  explicit Transfers(Make make) : make_(std::move(make)) {}

  // A buffer that can be copied from or to was allocated.
  void add_buffer() noexcept {
    const std::lock_guard lock(mutex_);
    ++buffers_;
  }

  // It was freed.
  void remove_buffer() noexcept {
    std::unique_ptr<Queue> last;
    const std::lock_guard lock(mutex_);
    if (--buffers_ == 0) last = std::move(queue_);
  }

  // Calls `copy(queue)`, which returns when the copy is done.
  template <class Copy>
  void run(Copy copy) {
    const std::lock_guard lock(mutex_);
    if (queue_ == nullptr) queue_ = make_();
    try {
      copy(*queue_);
    } catch (...) {
      queue_.reset();  // waits: the copy may still use the memory of the host
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
