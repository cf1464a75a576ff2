// SPDX-License-Identifier: Apache-2.0
//
// RAII wrappers of the CUDA driver for the checks. A failed call throws. Everything runs on the
// first device, in its primary context.
#ifndef FLETCHING_TESTS_GPU_CUDA_HPP
#define FLETCHING_TESTS_GPU_CUDA_HPP

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "error.hpp"
#include "runtimes/cuda.hpp"

namespace fletching::gpu {

/// Initializes the driver. Throws if there is no driver or no device.
inline const cuda::Functions& cu() {
  static const cuda::Functions& functions = [&]() -> const cuda::Functions& {
    auto loaded = cuda::functions();
    if (!loaded) fail(loaded.error().code(), loaded.error().message());
    std::int32_t count = 0;
    const cuda::CUresult started = (*loaded)->cu_init(0);
    if (started == 0) (void)(*loaded)->cu_device_get_count(&count);
    if (count == 0) fail(ENODEV, "the CUDA driver is there, and finds no device");
    return **loaded;
  }();
  return functions;
}

inline void require_call(const char* name, cuda::CUresult result) {
  if (result == cuda::kCudaSuccess) return;
  const char* text = nullptr;
  (void)cu().cu_get_error_name(result, &text);
  fail(EIO, std::string(name) + ": failed: got " +
                (text != nullptr ? text : "an error without a name") + " (" +
                std::to_string(result) + ")");
}

/// A function that a stand-in exports in addition to the driver's (standin.h). NULL on a real
/// driver.
template <class Function>
Function standin_function(const char* name) {
  const auto library = find_library(cuda::kRuntime);
  if (!library) return nullptr;
  return reinterpret_cast<Function>(find_symbol(library->handle, name));
}

/// On a stand-in, returns when all work that no gate blocks is done. A real device has no such
/// function, so a check there may look too early to detect a missing wait.
inline void settle() {
  const auto settle_standin = standin_function<void (*)()>("FletchingStandinSettle");
  if (settle_standin != nullptr) settle_standin();
}

/// Makes the primary context of a device current on this thread for its lifetime.
class Current {
 public:
  explicit Current(cuda::CUdevice device = 0) : device_(device) {
    cuda::CUcontext context = nullptr;
    require_call("cuDevicePrimaryCtxRetain", cu().cu_device_primary_ctx_retain(&context, device));
    require_call("cuCtxPushCurrent", cu().cu_ctx_push_current(context));
  }
  ~Current() {
    cuda::CUcontext context = nullptr;
    (void)cu().cu_ctx_pop_current(&context);
    (void)cu().cu_device_primary_ctx_release(device_);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  cuda::CUdevice device_;
};

/// Makes the caller's context current again for its lifetime, instead of the enclosing Current's.
class Outside {
 public:
  Outside() { require_call("cuCtxPopCurrent", cu().cu_ctx_pop_current(&inside_)); }
  ~Outside() { (void)cu().cu_ctx_push_current(inside_); }
  Outside(const Outside&) = delete;
  Outside& operator=(const Outside&) = delete;

 private:
  cuda::CUcontext inside_ = nullptr;
};

/// The current context, for comparisons, or NULL.
inline const void* current_context() {
  cuda::CUcontext context = nullptr;
  require_call("cuCtxGetCurrent", cu().cu_ctx_get_current(&context));
  return context;
}

/// Device memory. Freed on any thread.
class DeviceMemory {
 public:
  explicit DeviceMemory(std::size_t bytes) : bytes_(bytes) {
    require_call("cuMemAlloc", cu().cu_mem_alloc(&address_, bytes));
  }
  DeviceMemory(DeviceMemory&& other) noexcept
      : address_(std::exchange(other.address_, 0)), bytes_(other.bytes_) {}
  DeviceMemory& operator=(DeviceMemory&&) = delete;
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  ~DeviceMemory() {
    if (address_ == 0) return;
    std::string trouble;  // ignored: on a lost device there is nothing to free
    (void)guarded(trouble, [&] {
      const Current current;
      require_call("cuMemFree", cu().cu_mem_free(address_));
    });
  }

