// A device of our own: a thread per queue, host memory, and the event of ext_dev.h.
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

// Happens once.
class Signal {
 public:
  void Set() {
    const std::lock_guard lock(mutex_);
    set_ = true;
    changed_.notify_all();
  }
  void Wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return set_; });
  }
  bool IsSet() {
    const std::lock_guard lock(mutex_);
    return set_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool set_ = false;
};

// Does what is enqueued, in order, on a thread of its own.
class Worker {
 public:
  Worker() : thread_([this] { Run(); }) {}
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

  void Enqueue(std::function<void()> task) {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    changed_.notify_all();
  }
  bool IsIdle() {
    const std::lock_guard lock(mutex_);
    return tasks_.empty();
  }
  void Finish() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return tasks_.empty(); });
  }

 private:
  void Run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return ending_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      const std::function<void()>& task = tasks_.front();  // stays until it is done: IsIdle
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
  std::thread thread_;  // the last: it uses the others
};

class ExtDevEvent : public Event, public FletchingExtDevEvent {
 public:
  explicit ExtDevEvent(std::shared_ptr<Signal> signal)
      : FletchingExtDevEvent{Query, Synchronize, WaitOn}, signal_(std::move(signal)) {}

  void* Address() noexcept override { return static_cast<FletchingExtDevEvent*>(this); }
  void Wait() override { signal_->Wait(); }

 private:
  static Signal& SignalOf(const FletchingExtDevEvent* self) {
    return *static_cast<const ExtDevEvent*>(self)->signal_;
  }
  static int Query(const FletchingExtDevEvent* self) noexcept { return SignalOf(self).IsSet(); }
  static void Synchronize(const FletchingExtDevEvent* self) noexcept { SignalOf(self).Wait(); }
  static int WaitOn(const FletchingExtDevEvent* self, FletchingExtDevQueue* queue) noexcept;

  std::shared_ptr<Signal> signal_;
};

class ExtDevGate : public Gate {
 public:
  explicit ExtDevGate(std::shared_ptr<Signal> signal) : signal_(std::move(signal)) {}
  ~ExtDevGate() override { signal_->Set(); }
  ExtDevGate(const ExtDevGate&) = delete;
  ExtDevGate& operator=(const ExtDevGate&) = delete;

  void Open() override { signal_->Set(); }

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

int ExtDevEvent::WaitOn(const FletchingExtDevEvent* self, FletchingExtDevQueue* queue) noexcept {
  return Guarded(nullptr, [&] {
    if (queue == nullptr) Fail(EINVAL, "queue is NULL");
    const auto& signal = static_cast<const ExtDevEvent*>(self)->signal_;
    queue->worker.Enqueue([signal] { signal->Wait(); });
  });
}

class ExtDevQueue : public Queue {
 public:
  void* Handle() override { return &queue_; }

  std::unique_ptr<Gate> Shut() override {
    const auto signal = std::make_shared<Signal>();
    auto gate = std::make_unique<ExtDevGate>(signal);
    queue_.worker.Enqueue([signal] { signal->Wait(); });
    return gate;
  }
  void Invert(void* buffer, size_t bytes) override {
    queue_.worker.Enqueue([at = static_cast<uint8_t*>(buffer), bytes] {
      for (size_t i = 0; i < bytes; ++i) at[i] = static_cast<uint8_t>(~at[i]);
    });
  }
  void Read(void* staging, const void* buffer, size_t bytes) override {
    queue_.worker.Enqueue([=] { std::memcpy(staging, buffer, bytes); });
  }
  std::unique_ptr<Event> Record() override {
    const auto signal = std::make_shared<Signal>();
    auto event = std::make_unique<ExtDevEvent>(signal);
    queue_.worker.Enqueue([signal] { signal->Set(); });
    return event;
  }
  bool IsIdle() override { return queue_.worker.IsIdle(); }
  void Finish() override { queue_.worker.Finish(); }

 private:
  FletchingExtDevQueue queue_;
};

class ExtDev : public Backend {
 public:
  const char* Name() const override { return "ext_dev"; }
  ArrowDeviceType DeviceType() const override { return ARROW_DEVICE_EXT_DEV; }
  int64_t DeviceId() const override { return 0; }
  Device Find() override { return {Presence::kReal, "threads of this process"}; }

  void* Allocate(size_t bytes) override { return CpuBackend()->Allocate(bytes); }
  void Free(void* buffer) noexcept override { CpuBackend()->Free(buffer); }
  void CopyTo(void* buffer, const void* host, size_t bytes) override {
    std::memcpy(buffer, host, bytes);
  }
  void CopyFrom(void* host, const void* buffer, size_t bytes) override {
    std::memcpy(host, buffer, bytes);
  }
  void* AllocateStaging(size_t bytes) override { return Allocate(bytes); }
  void FreeStaging(void* staging) noexcept override { Free(staging); }

  std::unique_ptr<Queue> NewQueue() override { return std::make_unique<ExtDevQueue>(); }
};

}  // namespace

Backend* ExtDevBackend() {
  static ExtDev device;
  return &device;
}

}  // namespace fletching::producer
