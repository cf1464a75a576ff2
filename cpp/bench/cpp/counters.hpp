// SPDX-License-Identifier: Apache-2.0
//
// Counts allocations and mutex locks in a program compiled with FLETCHING_COUNT and counters.cpp.
// Counting takes time, so times are measured without it.
#ifndef FLETCHING_BENCHMARKS_COUNTERS_HPP
#define FLETCHING_BENCHMARKS_COUNTERS_HPP

#include <atomic>
#include <cstdint>

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

#endif  // FLETCHING_BENCHMARKS_COUNTERS_HPP
