// SPDX-License-Identifier: Apache-2.0
#include "memory.hpp"

#include <sys/mman.h>

#include <cstring>
#include <iterator>
#include <new>
#include <utility>

namespace fletching::standin {
namespace {

// Reserved for the lifetime of the process. A larger range may not fit beside a thread sanitizer.
constexpr std::size_t kReserve = std::size_t{1} << 36;
constexpr std::size_t kAlignment = 256;
constexpr std::size_t kPage = 4096;  // a driver maps whole pages for the host
constexpr int kFresh = 0xA5;         // fresh memory is not zeroed

std::size_t rounded(std::size_t size) { return (size + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

void FreeBytes::operator()(std::byte* bytes) const {
  ::operator delete(bytes, std::align_val_t{kPage});
}

std::byte* Span::pin(std::shared_ptr<Allocation>& owner) const {
  if (pageable_) return data_;
  owner = owner_.lock();
  require(owner != nullptr, Status::kIllegalAddress);
  return data_;
}

std::optional<MemoryKind> Span::kind() const {
  const std::shared_ptr<Allocation> owner = owner_.lock();
  return owner ? std::optional(owner->kind) : std::nullopt;
}

std::uintptr_t Memory::next_device_address(std::size_t size) {
  if (reserve_ == 0) {
    void* reserve =
        mmap(nullptr, kReserve, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    require(reserve != MAP_FAILED, Status::kOutOfMemory);
    reserve_ = next_ = reinterpret_cast<std::uintptr_t>(reserve);
  }
  // A freed address is not reused, so that its use can be detected.
  const std::size_t step = rounded(size) + kAlignment;
  require(reserve_ + kReserve - next_ > step, Status::kOutOfMemory);
  return std::exchange(next_, next_ + step);
}

bool Memory::reserved(std::uintptr_t address) const {
  return reserve_ != 0 && address >= reserve_ && address - reserve_ < kReserve;
}

std::size_t Memory::used_bytes(int device) const {
  std::size_t used = 0;
  for (const auto& [address, each] : allocations_) {
    if (each->kind == MemoryKind::kDevice && each->context->device() == device) used += each->size;
  }
  return used;
}

std::size_t Memory::free_bytes(int device) {
  const std::lock_guard lock(mutex_);
  return kDeviceBytes - used_bytes(device);
}

std::uintptr_t Memory::allocate(MemoryKind kind, std::size_t size,
                                std::shared_ptr<Context> context) {
  require(size > 0, Status::kInvalidValue);
  const std::lock_guard lock(mutex_);
  require(size <= kDeviceBytes - used_bytes(context->device()), Status::kOutOfMemory);
  auto allocation = std::make_shared<Allocation>();
  void* bytes = ::operator new(rounded(size), std::align_val_t{kPage});
  allocation->bytes.reset(static_cast<std::byte*>(bytes));
  std::memset(bytes, kFresh, size);
  allocation->kind = kind;
  allocation->size = size;
  allocation->context = std::move(context);
  allocation->address = kind == MemoryKind::kDevice ? next_device_address(size)
                                                    : reinterpret_cast<std::uintptr_t>(bytes);
  const std::uintptr_t address = allocation->address;
  allocations_.emplace(address, std::move(allocation));
  return address;
}

std::shared_ptr<Allocation> Memory::take(std::uintptr_t address, bool host) {
  const std::lock_guard lock(mutex_);
  const auto found = allocations_.find(address);
  require(found != allocations_.end(), Status::kInvalidValue);
  require((found->second->kind == MemoryKind::kHost) == host, Status::kInvalidValue);
  std::shared_ptr<Allocation> taken = std::move(found->second);
  allocations_.erase(found);
  return taken;
}

std::shared_ptr<Allocation> Memory::find_locked(std::uintptr_t address) const {
  const auto after = allocations_.upper_bound(address);
  if (after == allocations_.begin()) return nullptr;
  const auto& [begin, allocation] = *std::prev(after);
  return address - begin < allocation->size ? allocation : nullptr;
}

std::shared_ptr<Allocation> Memory::find(std::uintptr_t address) {
  const std::lock_guard lock(mutex_);
  return find_locked(address);
}

Span Memory::span(std::uintptr_t address, std::size_t size) {
  require(address != 0, Status::kInvalidValue);
  const std::lock_guard lock(mutex_);
  Span span;
  const std::shared_ptr<Allocation> owner = find_locked(address);
  if (!owner) {
    require(!reserved(address), Status::kInvalidValue);
    span.pageable_ = true;
    span.data_ = reinterpret_cast<std::byte*>(address);
    return span;
  }
  const std::size_t offset = address - owner->address;
  require(size <= owner->size - offset, Status::kInvalidValue);
  span.owner_ = owner;
  span.data_ = owner->bytes.get() + offset;
  return span;
}

std::vector<std::shared_ptr<Allocation>> Memory::all() {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Allocation>> live;
  live.reserve(allocations_.size());
  for (const auto& [address, each] : allocations_) live.push_back(each);
  return live;
}

std::size_t Memory::drop(const Context& context) {
  const std::lock_guard lock(mutex_);
  return std::erase_if(allocations_,
                       [&](const auto& each) { return each.second->context.get() == &context; });
}

}  // namespace fletching::standin
