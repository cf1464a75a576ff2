// What CUDA and ROCm have in common: streams, events, kernels, and three kinds of memory. `Api` is
// the vendor's half, one struct of static functions (cuda.cpp, rocm.cpp).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <string>

#include "backend.hpp"
#include "fletching/vendor.hpp"
#include "kernels.hpp"
#include "message.hpp"
#include "transfers.hpp"

namespace fletching::producer {

enum class MemoryKind { kDevice, kPinned, kManaged };

// Every member function makes the device current for its thread, and puts back what was. That is
// what `typename Api::Current current` is for. Where nobody can be told that it did not work, it is
// tried twice: `current(std::nothrow)`. What fails in giving something back is not told either.
template <class Api>
class GpuEvent : public Event {
 public:
  explicit GpuEvent(typename Api::Stream stream) {
    const typename Api::Current current;
    event_ = Api::NewEvent();
    try {
      Api::Record(event_, stream);
    } catch (...) {
      Api::DestroyEvent(event_);
      throw;
    }
  }
  ~GpuEvent() override {
    const typename Api::Current current(std::nothrow);
    Api::DestroyEvent(event_);
  }
  GpuEvent(const GpuEvent&) = delete;
  GpuEvent& operator=(const GpuEvent&) = delete;

  void* Address() noexcept override { return &event_; }
  void Wait() override {
    const typename Api::Current current;
    Api::Synchronize(event_);
  }

 private:
  typename Api::Event event_;
};

// Pinned memory that the device reaches as well.
template <class Api>
class Pinned {
 public:
  explicit Pinned(size_t bytes) {
    const typename Api::Current current;
    memory_ = Api::Allocate(MemoryKind::kPinned, bytes);
  }
  ~Pinned() {
    const typename Api::Current current(std::nothrow);
    Api::Free(MemoryKind::kPinned, memory_);
  }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

  void* get() const { return memory_; }

 private:
  void* memory_;
};

// A word in pinned memory: the stream waits until it is 1.
template <class Api>
class GpuGate : public Gate {
 public:
  explicit GpuGate(typename Api::Stream stream) : word_(sizeof(uint32_t)) {
    Word().store(0);
    const typename Api::Current current;
    Api::WaitValue(stream, word_.get(), 1);
    try {
      passed_ = std::make_unique<GpuEvent<Api>>(stream);
    } catch (...) {
      Word().store(1);
      TryTwice([&] { Api::Finish(stream); });
      throw;
    }
  }
  // The stream looks at the word until it has seen it.
  ~GpuGate() override {
    Word().store(1);
    TryTwice([&] { passed_->Wait(); });
  }
  GpuGate(const GpuGate&) = delete;
  GpuGate& operator=(const GpuGate&) = delete;

  void Open() override { Word().store(1); }

 private:
  std::atomic_ref<uint32_t> Word() {
    return std::atomic_ref<uint32_t>(*static_cast<uint32_t*>(word_.get()));
  }

  Pinned<Api> word_;
  std::unique_ptr<GpuEvent<Api>> passed_;
};

template <class Api>
class GpuQueue : public Queue {
 public:
  // Non-blocking: the legacy default stream would wait for everything, and hide a missing wait.
  GpuQueue() {
    const typename Api::Current current;
    stream_ = Api::NewStream();
  }
  ~GpuQueue() override {
    const typename Api::Current current(std::nothrow);
    if (has_work_) TryTwice([&] { Api::Finish(stream_); });
    Api::DestroyStream(stream_);
  }
  GpuQueue(const GpuQueue&) = delete;
  GpuQueue& operator=(const GpuQueue&) = delete;

  void* Handle() override {
    has_work_ = true;
    return stream_;
  }
  std::unique_ptr<Gate> Shut() override {
    has_work_ = true;
    return std::make_unique<GpuGate<Api>>(stream_);
  }
  void Invert(void* buffer, size_t bytes) override {
    has_work_ = true;
    const typename Api::Current current;
    const uint64_t blocks = (bytes + kThreads - 1) / kThreads;
    Api::Invert(buffer, bytes, static_cast<uint32_t>(std::min(blocks, kMostBlocks)), kThreads,
                stream_);
  }
  void Read(void* staging, const void* buffer, size_t bytes) override {
    Copy(staging, buffer, bytes);
  }
  void Copy(void* to, const void* from, size_t bytes) {
    has_work_ = true;
    const typename Api::Current current;
    Api::Copy(to, from, bytes, stream_);
  }
  std::unique_ptr<Event> Record() override { return std::make_unique<GpuEvent<Api>>(stream_); }
  bool IsIdle() override {
    const typename Api::Current current;
    return Api::IsIdle(stream_);
  }
  void Finish() override {
    const typename Api::Current current;
    Api::Finish(stream_);
    has_work_ = false;
  }

