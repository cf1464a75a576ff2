// SPDX-License-Identifier: Apache-2.0
//
// How many allocations and locks of a mutex a program has made, when it is compiled with
// FLETCHING_COUNT; counting takes time, so times are measured without. For one source file.
#ifndef FLETCHING_BENCHMARKS_COUNTERS_HPP
#define FLETCHING_BENCHMARKS_COUNTERS_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>

#ifdef FLETCHING_COUNT
#include <dlfcn.h>
#include <pthread.h>

#include <cstdlib>
#include <new>
#endif

struct Counters {
  std::int64_t allocations = 0;
  std::int64_t locks = 0;

  static inline std::atomic<std::int64_t> all_allocations{0};
  static inline std::atomic<std::int64_t> all_locks{0};

  static Counters now() { return {all_allocations, all_locks}; }

#ifdef FLETCHING_COUNT
  static constexpr bool kOn = true;
#else
  static constexpr bool kOn = false;
#endif
};

#ifdef FLETCHING_COUNT
void* operator new(std::size_t size) {
  ++Counters::all_allocations;
  void* memory = std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

extern "C" int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  using Lock = int (*)(pthread_mutex_t*);
  static std::atomic<Lock> lock{nullptr};
  Lock found = lock;
  if (found == nullptr) {
    found = reinterpret_cast<Lock>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
    lock = found;
  }
  ++Counters::all_locks;
  return found(mutex);
}
#endif

#endif  // FLETCHING_BENCHMARKS_COUNTERS_HPP
