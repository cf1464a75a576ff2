// SPDX-License-Identifier: Apache-2.0
// Tests whether a call waits for gated work, without a clock: a call that waits returns only after
// the gate is opened, and a call that does not wait is made by the thread that opens the gate.
#ifndef FLETCHING_STANDIN_TESTS_WAITING_HPP
#define FLETCHING_STANDIN_TESTS_WAITING_HPP

#include <atomic>
#include <cstdint>
#include <thread>

#include "standin.h"

// Makes the call on another thread and calls `open` once `function` is entered. Returns whether the
// call returned after that. A call that does not wait may appear to return late, but not the other
// way round, so this yields kChances times before opening.
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
