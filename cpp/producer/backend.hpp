// Where buffers live, and the work that fills them. One backend is one device, in one file.
#ifndef FLETCHING_PRODUCER_BACKEND_HPP
#define FLETCHING_PRODUCER_BACKEND_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "fletching/abi.h"
#include "message.hpp"

namespace fletching::producer {

enum class Presence { kReal, kStandIn, kAbsent };

// What is there of a device on this machine.
struct Device {
  Presence presence;
  std::string text;  // its name and version, or why it is absent
};

// Remembers a device that was found. What did not work is tried again by the next call: a library
// may become installed, a driver may recover.
class Finding {
 public:
  // `open` returns the device, or throws an Error and leaves nothing behind.
  template <class Open>
  Device get(Open open) {
    const std::lock_guard lock(mutex_);
    if (device_.presence != Presence::kAbsent) return device_;
    try {
      device_ = open();
    } catch (const Error& error) {
      return {Presence::kAbsent, error.text};
    }
    return device_;
  }

 private:
  std::mutex mutex_;
  Device device_{Presence::kAbsent, ""};
};

// A wait before something is destroyed, where no caller can receive an error. One failure may be
// left over from earlier work; after two the device is lost, and runs nothing any more.
template <class Wait>
void try_twice(Wait wait) noexcept {
  for (int attempt = 0; attempt < 2; ++attempt) {
    try {
      return wait();
    } catch (...) {
      continue;
    }
  }
}

// An event that was recorded on a queue. Destroying it leaves the work before it alone.
class Event {
 public:
  virtual ~Event() = default;

  // What ArrowDeviceArray.sync_event holds; the same as long as the event lives.
  virtual void* address() noexcept = 0;

  // Blocks until the work before it is done.
  virtual void wait() = 0;
};

// Holds back what was enqueued behind it. Destroying it opens it.
class Gate {
 public:
  virtual ~Gate() = default;
  virtual void open() = 0;  // again: nothing happens
};

// A stream or queue of the device: what is enqueued is done later, one after the other,
// concurrently with what is on other queues. Destroying it waits for what is on it.
class Queue {
 public:
  virtual ~Queue() = default;

  // What a consumer passes to `wait_on`; gate.h says what it is on each backend.
  virtual void* handle() = 0;

  // Everything enqueued from now on waits until the gate is opened.
  virtual std::unique_ptr<Gate> shut() = 0;

  // Enqueues a kernel that inverts every bit of `bytes` bytes.
  virtual void invert(void* buffer, size_t bytes) = 0;

  // Enqueues a copy to `staging`, memory of Backend::allocate_staging.
  virtual void read(void* staging, const void* buffer, size_t bytes) = 0;

  // Submits the calls of invert and read, which a queue may collect. All other calls flush first.
  virtual void flush() {}

  virtual std::unique_ptr<Event> record() = 0;

  virtual bool is_idle() = 0;
  virtual void finish() = 0;  // blocks until everything on it is done
};

// Every function may be called from any thread, with whatever context is current there; the same
// one is current afterwards. A failure is thrown as an Error or std::bad_alloc, and names the
// vendor's function and error.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual const char* name() const = 0;
  virtual ArrowDeviceType device_type() const = 0;
  virtual int64_t device_id() const = 0;

  // Looks for library and device until they are found.
  virtual Device find() = 0;

  // A buffer is what ArrowArray.buffers contains on this device: an address or a handle, never
  // NULL. The copies are done when they return.
  virtual void* allocate(size_t bytes) = 0;
  virtual void free(void* buffer) noexcept = 0;
  virtual void copy_to(void* buffer, const void* host, size_t bytes) = 0;
  virtual void copy_from(void* host, const void* buffer, size_t bytes) = 0;

  // Host memory that a queue can copy to asynchronously.
  virtual void* allocate_staging(size_t bytes) = 0;
  virtual void free_staging(void* staging) noexcept = 0;

  // Whether there are queues, and so events. Without them the data is there when the struct is.
  virtual bool has_queues() const { return true; }
  virtual std::unique_ptr<Queue> new_queue() = 0;
};

// Every backend, whether its device is there or not, always in the same order.
const std::vector<Backend*>& backends();

// One per backend, each in its own file.
Backend* cpu_backend();
Backend* ext_dev_backend();
Backend* opencl_backend();
Backend* vulkan_backend();
Backend* cuda_backend();
Backend* cuda_host_backend();
Backend* cuda_managed_backend();
Backend* rocm_backend();
Backend* rocm_host_backend();

}  // namespace fletching::producer

#endif  // FLETCHING_PRODUCER_BACKEND_HPP
