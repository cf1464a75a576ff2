// SPDX-License-Identifier: Apache-2.0
//
// SYCL events with the waiter of fletching/sycl.hpp.
#include <gtest/gtest.h>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include "fletching/sycl.hpp"
#include "fletching/sync_event.hpp"

namespace fletching {
namespace {

class Sycl : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(register_sycl_waiter().ok()); }
  void TearDown() override { unregister_waiter(ARROW_DEVICE_ONEAPI); }
};

SyncEvent view(sycl::event& event) { return {ARROW_DEVICE_ONEAPI, 0, &event}; }

// Without a gate: a host task that waits also blocks the process's other queue.
TEST_F(Sycl, WaitsForWorkOnOtherQueue) {
  constexpr std::size_t kSize = std::size_t{1} << 24;
  sycl::queue producer;
  sycl::queue consumer;
  char* data = sycl::malloc_shared<char>(kSize, producer);
  std::vector<char> seen(kSize);
  sycl::event written = producer.memset(data, 1, kSize);
  EXPECT_TRUE(view(written).ready().ok());
  const Status waiting = view(written).wait_on({ARROW_DEVICE_ONEAPI, &consumer});
  EXPECT_TRUE(waiting.ok()) << waiting.error().message();
  consumer.memcpy(seen.data(), data, kSize).wait();
  EXPECT_EQ(seen.back(), 1);
  EXPECT_TRUE(view(written).synchronize().ok());
  EXPECT_TRUE(*view(written).ready());
  sycl::free(data, producer);
}

TEST_F(Sycl, HasNoDefaultQueue) {
  sycl::event event;
  EXPECT_EQ(view(event).wait_on({ARROW_DEVICE_ONEAPI, nullptr}).error().code(), EINVAL);
}

TEST_F(Sycl, ExceptionBecomesError) {
  FletchingMessage message{};
  const int code =
      detail::sycl_operation(&message, []() -> int { throw std::runtime_error("no device"); });
  EXPECT_EQ(code, EIO);
  EXPECT_EQ(std::string(message.text), "no device");
}

}  // namespace
}  // namespace fletching
