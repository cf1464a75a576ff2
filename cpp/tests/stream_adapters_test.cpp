// SPDX-License-Identifier: Apache-2.0
#include "fletching/stream_adapters.hpp"
#include "fletching/waiter.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "alloc_failure.hpp"
#include "stream_support.hpp"

namespace fletching::testing {
namespace {

TEST(StreamAdapters, ConvertsPlainStreamToDeviceStream) {
  Script script{.steps{{}, {}, {.code = ENOSPC}}};
  {
    DeviceArrayStreamReader reader(
        to_device_stream(foreign_stream<ArrowArrayStream>(script)).value(), {.strict = true});
    EXPECT_EQ(reader.device_type(), ARROW_DEVICE_CPU);
    EXPECT_STREQ(reader.schema().value()->name, "values");
    const DeviceArray batch = next_of(reader).value();
    EXPECT_EQ(batch->array.length, 1);
    EXPECT_EQ(batch->device_type, ARROW_DEVICE_CPU);
    EXPECT_EQ(batch->device_id, -1);
    EXPECT_EQ(batch->sync_event, nullptr);
    EXPECT_EQ(length_of(next_of(reader).value()), 2);
    const auto failure = next_of(reader);
    EXPECT_EQ(failure.error().code(), ENOSPC);
    EXPECT_EQ(failure.error().message(), "the foreign text");
  }
  expect_clean(script);
}

TEST(StreamAdapters, ConvertsDeviceStreamToPlainStream) {
  Script script{.steps{{.device_type = ARROW_DEVICE_CUDA_HOST}, {.code = ENOSPC}},
                .device_type = ARROW_DEVICE_CUDA_HOST};
  {
    ArrayStreamReader reader(
        to_array_stream(foreign_stream<ArrowDeviceArrayStream>(script)).value());
    EXPECT_STREQ(reader.schema().value()->name, "values");
    EXPECT_EQ(length_of(next_of(reader).value()), 1);
    EXPECT_EQ(next_of(reader).error().message(), "the foreign text");
  }
  expect_clean(script);
}

TEST(StreamAdapters, RejectsDeviceMemory) {
  for (const ArrowDeviceType type : {ARROW_DEVICE_CUDA, ARROW_DEVICE_EXT_DEV, 9999}) {
    Script script{.device_type = type};
    const auto stream = to_array_stream(foreign_stream<ArrowDeviceArrayStream>(script));
    ASSERT_EQ(code_of(stream), EINVAL);
    EXPECT_NE(stream.error().message().find(device_name(type)), std::string::npos);
    expect_clean(script);
    script = {.steps{{.device_type = type}}};
    DeviceArray batch;
    fill(batch.out(), script, script.steps[0]);
    EXPECT_EQ(code_of(to_array(std::move(batch))), EINVAL);
    EXPECT_EQ(script.live, 0);
  }
}

TEST(Rules, SyncEventWaitedBeforeAccess) {
  constexpr ArrowDeviceType kType = ARROW_DEVICE_CPU;  // has no events except in this test
  Script script;
  int waits = 0;
  const auto with_event = [&] {
    DeviceArray batch;
    fill(batch.out(), script, {.device_type = kType});
    batch->sync_event = &waits;
    return batch;
  };
  EXPECT_EQ(code_of(to_array(with_event())), ENOTSUP);  // the event cannot be waited on

  FletchingWaiter waiter{};
  waiter.synchronize = [](void* /*context*/, void* event, int64_t /*id*/, FletchingMessage*) {
    ++*static_cast<int*>(event);
    return 0;
  };
  ASSERT_TRUE(register_waiter(kType, waiter).ok());
  EXPECT_TRUE(to_array(with_event()).ok());
  EXPECT_EQ(waits, 1);
  waiter.synchronize = [](void* /*context*/, void* /*event*/, int64_t /*id*/, FletchingMessage*) {
    return ETIMEDOUT;
  };
  ASSERT_TRUE(register_waiter(kType, waiter).ok());
  EXPECT_EQ(code_of(to_array(with_event())), ETIMEDOUT);
  EXPECT_TRUE(unregister_waiter(kType));
  EXPECT_EQ(script.live, 0);
}

TEST(StreamAdapters, RoundTripsPlainStream) {
  Script script{.steps{{}, {}}};
  {
    auto device = to_device_stream(foreign_stream<ArrowArrayStream>(script)).value();
    ArrayStreamReader reader(to_array_stream(std::move(device)).value());
    std::vector<std::int64_t> lengths;
    for (auto& batch : reader) lengths.push_back(length_of(*batch));
    EXPECT_EQ(lengths, (std::vector<std::int64_t>{1, 2}));
  }
  expect_clean(script);
}

TEST(StreamAdapters, RejectsReleasedArray) { EXPECT_EQ(code_of(to_array(DeviceArray())), EINVAL); }

TEST(StreamAdapters, RejectsReleasedStreams) {
  EXPECT_EQ(code_of(to_device_stream(ArrayStream())), EINVAL);
  EXPECT_EQ(code_of(to_array_stream(DeviceArrayStream())), EINVAL);
}

TEST(StreamAdapters, SurvivesAllocationFailures) {
  const auto failed = fail_each_allocation([](Injection& inject) {
    Script script;
    const int code =
        inject([&] { return code_of(to_device_stream(foreign_stream<ArrowArrayStream>(script))); });
    EXPECT_EQ(code, inject.fired() ? ENOMEM : 0);
    expect_clean(script);
  });
  EXPECT_EQ(failed, 1);
}

}  // namespace
}  // namespace fletching::testing
