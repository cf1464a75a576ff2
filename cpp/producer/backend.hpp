// Device memory and the work that fills it. Each backend is one device, in a separate file.
#ifndef FLETCHING_PRODUCER_BACKEND_HPP
#define FLETCHING_PRODUCER_BACKEND_HPP

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "fletching/abi.h"
#include "message.hpp"
#include "watch.hpp"

namespace fletching::producer {

enum class Presence { kReal, kStandIn, kAbsent };

// A device on this machine, or the reason for its absence.
struct Device {
  Presence presence;
  std::string text;  // its name and version, or why it is absent
};

// Caches a device that was found. A failure is retried by the next call: a library may be
// installed, a driver may recover.
class Finding {
 public:
  // `open` returns the device, or throws an Error and leaves no state behind.
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

// Waits before an object is destroyed, where no caller can receive an error. The first failure may
// come from earlier work; after a second one the device is lost and runs no work.
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

// An event recorded on a queue. Destroying it does not affect the work before it.
class Event {
 public:
  virtual ~Event() = default;

  // The value of ArrowDeviceArray.sync_event; constant during the event's lifetime.
  virtual void* address() noexcept = 0;

  // Blocks until the work before the event is done.
  virtual void wait() = 0;
};

// Blocks the work enqueued behind it. The destructor opens it.
class Gate {
 public:
  virtual ~Gate() = default;
  virtual void open() = 0;  // idempotent
};

// A stream or queue of the device: runs its work asynchronously and in order, concurrently with
// other queues. The destructor waits for the work.
class Queue {
 public:
  virtual ~Queue() = default;

  // The argument of a consumer's `wait_on`; gate.h lists its type on each backend.
  virtual void* handle() = 0;

  // All later work waits until the gate is opened.
  virtual std::unique_ptr<Gate> shut() = 0;

  // Enqueues a kernel that inverts every bit of `bytes` bytes.
  virtual void invert(void* buffer, size_t bytes) = 0;

  // Enqueues a copy to `staging`, which is memory from Backend::allocate_staging.
  virtual void read(void* staging, const void* buffer, size_t bytes) = 0;

  // Submits the calls of invert and read, which a queue may batch. All other calls flush first.
  virtual void flush() {}

  virtual std::unique_ptr<Event> record() = 0;

  virtual bool is_idle() = 0;
  virtual void finish() = 0;  // blocks until all work is done
};

// Every function may be called from any thread with any current context, and restores that context.
// Failures are thrown as an Error that names the vendor's function and error, or as std::bad_alloc.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual const char* name() const = 0;
  virtual ArrowDeviceType device_type() const = 0;
  virtual int64_t device_id() const = 0;

  // Searches for library and device until they are found.
  virtual Device find() = 0;

  // A buffer is an entry of ArrowArray.buffers on this device: an address or a handle, never NULL.
  // The copies are synchronous.
  virtual void* allocate(size_t bytes) = 0;
  virtual void free(void* buffer) noexcept = 0;
  // A buffer that has its pages of the process to itself, and whose every read, also by the device,
  // goes through them. Throws ENOTSUP if this device reads in another way.
  virtual void* allocate_in_pages(size_t, Pages*) {
    fail(ENOTSUP, std::string(name()) + ": the device's reads of its memory cannot be watched");
  }
  virtual void copy_to(void* buffer, const void* host, size_t bytes) = 0;
  virtual void copy_from(void* host, const void* buffer, size_t bytes) = 0;

  // Host memory to which a queue can copy asynchronously.
  virtual void* allocate_staging(size_t bytes) = 0;
  virtual void free_staging(void* staging) noexcept = 0;

  // Whether there are queues, and therefore events. Without queues the data is ready on export.
  virtual bool has_queues() const { return true; }
  virtual std::unique_ptr<Queue> new_queue() = 0;
};

// All backends, including those without a device, always in the same order.
const std::vector<Backend*>& backends();

// Constructors of the backends, each in a separate file.
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
