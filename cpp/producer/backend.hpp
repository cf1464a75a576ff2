// Where buffers live. One backend is one device, in one file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "fletching/abi.h"

namespace fletching::producer {

// Every function may be called from any thread. A failure is thrown as an Error or std::bad_alloc.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual const char* Name() const = 0;
  virtual ArrowDeviceType DeviceType() const = 0;
  virtual int64_t DeviceId() const = 0;

  // A buffer is what stands in ArrowArray.buffers on this device: an address or a handle, never
  // NULL.
  virtual void* Allocate(size_t bytes) = 0;
  virtual void Free(void* buffer) noexcept = 0;
  virtual void CopyTo(void* buffer, const void* host, size_t bytes) = 0;
  virtual void CopyFrom(void* host, const void* buffer, size_t bytes) = 0;
};

// The backends that work on this machine, always in the same order.
const std::vector<Backend*>& Backends();

// One per backend, each in its own file.
Backend* CpuBackend();

// One buffer with its bytes, freed with the object. `bytes` is remembered as what it came from.
class Allocation {
 public:
  Allocation(Backend& backend, const std::vector<uint8_t>& bytes);
  ~Allocation();
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;

  const void* buffer() const { return buffer_; }

 private:
  Backend& backend_;
  void* buffer_;
};

}  // namespace fletching::producer
