// Code shared by CUDA and ROCm: streams, events, kernels, and three kinds of memory. `Api` is the
// vendor's part, a struct of static functions (cuda.cpp, rocm.cpp).
#ifndef FLETCHING_PRODUCER_GPU_HPP
#define FLETCHING_PRODUCER_GPU_HPP

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string>

#include "backend.hpp"
#include "kernels.hpp"
#include "message.hpp"
#include "ranges.h"
#include "reserve.hpp"
#include "runtimes/loader.hpp"
#include "transfers.hpp"

namespace fletching::producer {

// The kernels (kernels/kernels.cu), in the order of kKernelNames.
enum class Kernel : size_t { kInvert, kCopy };
inline constexpr const char* kKernelNames[] = {"fletching_invert", "fletching_copy"};

// Every member function makes the device current for its thread and restores the previous one, with
// `typename Api::Current current`. Where no caller can receive an error, it tries twice:
// `current(std::nothrow)`. Failures to free a resource are ignored as well.
template <class Api>
class GpuEvent : public Event {
 public:
  explicit GpuEvent(typename Api::Stream stream) {
    const typename Api::Current current;
    event_ = Api::new_event();
    try {
      Api::record(event_, stream);
    } catch (...) {
      Api::destroy_event(event_);
      throw;
    }
  }
  ~GpuEvent() override {
    const typename Api::Current current(std::nothrow);
    Api::destroy_event(event_);
  }
  GpuEvent(const GpuEvent&) = delete;
  GpuEvent& operator=(const GpuEvent&) = delete;

  void* address() noexcept override { return &event_; }
  void wait() override {
    const typename Api::Current current;
    Api::synchronize(event_);
  }

 private:
  typename Api::Event event_;
};

// Memory from Reserve, freed with the object.
template <class Api>
class Owned {
 public:
  Owned(MemoryKind kind, size_t bytes)
      : kind_(kind), memory_(Reserve<Api>::instance().allocate(kind, bytes)) {}
  ~Owned() { Reserve<Api>::instance().free(kind_, memory_); }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;

  void* get() const { return memory_; }

 private:
  MemoryKind kind_;
  void* memory_;
};

// A word shared by device and host: the stream waits until it is 1.
template <class Api>
class GpuGate : public Gate {
 public:
  explicit GpuGate(typename Api::Stream stream) {
    Reserve<Api>::instance().enter([&](void* word) {
      word_ = static_cast<uint32_t*>(word);
      gate_word().store(0);
      Api::wait_value(stream, word_, 1);
      try {
        passed_ = std::make_unique<GpuEvent<Api>>(stream);
      } catch (...) {
        gate_word().store(1);
        try_twice([&] { Api::finish(stream); });
        throw;
      }
    });
  }
  // The stream polls the word until it reads 1.
  ~GpuGate() override {
    open();
    try_twice([&] { passed_->wait(); });
    Reserve<Api>::instance().leave(word_);
  }
  GpuGate(const GpuGate&) = delete;
  GpuGate& operator=(const GpuGate&) = delete;

  void open() override {
    if (gate_word().exchange(1) == 0) Reserve<Api>::instance().open();
  }

 private:
  std::atomic_ref<uint32_t> gate_word() { return std::atomic_ref<uint32_t>(*word_); }

  uint32_t* word_ = nullptr;
  std::unique_ptr<GpuEvent<Api>> passed_;
};

template <class Api>
class GpuQueue : public Queue {
 public:
  // Non-blocking: the legacy default stream would wait for all work and hide a missing wait.
  GpuQueue() {
    const typename Api::Current current;
    stream_ = Api::new_stream();
  }
  ~GpuQueue() override {
    const typename Api::Current current(std::nothrow);
    if (has_work_ || count_ > 0) try_twice([&] { finish(); });
    Api::destroy_stream(stream_);
  }
  GpuQueue(const GpuQueue&) = delete;
  GpuQueue& operator=(const GpuQueue&) = delete;

