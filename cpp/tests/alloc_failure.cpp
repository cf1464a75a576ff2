#include "alloc_failure.hpp"

#ifdef _WIN32
#include <malloc.h>
#endif

#include <atomic>
#include <cstdlib>
#include <limits>
#include <new>
#include <utility>

namespace fletching::testing {
namespace {

constexpr int64_t kNever = -1;
constexpr size_t kMost = std::numeric_limits<size_t>::max() / (sizeof(size_t) == 8 ? 1 << 24 : 2);

std::atomic<int64_t> allocated{0};
std::atomic<int64_t> freed{0};

// Counts down; the allocation at 0 fails. It continues below 0; kNever or less never fails.
std::atomic<int64_t> until_failure{kNever};
std::atomic<bool> on_every_thread{false};
std::atomic<bool> has_fired{false};
thread_local bool is_chosen = false;
thread_local const std::function<void()>* within = nullptr;

bool fails_now() noexcept {
  if (!is_chosen && !on_every_thread.load(std::memory_order_relaxed)) return false;
  if (until_failure.load(std::memory_order_relaxed) <= kNever) return false;
  if (until_failure.fetch_sub(1, std::memory_order_relaxed) != 0) return false;
  has_fired.store(true, std::memory_order_relaxed);
  return true;
}

// Windows has no aligned_alloc, and a separate function frees aligned memory.
#ifdef _WIN32
void* aligned(size_t size, size_t alignment) noexcept { return _aligned_malloc(size, alignment); }
void free_aligned(void* memory) noexcept { _aligned_free(memory); }
#else
void* aligned(size_t size, size_t alignment) noexcept {
  return alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__
             ? std::malloc(size)
             : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}
void free_aligned(void* memory) noexcept { std::free(memory); }
#endif

void* allocate(size_t size, size_t alignment) noexcept {
  // No machine has this much memory, and a sanitizer would abort.
  if (fails_now() || size > kMost) return nullptr;
  if (within != nullptr) (*std::exchange(within, nullptr))();
  if (size == 0) size = 1;
  void* memory = aligned(size, alignment);
  if (memory != nullptr) allocated.fetch_add(1, std::memory_order_relaxed);
  return memory;
}

void* allocate_or_throw(size_t size, size_t alignment) {
  void* memory = allocate(size, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void deallocate(void* memory) noexcept {
  if (memory == nullptr) return;
  freed.fetch_add(1, std::memory_order_relaxed);
  free_aligned(memory);
}

constexpr size_t kDefault = __STDCPP_DEFAULT_NEW_ALIGNMENT__;

}  // namespace

int64_t allocations() noexcept { return allocated.load(); }
int64_t live_allocations() noexcept { return allocated.load() - freed.load(); }

FailAllocation::FailAllocation(int64_t nth, FailOn where) noexcept {
  has_fired.store(false);
  is_chosen = true;
  on_every_thread.store(where == FailOn::kEveryThread);
  until_failure.store(nth);
}

FailAllocation::~FailAllocation() {
  until_failure.store(kNever);
  on_every_thread.store(false);
  is_chosen = false;
}

bool FailAllocation::fired() const noexcept { return has_fired.load(); }

WithinAllocation::WithinAllocation(std::function<void()> call) noexcept : call_(std::move(call)) {
  within = &call_;
}

WithinAllocation::~WithinAllocation() { within = nullptr; }

}  // namespace fletching::testing

// All forms, because a form left to the sanitizer's runtime would not be counted.
// NOLINTBEGIN(misc-new-delete-overloads)
namespace t = fletching::testing;
using std::align_val_t;
using std::nothrow_t;

void* operator new(size_t size) { return t::allocate_or_throw(size, t::kDefault); }
void* operator new[](size_t size) { return t::allocate_or_throw(size, t::kDefault); }
void* operator new(size_t size, align_val_t alignment) {
  return t::allocate_or_throw(size, static_cast<size_t>(alignment));
}
void* operator new[](size_t size, align_val_t alignment) {
  return t::allocate_or_throw(size, static_cast<size_t>(alignment));
}
void* operator new(size_t size, const nothrow_t& /*tag*/) noexcept {
  return t::allocate(size, t::kDefault);
}
void* operator new[](size_t size, const nothrow_t& /*tag*/) noexcept {
  return t::allocate(size, t::kDefault);
}
void* operator new(size_t size, align_val_t alignment, const nothrow_t& /*tag*/) noexcept {
  return t::allocate(size, static_cast<size_t>(alignment));
}
void* operator new[](size_t size, align_val_t alignment, const nothrow_t& /*tag*/) noexcept {
  return t::allocate(size, static_cast<size_t>(alignment));
}

void operator delete(void* memory) noexcept { t::deallocate(memory); }
void operator delete[](void* memory) noexcept { t::deallocate(memory); }
void operator delete(void* memory, size_t /*size*/) noexcept { t::deallocate(memory); }
void operator delete[](void* memory, size_t /*size*/) noexcept { t::deallocate(memory); }
void operator delete(void* memory, align_val_t /*alignment*/) noexcept { t::deallocate(memory); }
void operator delete[](void* memory, align_val_t /*alignment*/) noexcept { t::deallocate(memory); }
void operator delete(void* memory, size_t /*size*/, align_val_t /*alignment*/) noexcept {
  t::deallocate(memory);
}
void operator delete[](void* memory, size_t /*size*/, align_val_t /*alignment*/) noexcept {
  t::deallocate(memory);
}
void operator delete(void* memory, const nothrow_t& /*tag*/) noexcept { t::deallocate(memory); }
void operator delete[](void* memory, const nothrow_t& /*tag*/) noexcept { t::deallocate(memory); }
void operator delete(void* memory, align_val_t /*a*/, const nothrow_t& /*tag*/) noexcept {
  t::deallocate(memory);
}
void operator delete[](void* memory, align_val_t /*a*/, const nothrow_t& /*tag*/) noexcept {
  t::deallocate(memory);
}
// NOLINTEND(misc-new-delete-overloads)
