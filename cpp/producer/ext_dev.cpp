// A fake device: one thread per queue, host memory, and the event of ext_dev.h.
#include "ext_dev.h"

#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "backend.hpp"
#include "message.hpp"

namespace fletching::producer {
namespace {

// A flag that is set once and can be waited on.
class Signal {
 public:
  void set() {
    const std::lock_guard lock(mutex_);
    set_ = true;
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return set_; });
  }
  bool is_set() {
    const std::lock_guard lock(mutex_);
    return set_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool set_ = false;
};

// Runs enqueued tasks in order on a separate thread.
class Worker {
 public:
  Worker() : thread_([this] { run(); }) {}
  ~Worker() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
      changed_.notify_all();
    }
    thread_.join();
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void enqueue(std::function<void()> task) {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    changed_.notify_all();
  }
  bool is_idle() {
    const std::lock_guard lock(mutex_);
    return tasks_.empty();
  }
  void finish() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return tasks_.empty(); });
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return ending_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      const std::function<void()>& task = tasks_.front();  // stays queued while it runs: is_idle
      lock.unlock();
      task();
      lock.lock();
      tasks_.pop_front();
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool ending_ = false;
  std::thread thread_;  // last: the thread uses the other members
};

class ExtDevEvent : public Event, public FletchingExtDevEvent {
 public:
  explicit ExtDevEvent(std::shared_ptr<Signal> signal)
      : FletchingExtDevEvent{query, synchronize, wait_on}, signal_(std::move(signal)) {}

  void* address() noexcept override { return static_cast<FletchingExtDevEvent*>(this); }
  void wait() override { signal_->wait(); }

 private:
  static Signal& signal_of(const FletchingExtDevEvent* self) {
    return *static_cast<const ExtDevEvent*>(self)->signal_;
  }
  static int query(const FletchingExtDevEvent* self) noexcept { return signal_of(self).is_set(); }
  static void synchronize(const FletchingExtDevEvent* self) noexcept { signal_of(self).wait(); }
  static int wait_on(const FletchingExtDevEvent* self, FletchingExtDevQueue* queue) noexcept;

  std::shared_ptr<Signal> signal_;
};

class ExtDevGate : public Gate {
 public:
  explicit ExtDevGate(std::shared_ptr<Signal> signal) : signal_(std::move(signal)) {}
  ~ExtDevGate() override { signal_->set(); }
  ExtDevGate(const ExtDevGate&) = delete;
  ExtDevGate& operator=(const ExtDevGate&) = delete;

  void open() override { signal_->set(); }

 private:
  std::shared_ptr<Signal> signal_;
};

}  // namespace
}  // namespace fletching::producer

struct FletchingExtDevQueue {
  fletching::producer::Worker worker;
};

namespace fletching::producer {
namespace {

int ExtDevEvent::wait_on(const FletchingExtDevEvent* self, FletchingExtDevQueue* queue) noexcept {
  return guarded(nullptr, [&] {
    if (queue == nullptr) fail(EINVAL, "queue is NULL");
    const auto& signal = static_cast<const ExtDevEvent*>(self)->signal_;
    queue->worker.enqueue([signal] { signal->wait(); });
  });
}

class ExtDevQueue : public Queue {
 public:
  void* handle() override { return &queue_; }

  std::unique_ptr<Gate> shut() override {
    const auto signal = std::make_shared<Signal>();
    auto gate = std::make_unique<ExtDevGate>(signal);
    queue_.worker.enqueue([signal] { signal->wait(); });
    return gate;
  }
  void invert(void* buffer, size_t bytes) override {
    queue_.worker.enqueue([at = static_cast<uint8_t*>(buffer), bytes] {
      for (size_t i = 0; i < bytes; ++i) at[i] = static_cast<uint8_t>(~at[i]);
    });
  }
  void read(void* staging, const void* buffer, size_t bytes) override {
    queue_.worker.enqueue([=] { std::memcpy(staging, buffer, bytes); });
  }
  std::unique_ptr<Event> record() override {
    const auto signal = std::make_shared<Signal>();
    auto event = std::make_unique<ExtDevEvent>(signal);
    queue_.worker.enqueue([signal] { signal->set(); });
    return event;
  }
  bool is_idle() override { return queue_.worker.is_idle(); }
  void finish() override { queue_.worker.finish(); }

 private:
  FletchingExtDevQueue queue_;
};

class ExtDev : public Backend {
 public:
  const char* name() const override { return "ext_dev"; }
  ArrowDeviceType device_type() const override { return ARROW_DEVICE_EXT_DEV; }
  int64_t device_id() const override { return 0; }
  Device find() override { return {Presence::kReal, "threads of this process"}; }

  void* allocate(size_t bytes) override { return cpu_backend()->allocate(bytes); }
  void free(void* buffer) noexcept override { cpu_backend()->free(buffer); }
  void copy_to(void* buffer, const void* host, size_t bytes) override {
    std::memcpy(buffer, host, bytes);
  }
  void copy_from(void* host, const void* buffer, size_t bytes) override {
    std::memcpy(host, buffer, bytes);
  }
  void* allocate_staging(size_t bytes) override { return allocate(bytes); }
  void free_staging(void* staging) noexcept override { free(staging); }

  std::unique_ptr<Queue> new_queue() override { return std::make_unique<ExtDevQueue>(); }
};

}  // namespace

Backend* ext_dev_backend() {
  static ExtDev device;
  return &device;
}

}  // namespace fletching::producer
