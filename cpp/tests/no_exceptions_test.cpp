// SPDX-License-Identifier: Apache-2.0
//
// The library compiled without exceptions: errors are still values. Without memory, building an
// array returns an error; all other functions terminate the program.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <thread>

#include "alloc_failure.hpp"
#include "fletching/array_builder.hpp"
#include "fletching/owner.hpp"

#if defined(__cpp_exceptions)
#error "compile this with -fno-exceptions"
#endif

namespace fletching::testing {
namespace {

struct EmptyObject {};

TEST(NoExceptions, ErrorsAreValues) {
  const Result<Array> child = Array().take_child(0);
  ASSERT_FALSE(child.ok());
  EXPECT_EQ(child.error().code(), EINVAL);
}

TEST(NoExceptions, ArrayAllocationFailureReturnsError) {
  const int64_t failed = fail_each_allocation([](Injection& inject) {
    const auto array = inject([] {
      return make_device_array({.length = 0}, {nullptr, nullptr}, EmptyObject(), ARROW_DEVICE_CPU,
                               -1);
    });
    EXPECT_EQ(code_of(array), inject.fired() ? ENOMEM : 0);
  });
  EXPECT_EQ(failed, 1);
}

// Runs on a separate thread, because GoogleTest was compiled with exceptions and would catch this
// one.
TEST(NoExceptionsDeathTest, ErrorTextAllocationFailureTerminates) {
  const auto fail = [] {
    const FailAllocation failure(0);
    (void)Array().take_child(0);
  };
  EXPECT_DEATH(std::thread(fail).join(), "bad_alloc");
}

TEST(NoExceptionsDeathTest, ValueOfErrorPrintsAndTerminates) {
  EXPECT_DEATH((void)Array().take_child(0).value(), "fletching: take_child");
}

}  // namespace
}  // namespace fletching::testing
