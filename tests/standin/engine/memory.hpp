// SPDX-License-Identifier: Apache-2.0
// Device, pinned and managed memory. Addresses of device memory are reserved and unreadable, so
// host code that reads them faults. The contents are stored elsewhere, and only stream work
// accesses them.
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
  kSignal,  // the word a HIP stream waits for; accessible to the host, and freed by hipFree
};

struct FreeBytes {
  void operator()(std::byte* bytes) const;
};

struct Allocation {
  MemoryKind kind;
  std::uintptr_t address;
  std::size_t size;
  std::shared_ptr<Context> context;
  std::unique_ptr<std::byte, FreeBytes> bytes;  // host and managed memory: at `address`
};

// An address range that a call named.
class Span {
 public:
  bool pageable() const { return pageable_; }
  // Empty for pageable memory and for freed memory.
  std::optional<MemoryKind> kind() const;

  // Returns the address of the bytes, and the allocation, which `owner` keeps alive. Throws
  // kIllegalAddress if it was freed in the meantime.
  std::byte* pin(std::shared_ptr<Allocation>& owner) const;

 private:
  friend class Memory;
  bool pageable_ = false;
  std::weak_ptr<Allocation> owner_;
  std::byte* data_ = nullptr;
};

class Memory {
 public:
  static constexpr std::size_t kDeviceBytes = std::size_t{16} << 30;  // reported size of a device

  // Throws kOutOfMemory when the reported size is used up.
  std::uintptr_t allocate(MemoryKind kind, std::size_t size, std::shared_ptr<Context> context);
  // Throws kInvalidValue unless an allocation of these kinds begins at the address.
  std::shared_ptr<Allocation> take(std::uintptr_t address, bool host);
  // NULL if the address is in no allocation.
  std::shared_ptr<Allocation> find(std::uintptr_t address);
  // Memory outside all allocations is pageable host memory. Throws kInvalidValue for a range that
  // leaves its allocation, for freed device memory and for NULL.
  Span span(std::uintptr_t address, std::size_t size);
  std::size_t free_bytes(int device);
  std::vector<std::shared_ptr<Allocation>> all();
  // Drops the allocations of an ended context and returns their number.
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
