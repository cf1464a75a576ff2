// Tests the allocation-failure helper itself.
#include "alloc_failure.hpp"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <thread>
#include <utility>

namespace fletching::testing {
namespace {

struct alignas(64) OverAligned {
  char bytes[64];
};

// Prevents the compiler from eliding an allocation whose result is unused.
void* volatile seen = nullptr;

template <class T>
T* see(T* allocated) noexcept {
  seen = allocated;
  return allocated;
}

// Makes two allocations. Returns false if one fails.
bool allocate_twice() {
  try {
    const std::unique_ptr<int> one(see(new int));
    const std::unique_ptr<OverAligned> two(see(new OverAligned));
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

TEST(AllocFailure, EachAllocationFailsOnce) {
  int rounds = 0;
  const int64_t failed = fail_each_allocation([&](Injection& inject) {
    ++rounds;
    const bool worked = inject(allocate_twice);
    EXPECT_EQ(worked, !inject.fired());
  });
  EXPECT_EQ(failed, 2);
  EXPECT_EQ(rounds, 3);
}

TEST(AllocFailure, EveryNewOverloadFails) {
  const auto fails = [](auto allocate) {
    const FailAllocation failure(0);
    try {
      return see(allocate()) == nullptr;
    } catch (const std::bad_alloc&) {
      return true;
    }
  };
  EXPECT_TRUE(fails([] { return new int; }));
  EXPECT_TRUE(fails([] { return new int[2]; }));
  EXPECT_TRUE(fails([] { return new OverAligned; }));
  EXPECT_TRUE(fails([] { return new OverAligned[2]; }));
  EXPECT_TRUE(fails([] { return new (std::nothrow) int; }));
  EXPECT_TRUE(fails([] { return new (std::nothrow) int[2]; }));
  EXPECT_TRUE(fails([] { return new (std::nothrow) OverAligned; }));
  EXPECT_TRUE(fails([] { return new (std::nothrow) OverAligned[2]; }));
}

int* leaked = nullptr;

TEST(AllocFailure, ReportsLeak) {
  EXPECT_NONFATAL_FAILURE(fail_each_allocation([](Injection& inject) {
                            inject([] { leaked = new (std::nothrow) int; });
                          }),
                          "left behind when allocation 1 failed");
  delete std::exchange(leaked, nullptr);
}

TEST(AllocFailure, OtherThreadFailsOnRequest) {
  for (const FailOn where : {FailOn::kThisThread, FailOn::kEveryThread}) {
    std::atomic<int> go{0};
    bool worked = true;
    std::thread other([&] {
      go.wait(0);
      worked = allocate_twice();
    });
    {
      const FailAllocation failure(0, where);
      go.store(1);
      go.notify_one();
      other.join();
      EXPECT_EQ(failure.fired(), where == FailOn::kEveryThread);
    }
    EXPECT_EQ(worked, where == FailOn::kThisThread);
  }
}

}  // namespace
}  // namespace fletching::testing