  void* handle() override {
    flush();
    has_work_ = true;
    return stream_;
  }
  std::unique_ptr<Gate> shut() override {
    flush();
    has_work_ = true;
    return std::make_unique<GpuGate<Api>>(stream_);
  }
  void invert(void* buffer, size_t bytes) override { add(Kernel::kInvert, buffer, buffer, bytes); }
  // Uses a kernel: a driver may copy host or managed memory on the calling thread, which would then
  // wait for the stream.
  void read(void* staging, const void* buffer, size_t bytes) override {
    add(Kernel::kCopy, staging, buffer, bytes);
  }
  // One launch for many buffers: a driver blocks when about a thousand launches are pending on a
  // stream.
  void flush() override {
    if (count_ == 0) return;
    has_work_ = true;
    const typename Api::Current current;
    void* arguments[] = {&ranges_};
    Api::launch(kernel_, count_, Ranges::kThreads, stream_, arguments);
    count_ = 0;
  }
  void copy(void* to, const void* from, size_t bytes) {
    flush();
    has_work_ = true;
    const typename Api::Current current;
    Api::copy(to, from, bytes, stream_);
  }
  std::unique_ptr<Event> record() override {
    flush();
    return std::make_unique<GpuEvent<Api>>(stream_);
  }
  bool is_idle() override {
    flush();
    const typename Api::Current current;
    return Api::is_idle(stream_);
  }
  void finish() override {
    flush();
    const typename Api::Current current;
    Api::finish(stream_);
    has_work_ = false;
  }

 private:
  void add(Kernel kernel, void* to, const void* from, size_t bytes) {
    if (kernel != kernel_ || count_ == Ranges::kMost) flush();
    kernel_ = kernel;
    ranges_.entries[count_++] = {static_cast<unsigned char*>(to),
                                 static_cast<const unsigned char*>(from), bytes};
  }

  typename Api::Stream stream_;
  bool has_work_ = false;  // false: certainly none
  // Arguments of the next launch.
  Kernel kernel_ = Kernel::kInvert;
  uint32_t count_ = 0;
  Ranges ranges_;
};

// Triggers one-time initialization during which a driver may wait for the whole device: loading a
// kernel, setting up copies. Behind a shut gate that would deadlock.
template <class Api>
void prime_memory(MemoryKind kind) {
  constexpr size_t kBytes = 64;
  const Owned<Api> buffer(kind, kBytes);
  const Owned<Api> pinned(MemoryKind::kPinned, kBytes);
  uint8_t pageable[kBytes] = {};
  GpuQueue<Api> queue;  // destroyed first; waits for the work that uses the memory
  if (kind == MemoryKind::kDevice) {
    queue.copy(buffer.get(), pageable, kBytes);
    queue.copy(pageable, buffer.get(), kBytes);
  }
  std::fill_n(static_cast<uint8_t*>(pinned.get()), kBytes, uint8_t{0});
  queue.read(buffer.get(), pinned.get(), kBytes);
  queue.invert(buffer.get(), kBytes);
  queue.read(pinned.get(), buffer.get(), kBytes);
  queue.record()->wait();
  queue.finish();
}

// Primes all memory kinds of a device at once: one backend may be used first while a gate of
// another is shut.
template <class Api>
void prime() {
  prime_memory<Api>(MemoryKind::kDevice);
  prime_memory<Api>(MemoryKind::kPinned);
  if (Api::has_managed_memory()) prime_memory<Api>(MemoryKind::kManaged);
}

// Opens the device once for all its backends. Throws if it is absent.
template <class Api>
Device open_once() {
  static Finding finding;
  Device device = finding.get(Api::open);
  if (device.presence == Presence::kAbsent) fail(ENODEV, device.text);
  return device;
}

// The first device, with buffers in one kind of memory.
template <class Api>
class Gpu : public Backend {
 public:
  Gpu(const char* name, ArrowDeviceType device_type, MemoryKind kind)
      : name_(name), device_type_(device_type), kind_(kind) {}

  const char* name() const override { return name_; }
  ArrowDeviceType device_type() const override { return device_type_; }
  int64_t device_id() const override { return 0; }
  Device find() override {
    return finding_.get([&] {
      Device device = open_once<Api>();
      if (kind_ == MemoryKind::kManaged && !Api::has_managed_memory()) {
        fail(ENODEV, "managed memory: not supported by the device");
      }
      return device;
    });
  }

