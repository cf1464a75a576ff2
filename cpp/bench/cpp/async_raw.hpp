// SPDX-License-Identifier: Apache-2.0
//
// The yardstick of the async benchmark: producer and consumer of the interface by hand, as one
// would write them for one program, with a mutex and a condition variable on each side.
// Back-pressure, end, cancel and a release that waits for open tasks are there; checks of the other
// side are not.
#ifndef FLETCHING_BENCHMARKS_ASYNC_RAW_HPP
#define FLETCHING_BENCHMARKS_ASYNC_RAW_HPP

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <mutex>

#include "fletching/abi.h"

namespace raw {

class Producer {
 public:
  explicit Producer(ArrowAsyncDeviceStreamHandler* handler) : handler_(handler) {
    raw_.device_type = ARROW_DEVICE_CPU;
    raw_.request = [](ArrowAsyncProducer* self, std::int64_t n) { of(self).request(n); };
    raw_.cancel = [](ArrowAsyncProducer* self) { of(self).cancel(); };
    raw_.private_data = this;
    handler_->producer = &raw_;
  }

  void schema(ArrowSchema* schema) { handler_->on_schema(handler_, schema); }

  void push(ArrowDeviceArray* array) {
    auto* task = new Task{this, *array};
    array->array.release = nullptr;
    const std::lock_guard lock(mutex_);
    ready_.push_back(task);
    changed_.notify_one();
  }

  void end() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_one();
  }

  std::int64_t wait_for_demand() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return over() || unmet() > 0; });
    return over() ? 0 : unmet();
  }

  std::int64_t demand() {
    const std::lock_guard lock(mutex_);
    return over() ? 0 : unmet();
  }

  /// Delivers what is due. True once the stream is released.
  bool drain() {
    std::unique_lock lock(mutex_);
    while (!over() && demand_ > 0 && !ready_.empty()) {
      Task* task = ready_.front();
      ready_.pop_front();
      --demand_;
      open_.fetch_add(1, std::memory_order_relaxed);
      lock.unlock();
      ArrowAsyncTask c_task{extract, task};
      const int result = handler_->on_next_task(handler_, &c_task, nullptr);
      lock.lock();
      if (result != 0) refused_ = true;
    }
    if (!over() && !(ended_ && ready_.empty())) return false;
    const bool tell = !over();
    lock.unlock();
    if (tell) handler_->on_next_task(handler_, nullptr, nullptr);
    lock.lock();
    changed_.wait(lock, [this] { return open_.load() == 0; });
    lock.unlock();
    handler_->release(handler_);
    return true;
  }

 private:
  struct Task {
    Producer* producer;
    ArrowDeviceArray array;
  };

  static Producer& of(ArrowAsyncProducer* self) {
    return *static_cast<Producer*>(self->private_data);
  }

  static int extract(ArrowAsyncTask* self, ArrowDeviceArray* out) {
    auto* task = static_cast<Task*>(self->private_data);
    if (task == nullptr) return EINVAL;
    self->private_data = nullptr;
    if (out != nullptr) {
      *out = task->array;
    } else {
      task->array.array.release(&task->array.array);
    }
    Producer* producer = task->producer;
    delete task;
    if (producer->open_.fetch_sub(1) == 1) {
      const std::lock_guard lock(producer->mutex_);
      producer->changed_.notify_one();
    }
    return 0;
  }

  void request(std::int64_t n) {
    const std::lock_guard lock(mutex_);
    demand_ += n;
    changed_.notify_one();
  }

  void cancel() {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
    changed_.notify_one();
  }

  [[nodiscard]] bool over() const { return cancelled_ || refused_; }
  [[nodiscard]] std::int64_t unmet() const {
    return demand_ - static_cast<std::int64_t>(ready_.size());
  }

  ArrowAsyncProducer raw_{};
  ArrowAsyncDeviceStreamHandler* handler_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task*> ready_;
  std::int64_t demand_ = 0;
  std::atomic<std::int64_t> open_{0};
  bool ended_ = false;
  bool cancelled_ = false;
  bool refused_ = false;
};

class Consumer {
 public:
  /// Reads and releases within the handler call, or leaves it to `next`.
  explicit Consumer(std::int64_t window, bool read_inside)
      : window_(window), read_inside_(read_inside) {
    handler_.on_schema = [](ArrowAsyncDeviceStreamHandler* self, ArrowSchema* schema) {
      schema->release(schema);
      self->producer->request(self->producer, of(self).window_);
      return 0;
    };
    handler_.on_next_task = [](ArrowAsyncDeviceStreamHandler* self, ArrowAsyncTask* task,
                               const char*) { return of(self).came(task); };
    handler_.on_error = [](ArrowAsyncDeviceStreamHandler* self, int code, const char*,
                           const char*) { of(self).finish(code); };
    handler_.release = [](ArrowAsyncDeviceStreamHandler*) {};
    handler_.private_data = this;
  }

  ArrowAsyncDeviceStreamHandler* handler() { return &handler_; }

  /// The next batch; false at the end.
  bool next(ArrowDeviceArray* out) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return over_ || !tasks_.empty(); });
    return pop(lock, out);
  }

 private:
  bool try_next(ArrowDeviceArray* out) {
    std::unique_lock lock(mutex_);
    return pop(lock, out);
  }

  static Consumer& of(ArrowAsyncDeviceStreamHandler* self) {
    return *static_cast<Consumer*>(self->private_data);
  }

  bool pop(std::unique_lock<std::mutex>& lock, ArrowDeviceArray* out) {
    if (tasks_.empty()) return false;
    ArrowAsyncTask task = tasks_.front();
    tasks_.pop_front();
    lock.unlock();
    std::memset(out, 0, sizeof *out);
    const int code = task.extract_data(&task, out);
    if (++read_ >= window_ / 2) {
      handler_.producer->request(handler_.producer, read_);
      read_ = 0;
    }
    return code == 0;
  }

  int came(ArrowAsyncTask* task) {
    if (task == nullptr) return finish(0);
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(*task);
      changed_.notify_one();
    }
    ArrowDeviceArray array;
    if (read_inside_ && try_next(&array)) array.array.release(&array.array);
    return 0;
  }

  int finish(int code) {
    const std::lock_guard lock(mutex_);
    over_ = true;
    code_ = code;
    changed_.notify_one();
    return 0;
  }

  ArrowAsyncDeviceStreamHandler handler_{};
  std::int64_t window_;
  bool read_inside_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<ArrowAsyncTask> tasks_;
  std::int64_t read_ = 0;
  bool over_ = false;
  int code_ = 0;
};

}  // namespace raw

#endif  // FLETCHING_BENCHMARKS_ASYNC_RAW_HPP
