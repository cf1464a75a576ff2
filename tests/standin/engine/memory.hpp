// SPDX-License-Identifier: Apache-2.0
// Memory of the devices, pinned memory and managed memory. The addresses of device memory are
// reserved and not readable: a host that reads them faults. Their contents are elsewhere, and only
// the work of streams reaches it.
#ifndef FLETCHING_STANDIN_MEMORY_HPP
#define FLETCHING_STANDIN_MEMORY_HPP

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "context.hpp"

namespace fletching::standin {

enum class MemoryKind {
  kDevice,
  kHost,  // pinned
  kManaged,
  kSignal,  // what a stream of HIP waits for; the host reaches it, and hipFree frees it
};

struct FreeBytes {
  void operator()(std::byte* bytes) const;
};

struct Allocation {
  MemoryKind kind;
  std::uintptr_t address;
  std::size_t size;
  std::shared_ptr<Context> context;
  std::unique_ptr<std::byte, FreeBytes> bytes;  // for host and managed memory at `address`
};

// A range of addresses that a call named.
class Span {
 public:
  bool pageable() const { return pageable_; }
  // None of pageable memory, and of memory that has been freed.
  std::optional<MemoryKind> kind() const;

  // Where the bytes are, and the allocation, which stays while the caller has it. Throws
  // kIllegalAddress when it has been freed since.
  std::byte* pin(std::shared_ptr<Allocation>& owner) const;

 private:
  friend class Memory;
  bool pageable_ = false;
  std::weak_ptr<Allocation> owner_;
  std::byte* data_ = nullptr;
};

class Memory {
 public:
  static constexpr std::size_t kDeviceBytes = std::size_t{16} << 30;  // what a device says it has

  // kOutOfMemory when the device says that it has no more.
  std::uintptr_t allocate(MemoryKind kind, std::size_t size, std::shared_ptr<Context> context);
  // Throws kInvalidValue for an address that no allocation of these kinds begins with.
  std::shared_ptr<Allocation> take(std::uintptr_t address, bool host);
  // NULL for an address that is in no allocation.
  std::shared_ptr<Allocation> find(std::uintptr_t address);
  // Memory that is not an allocation is pageable memory of the host. Throws kInvalidValue for a
  // range that leaves its allocation, for freed device memory and for NULL.
  Span span(std::uintptr_t address, std::size_t size);
  std::size_t free_bytes(int device);
  std::vector<std::shared_ptr<Allocation>> all();
  // Those of a context that has ended; returns how many there were.
  std::size_t drop(const Context& context);

 private:
  std::uintptr_t next_device_address(std::size_t size);
  std::size_t used_bytes(int device) const;
  std::shared_ptr<Allocation> find_locked(std::uintptr_t address) const;
  bool reserved(std::uintptr_t address) const;

  std::mutex mutex_;
  std::uintptr_t reserve_ = 0;
  std::uintptr_t next_ = 0;
  std::map<std::uintptr_t, std::shared_ptr<Allocation>> allocations_;  // by address
};

}  // namespace fletching::standin

#endif  // FLETCHING_STANDIN_MEMORY_HPP