  void* allocate(size_t bytes) override {
    return allocate_aligned(bytes, Reserve<Api>::kAlignment);
  }
  void* allocate_in_pages(size_t bytes, Pages* pages) override {
    void* buffer = allocate_aligned(whole_pages(bytes), kPageBytes);
    *pages = {Api::contents(buffer), whole_pages(bytes)};
    if (pages->begin != nullptr) return buffer;
    free(buffer);
    return Backend::allocate_in_pages(bytes, pages);
  }
  void free(void* buffer) noexcept override {
    transfers_.remove_buffer();
    Reserve<Api>::instance().free(kind_, buffer);
  }
  void copy_to(void* buffer, const void* host, size_t bytes) override {
    if (kind_ == MemoryKind::kPinned) {
      std::memcpy(buffer, host, bytes);
    } else if (kind_ == MemoryKind::kDevice) {
      transfer([&](GpuQueue<Api>& queue) { queue.copy(buffer, host, bytes); });
    } else {
      const Owned<Api> staging(MemoryKind::kPinned, bytes);
      std::memcpy(staging.get(), host, bytes);
      transfer([&](GpuQueue<Api>& queue) { queue.read(buffer, staging.get(), bytes); });
    }
  }
  void copy_from(void* host, const void* buffer, size_t bytes) override {
    if (kind_ == MemoryKind::kPinned) {
      std::memcpy(host, buffer, bytes);
    } else if (kind_ == MemoryKind::kDevice) {
      transfer([&](GpuQueue<Api>& queue) { queue.copy(host, buffer, bytes); });
    } else {
      const Owned<Api> staging(MemoryKind::kPinned, bytes);
      transfer([&](GpuQueue<Api>& queue) { queue.read(staging.get(), buffer, bytes); });
      std::memcpy(host, staging.get(), bytes);
    }
  }
  void* allocate_staging(size_t bytes) override {
    return Reserve<Api>::instance().allocate(MemoryKind::kPinned, bytes);
  }
  void free_staging(void* staging) noexcept override {
    Reserve<Api>::instance().free(MemoryKind::kPinned, staging);
  }
  std::unique_ptr<Queue> new_queue() override { return std::make_unique<GpuQueue<Api>>(); }

 private:
  void* allocate_aligned(size_t bytes, size_t alignment) {
    void* buffer = Reserve<Api>::instance().allocate(kind_, std::max<size_t>(bytes, 1), alignment);
    transfers_.add_buffer();
    return buffer;
  }
  template <class Work>
  void transfer(Work work) {
    transfers_.run([&](GpuQueue<Api>& queue) {
      work(queue);
      queue.finish();
    });
  }

  const char* name_;
  ArrowDeviceType device_type_;
  MemoryKind kind_;
  Finding finding_;
  Transfers<GpuQueue<Api>> transfers_{[] { return std::make_unique<GpuQueue<Api>>(); }};
};

// Never destroyed: arrays may be released at process exit.
template <class Api, MemoryKind kind>
Backend* the_gpu(const char* name, ArrowDeviceType device_type) {
  static auto& device = *new Gpu<Api>(name, device_type, kind);
  return &device;
}

// A stand-in for the vendor's library exports its control functions too.
template <class Functions>
bool is_stand_in(const VendorRuntime& runtime) {
  const auto loaded = loaded_runtime<Functions>(runtime);
  return loaded && find_symbol((*loaded)->library.handle, "FletchingStandinCalls") != nullptr;
}

// The host address of a stand-in's memory. Returns NULL for a GPU, whose reads do not fault.
template <class Functions>
void* stand_in_contents(const VendorRuntime& runtime, const void* memory) {
  const auto loaded = loaded_runtime<Functions>(runtime);
  const auto contents = loaded ? reinterpret_cast<void* (*)(const void*)>(find_symbol(
                                     (*loaded)->library.handle, "FletchingStandinContents"))
                               : nullptr;
  return contents == nullptr ? nullptr : contents(memory);
}

// A stand-in runs no device code: its image names its built-in kernels.
inline constexpr char kStandInImage[] =
    "FLETCHING-STANDIN-IMAGE 1\nkernel fletching_invert\nkernel fletching_copy\n";

// Returns the kernel image for this library. Throws if it was not built for lack of `compiler`.
inline const void* kernel_for(Presence presence, const Image& image, const char* compiler) {
  if (presence == Presence::kStandIn) return kStandInImage;
  if (image.size > 0) return image.data;
  fail(ENODEV, std::string("kernel: not built: expected the compiler ") + compiler +
                   " when this library was built");
}

}  // namespace fletching::producer

#endif  // FLETCHING_PRODUCER_GPU_HPP
