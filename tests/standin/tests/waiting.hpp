// SPDX-License-Identifier: Apache-2.0
// Whether a call waits for work that is held back. No clock decides: a call that waits returns
// after the gate was opened, and one that does not is made by the thread that opens it.
#ifndef FLETCHING_STANDIN_TESTS_WAITING_HPP
#define FLETCHING_STANDIN_TESTS_WAITING_HPP

#include <atomic>
#include <cstdint>
#include <thread>

#include "standin.h"

// Makes the call on another thread, and calls `open` once `function` was entered. Whether the call
// returned after that. A call that does not wait may be seen to return late, and not the other way
// round, so it gets this many chances.
template <class Call, class Open>
bool returns_after(const char* function, Call call, Open open) {
  constexpr int kChances = 2000;
  std::atomic<bool> opened = false;
  bool was_open = false;
  const std::int64_t calls = FletchingStandinCalls(function);
  std::thread thread([&] {
    call();
    was_open = opened;
  });
  while (FletchingStandinCalls(function) == calls) std::this_thread::yield();
  for (int i = 0; i < kChances; ++i) std::this_thread::yield();
  opened = true;
  open();
  thread.join();
  return was_open;
}

#endif  // FLETCHING_STANDIN_TESTS_WAITING_HPP
