// SPDX-License-Identifier: Apache-2.0
//
// Replaces operator new and pthread_mutex_lock with counting versions.
#include "counters.hpp"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

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