 private:
  static constexpr uint32_t kThreads = 256;
  static constexpr uint64_t kMostBlocks = 256;

  typename Api::Stream stream_;
  bool has_work_ = false;  // perhaps
};

// Opens the device once for all its backends. Throws when it is absent.
template <class Api>
Device OpenOnce() {
  static Finding finding;
  Device device = finding.Get(Api::Open);
  if (device.presence == Presence::kAbsent) Fail(ENODEV, device.text);
  return device;
}

// The first device, with buffers of one kind of memory.
template <class Api>
class Gpu : public Backend {
 public:
  Gpu(const char* name, ArrowDeviceType device_type, MemoryKind kind)
      : name_(name), device_type_(device_type), kind_(kind) {}

  const char* Name() const override { return name_; }
  ArrowDeviceType DeviceType() const override { return device_type_; }
  int64_t DeviceId() const override { return 0; }
  Device Find() override {
    return finding_.Get([&] {
      Device device = OpenOnce<Api>();
      if (kind_ == MemoryKind::kManaged) Api::RequireManagedMemory();
      return device;
    });
  }

  void* Allocate(size_t bytes) override {
    const typename Api::Current current;
    void* buffer = Api::Allocate(kind_, std::max<size_t>(bytes, 1));
    transfers_.AddBuffer();
    return buffer;
  }
  void Free(void* buffer) noexcept override {
    transfers_.RemoveBuffer();
    const typename Api::Current current(std::nothrow);
    Api::Free(kind_, buffer);
  }
  void CopyTo(void* buffer, const void* host, size_t bytes) override { Copy(buffer, host, bytes); }
  void CopyFrom(void* host, const void* buffer, size_t bytes) override {
    Copy(host, buffer, bytes);
  }
  void* AllocateStaging(size_t bytes) override {
    const typename Api::Current current;
    return Api::Allocate(MemoryKind::kPinned, bytes);
  }
  void FreeStaging(void* staging) noexcept override {
    const typename Api::Current current(std::nothrow);
    Api::Free(MemoryKind::kPinned, staging);
  }
  std::unique_ptr<Queue> NewQueue() override { return std::make_unique<GpuQueue<Api>>(); }

 private:
  void Copy(void* to, const void* from, size_t bytes) {
    transfers_.Run([&](GpuQueue<Api>& queue) {
      queue.Copy(to, from, bytes);
      queue.Finish();
    });
  }

  const char* name_;
  ArrowDeviceType device_type_;
  MemoryKind kind_;
  Finding finding_;
  Transfers<GpuQueue<Api>> transfers_{[] { return std::make_unique<GpuQueue<Api>>(); }};
};

// Never destroyed: arrays may be released while the process ends.
template <class Api, MemoryKind kind>
Backend* TheGpu(const char* name, ArrowDeviceType device_type) {
  static auto& device = *new Gpu<Api>(name, device_type, kind);
  return &device;
}

// A stand-in of the vendor's library has its control functions beside the vendor's.
template <class Functions>
bool IsStandIn(const VendorRuntime& runtime) {
  const auto loaded = fletching::detail::loaded_runtime<Functions>(runtime);
  return loaded && fletching::detail::find_symbol((*loaded)->library.handle,
                                                  "FletchingStandinCalls") != nullptr;
}

// It runs no device code: its image names the kernels that are built into it.
inline constexpr char kStandInImage[] = "FLETCHING-STANDIN-IMAGE 1\nkernel fletching_invert\n";

// The kernel's code for this library. Throws when it was left out of the build; `compiler` is who
// was missing then.
inline const void* KernelFor(Presence presence, const Image& image, const char* compiler) {
  if (presence == Presence::kStandIn) return kStandInImage;
  if (image.size > 0) return image.data;
  Fail(ENODEV, std::string("the kernel was left out, because there was no ") + compiler +
                   " when this library was built");
}

}  // namespace fletching::producer