  [[nodiscard]] cuda::CUdeviceptr address() const { return address_; }
  [[nodiscard]] const void* data() const { return reinterpret_cast<const void*>(address_); }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  cuda::CUdeviceptr address_ = 0;
  std::size_t bytes_;
};

/// Zeroed pinned memory that the device can access.
class PinnedMemory {
 public:
  explicit PinnedMemory(std::size_t bytes) : bytes_(bytes) {
    require_call("cuMemHostAlloc",
                 cu().cu_mem_host_alloc(&memory_, bytes, cuda::kCuMemhostallocDevicemap));
    std::memset(memory_, 0, bytes);
  }
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;
  ~PinnedMemory() { (void)cu().cu_mem_free_host(memory_); }

  [[nodiscard]] void* get() const { return memory_; }
  /// The device address.
  [[nodiscard]] cuda::CUdeviceptr address() const {
    cuda::CUdeviceptr address = 0;
    require_call("cuMemHostGetDevicePointer",
                 cu().cu_mem_host_get_device_pointer(&address, memory_, 0));
    return address;
  }
  /// Whether every byte is `byte`.
  [[nodiscard]] bool holds(std::uint8_t byte) const {
    const auto* first = static_cast<const std::uint8_t*>(memory_);
    return std::all_of(first, first + bytes_, [&](std::uint8_t seen) { return seen == byte; });
  }

 private:
  void* memory_ = nullptr;
  std::size_t bytes_;
};

/// A non-blocking stream, because the legacy default stream would hide a missing wait. The
/// destructor waits for its work.
class Stream {
 public:
  Stream() {
    require_call("cuStreamCreate", cu().cu_stream_create(&stream_, cuda::kCuStreamNonBlocking));
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() {
    (void)cu().cu_stream_synchronize(stream_);
    (void)cu().cu_stream_destroy(stream_);
  }

  [[nodiscard]] void* get() const { return stream_; }
  void synchronize() const {
    require_call("cuStreamSynchronize", cu().cu_stream_synchronize(stream_));
  }
  [[nodiscard]] bool is_idle() const {
    const cuda::CUresult answer = cu().cu_stream_query(stream_);
    if (answer == cuda::kCudaErrorNotReady) return false;
    require_call("cuStreamQuery", answer);
    return true;
  }
  void fill(const DeviceMemory& memory, std::uint8_t byte) const {
    require_call("cuMemsetD8Async",
                 cu().cu_memset_d8_async(memory.address(), byte, memory.bytes(), stream_));
  }
  void read(const PinnedMemory& into, const DeviceMemory& memory) const {
    require_call("cuMemcpyDtoHAsync",
                 cu().cu_memcpy_dtoh_async(into.get(), memory.address(), memory.bytes(), stream_));
  }

 private:
  cuda::CUstream stream_ = nullptr;
};

/// Blocks a stream until it is opened, at the latest in the destructor. Declare it after the
/// streams that it blocks, because they wait for their work.
class Gate {
 public:
  Gate() : word_(sizeof(std::uint32_t)), address_(word_.address()) {
    if (cu().cu_stream_wait_value32 == nullptr) {
      fail(ENOTSUP, "the driver has no cuStreamWaitValue32, which CUDA 11.7 has: no gate");
    }
  }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  ~Gate() {
    open();
    // The device reads the word until it has the value.
    if (held_ != nullptr) (void)cu().cu_stream_synchronize(held_);
  }

  void shut(const Stream& stream) {
    word().store(0);
    held_ = static_cast<cuda::CUstream>(stream.get());
    require_call("cuStreamWaitValue32",
                 cu().cu_stream_wait_value32(held_, address_, 1, cuda::kCuStreamWaitValueEq));
  }
  void open() const { word().store(1); }

 private:
  [[nodiscard]] std::atomic_ref<std::uint32_t> word() const {
    return std::atomic_ref<std::uint32_t>(*static_cast<std::uint32_t*>(word_.get()));
  }

  PinnedMemory word_;
  cuda::CUdeviceptr address_;
  cuda::CUstream held_ = nullptr;
};

}  // namespace fletching::gpu

#endif  // FLETCHING_TESTS_GPU_CUDA_HPP
