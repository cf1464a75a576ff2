// SPDX-License-Identifier: Apache-2.0
//
// The yardstick of the async benchmark: a hand-written producer and consumer of the interface, as
// fast as one thread on each side allows. Batches and tasks are in fixed-size rings, demand is an
// atomic counter, an idle thread sleeps in std::atomic::wait, and a batch costs no allocation, no
// mutex and no condition variable.
//
// Supported: back-pressure, end of stream, on_error for an invalid request, cancel, a handler that
// rejects, a second extraction, and a release that waits for open tasks.
// Not supported: several threads on one side, out-of-order extraction, a window of kSlots or more,
// metadata, checks of the peer's arguments, a release while request or cancel runs.
#ifndef FLETCHING_BENCHMARKS_ASYNC_RING_HPP
#define FLETCHING_BENCHMARKS_ASYNC_RING_HPP

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "fletching/abi.h"

namespace ring {

inline constexpr std::uint32_t kSlots = 128;

/// A wrapping counter in a separate cache line: one thread increments it, another can wait on it.
class alignas(64) Count {
 public:
  [[nodiscard]] std::uint32_t get() const { return value_.load(std::memory_order_acquire); }
  void add(std::uint32_t n) {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_seq_cst);
    value_.notify_one();  // a system call only if a thread sleeps
  }
  void wait_while(std::uint32_t value) const { value_.wait(value, std::memory_order_seq_cst); }

 private:
  std::atomic<std::uint32_t> value_{0};
};

class Producer {
 public:
  explicit Producer(ArrowAsyncDeviceStreamHandler* handler) : handler_(handler) {
    raw_.device_type = ARROW_DEVICE_CPU;
    raw_.request = [](ArrowAsyncProducer* self, std::int64_t n) { of(self).request(n); };
    raw_.cancel = [](ArrowAsyncProducer* self) { of(self).stop(ECANCELED); };
    raw_.private_data = this;
    handler_->producer = &raw_;
  }

  void schema(ArrowSchema* schema) {
    if (handler_->on_schema(handler_, schema) != 0) code_ = ECONNREFUSED;
  }

  /// Returns the number of batches that may be delivered; 0 when the stream is over.
  [[nodiscard]] std::uint32_t demand() const { return over() ? 0 : asked_.get() - given_; }

  /// Like demand(), but sleeps while there is no demand.
  [[nodiscard]] std::uint32_t wait_for_demand() const {
    asked_.wait_while(given_);
    return demand();
  }

  /// Delivers a batch. Requires demand.
  void give(ArrowDeviceArray* array) {
    Slot& slot = slots_[given_++ % kSlots];
    slot.producer = this;
    slot.array = *array;
    array->array.release = nullptr;
    ArrowAsyncTask task{extract, &slot};
    if (handler_->on_next_task(handler_, &task, nullptr) == 0) return;
    code_ = ECONNREFUSED;
    if (task.private_data != nullptr) extract(&task, nullptr);
  }

  /// Reports the end or the error, and releases the handler.
  void finish() {
    if (!over()) handler_->on_next_task(handler_, nullptr, nullptr);
    if (code_ == EINVAL)
      handler_->on_error(handler_, EINVAL, "request: n is not positive", nullptr);
    for (std::uint32_t n = extracted_.get(); n != given_; n = extracted_.get()) {
      extracted_.wait_while(n);
    }
    handler_->release(handler_);
  }

 private:
  struct Slot {
    Producer* producer;
    ArrowDeviceArray array;
  };

  static Producer& of(ArrowAsyncProducer* self) {
    return *static_cast<Producer*>(self->private_data);
  }

  static int extract(ArrowAsyncTask* self, ArrowDeviceArray* out) {
    auto* slot = static_cast<Slot*>(self->private_data);
    if (slot == nullptr) return EINVAL;
    self->private_data = nullptr;
    if (out != nullptr) {
      *out = slot->array;
    } else {
      slot->array.array.release(&slot->array.array);
    }
    slot->producer->extracted_.add(1);
    return 0;
  }

  void request(std::int64_t n) {
    if (n <= 0) return stop(EINVAL);
    asked_.add(static_cast<std::uint32_t>(n));
  }

  void stop(int code) {
    code_ = code;
    asked_.add(1);  // wakes the producer's thread, which then sees the end
  }
  [[nodiscard]] bool over() const { return code_.load(std::memory_order_acquire) != 0; }

  ArrowAsyncProducer raw_{};
  ArrowAsyncDeviceStreamHandler* handler_;
  std::uint32_t given_ = 0;
  std::array<Slot, kSlots> slots_;
  std::atomic<int> code_{0};
  Count asked_;      // incremented by the consumer's thread
  Count extracted_;  // incremented by the consumer's thread
};

class Consumer {
 public:
  /// `read_inside`: reads and releases within the handler call instead of in `next`.
  Consumer(std::int64_t window, bool read_inside) : window_(window), read_inside_(read_inside) {
    handler_.on_schema = [](ArrowAsyncDeviceStreamHandler* self, ArrowSchema* schema) {
      schema->release(schema);
      self->producer->request(self->producer, of(self).window_);
      return 0;
    };
    handler_.on_next_task = [](ArrowAsyncDeviceStreamHandler* self, ArrowAsyncTask* task,
                               const char*) { return of(self).receive(task); };
    handler_.on_error = [](ArrowAsyncDeviceStreamHandler* self, int code, const char*,
                           const char*) { of(self).finish(code); };
    handler_.release = [](ArrowAsyncDeviceStreamHandler*) {};
    handler_.private_data = this;
  }

  ArrowAsyncDeviceStreamHandler* handler() { return &handler_; }

  /// Waits for the next batch. Returns false at the end.
  bool next(ArrowDeviceArray* out) {
    came_.wait_while(taken_);
    ArrowAsyncTask task = tasks_[taken_++ % kSlots];
    if (task.extract_data == nullptr) return false;  // the end
    *out = {};
    const int code = task.extract_data(&task, out);
    if (++read_ >= window_ / 2) {
      handler_.producer->request(handler_.producer, read_);
      read_ = 0;
    }
    return code == 0;
  }

  [[nodiscard]] int code() const { return code_; }

 private:
  static Consumer& of(ArrowAsyncDeviceStreamHandler* self) {
    return *static_cast<Consumer*>(self->private_data);
  }

  int receive(ArrowAsyncTask* task) {
    if (task == nullptr) return finish(0);
    tasks_[came_.get() % kSlots] = *task;
    came_.add(1);
    ArrowDeviceArray array;
    if (read_inside_ && next(&array)) array.array.release(&array.array);
    return 0;
  }

  int finish(int code) {
    code_ = code;
    tasks_[came_.get() % kSlots] = {};
    came_.add(1);
    return 0;
  }

  ArrowAsyncDeviceStreamHandler handler_{};
  const std::int64_t window_;
  const bool read_inside_;
  std::int64_t read_ = 0;
  std::uint32_t taken_ = 0;
  std::array<ArrowAsyncTask, kSlots> tasks_;
  int code_ = 0;
  Count came_;  // incremented by the producer's thread
};

}  // namespace ring

#endif  // FLETCHING_BENCHMARKS_ASYNC_RING_HPP
