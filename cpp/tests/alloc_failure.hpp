// SPDX-License-Identifier: Apache-2.0
//
// Memory that runs out on demand: every allocation of a piece of code fails once, and whatever the
// code left behind is counted.
//
// Link the target fletching_alloc_failure; it replaces operator new and delete of the program.
#ifndef FLETCHING_TESTS_ALLOC_FAILURE_HPP
#define FLETCHING_TESTS_ALLOC_FAILURE_HPP

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <utility>

namespace fletching::testing {

/// Allocations by operator new since the program began, of all threads.
int64_t allocations() noexcept;

/// Allocations that have not been freed yet, of all threads.
int64_t live_allocations() noexcept;

enum class FailOn { kThisThread, kEveryThread };

/// While it lives, allocation number `nth` (from 0) throws std::bad_alloc, those before and after
/// it work. One at a time in a program.
class FailAllocation {
 public:
  explicit FailAllocation(int64_t nth, FailOn where = FailOn::kThisThread) noexcept;
  ~FailAllocation();
  FailAllocation(const FailAllocation&) = delete;
  FailAllocation& operator=(const FailAllocation&) = delete;

  /// Whether the allocation has been asked for, and has failed.
  [[nodiscard]] bool fired() const noexcept;
};

/// While it lives, `call` runs within the next allocation of this thread, once: a test looks in
/// where the code under test calls nothing else. One at a time on a thread.
class WithinAllocation {
 public:
  explicit WithinAllocation(std::function<void()> call) noexcept;
  ~WithinAllocation();
  WithinAllocation(const WithinAllocation&) = delete;
  WithinAllocation& operator=(const WithinAllocation&) = delete;

 private:
  std::function<void()> call_;
};

/// What a round of fail_each_allocation gets: runs code in which one allocation fails.
class Injection {
 public:
  Injection(int64_t nth, FailOn where) noexcept : nth_(nth), where_(where) {}

  /// Runs `code` and returns what it returns. To be called once in a round.
  template <class Code>
  decltype(auto) operator()(Code&& code) {
    const FailAllocation failure(nth_, where_);
    const Watch watch{failure, fired_};
    return std::forward<Code>(code)();
  }

  /// Whether an allocation has failed in this round. In the last round none does.
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

/// The errno value of a Result, 0 when there is a value.
template <class Result>
int code_of(const Result& result) noexcept {
  return result.ok() ? 0 : result.error().code();
}

/// Calls `round(inject)` again and again. In the first call the first allocation of what `inject`
/// runs fails, in the second the second, until none is left to fail. What a round sets up and
/// checks outside `inject` never fails to allocate; it has to free what it allocated.
///
///     const int64_t failed = fail_each_allocation([](Injection& inject) {
///       Result<Schema> schema = inject([] { return make_schema({.format = "i"}); });
///       EXPECT_EQ(code_of(schema), inject.fired() ? ENOMEM : 0);
///     });
///     EXPECT_EQ(failed, 1);  // how many allocations there were, and each has failed once
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
