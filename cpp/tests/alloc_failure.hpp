// SPDX-License-Identifier: Apache-2.0
//
// Allocation failures: fails each allocation of a piece of code once and counts leaks.
//
// Link the target fletching_alloc_failure, which replaces the program's operator new and delete.
#ifndef FLETCHING_TESTS_ALLOC_FAILURE_HPP
#define FLETCHING_TESTS_ALLOC_FAILURE_HPP

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <utility>

namespace fletching::testing {

/// Allocations by operator new on all threads since the program started.
int64_t allocations() noexcept;

/// Allocations on all threads that have not been freed.
int64_t live_allocations() noexcept;

enum class FailOn { kThisThread, kEveryThread };

/// During its lifetime, allocation number `nth` (from 0) throws std::bad_alloc; all others succeed.
/// Only one may exist in a program.
class FailAllocation {
 public:
  explicit FailAllocation(int64_t nth, FailOn where = FailOn::kThisThread) noexcept;
  ~FailAllocation();
  FailAllocation(const FailAllocation&) = delete;
  FailAllocation& operator=(const FailAllocation&) = delete;

  /// Whether the allocation was made and has failed.
  [[nodiscard]] bool fired() const noexcept;
};

/// Runs `call` once, within this thread's next allocation, so that a test can intervene where the
/// code under test makes no other calls. Only one may exist per thread.
class WithinAllocation {
 public:
  explicit WithinAllocation(std::function<void()> call) noexcept;
  ~WithinAllocation();
  WithinAllocation(const WithinAllocation&) = delete;
  WithinAllocation& operator=(const WithinAllocation&) = delete;

 private:
  std::function<void()> call_;
};

/// The argument of a round of fail_each_allocation: runs code in which one allocation fails.
class Injection {
 public:
  Injection(int64_t nth, FailOn where) noexcept : nth_(nth), where_(where) {}

  /// Runs `code` and returns its result. Call it once per round.
  template <class Code>
  decltype(auto) operator()(Code&& code) {
    const FailAllocation failure(nth_, where_);
    const Watch watch{failure, fired_};
    return std::forward<Code>(code)();
  }

  /// Whether an allocation has failed in this round; false in the last round.
  [[nodiscard]] bool fired() const noexcept { return fired_; }

 private:
  struct Watch {
    const FailAllocation& failure;
    bool& fired;
    ~Watch() { fired = failure.fired(); }
  };

  int64_t nth_;
  FailOn where_;
  bool fired_ = false;
};

/// Returns the errno value of a Result; 0 if it has a value.
template <class Result>
int code_of(const Result& result) noexcept {
  return result.ok() ? 0 : result.error().code();
}

/// Calls `round(inject)` repeatedly. The first call fails the first allocation of the code that
/// `inject` runs, the second call the second one, and so on until no allocation fails. Code of a
/// round outside `inject` never fails to allocate; it must free its memory.
///
///     const int64_t failed = fail_each_allocation([](Injection& inject) {
///       Result<Schema> schema = inject([] { return make_schema({.format = "i"}); });
///       EXPECT_EQ(code_of(schema), inject.fired() ? ENOMEM : 0);
///     });
///     EXPECT_EQ(failed, 1);  // the number of allocations, each of which has failed once
template <class Round>
int64_t fail_each_allocation(Round&& round, FailOn where = FailOn::kThisThread) {
  for (int64_t nth = 0;; ++nth) {
    const int64_t before = live_allocations();
    Injection inject(nth, where);
    round(inject);
    if (::testing::Test::HasFatalFailure()) return nth;
    EXPECT_EQ(live_allocations(), before) << "left behind when allocation " << nth << " failed";
    if (!inject.fired()) return nth;
  }
}

}  // namespace fletching::testing

#endif  // FLETCHING_TESTS_ALLOC_FAILURE_HPP
