// SPDX-License-Identifier: Apache-2.0
// `driver` mode of the HIP stand-in, as in cuda_driver_test.cpp. Run with
// FLETCHING_STANDIN_MODE=driver and GPU_MAX_HW_QUEUES=4.
#include <gtest/gtest.h>
#include <hip/hip_runtime_api.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "waiting.hpp"

namespace {

constexpr std::size_t kBytes = 4096;
constexpr int kQueues = 4;

using Call = std::function<hipError_t()>;

class HipDriver : public testing::Test {
 protected:
  void SetUp() override {
    void* word = nullptr;
    ASSERT_EQ(hipExtMallocWithFlags(&word, 8, hipMallocSignalMemory), hipSuccess);
    word_ = static_cast<std::uint32_t*>(word);
    ASSERT_EQ(hipMalloc(&device_, kBytes), hipSuccess);
    for (void** each : {&pinned_, &second_}) {
      ASSERT_EQ(hipHostMalloc(each, kBytes, hipHostMallocMapped), hipSuccess);
    }
    gated_ = stream();
    free_ = stream();
    for (const auto& [to, from] : {std::pair(device_, pinned_), {pinned_, device_}}) {
      ASSERT_EQ(copy(to, from, free_), hipSuccess);
    }
    ASSERT_EQ(copy(second_, pinned_, free_), hipSuccess);
  }
  void TearDown() override {
    open();
    for (const hipStream_t each : {gated_, free_}) EXPECT_EQ(hipStreamDestroy(each), hipSuccess);
    for (void* each : {static_cast<void*>(word_), device_}) EXPECT_EQ(hipFree(each), hipSuccess);
    for (void* each : {pinned_, second_}) EXPECT_EQ(hipHostFree(each), hipSuccess);
    EXPECT_EQ(FletchingStandinLeaks(nullptr), 0);
  }

  static hipStream_t stream() {
    hipStream_t made = nullptr;
    EXPECT_EQ(hipStreamCreateWithFlags(&made, hipStreamNonBlocking), hipSuccess);
    return made;
  }
  static hipError_t copy(void* to, const void* from, hipStream_t on) {
    return hipMemcpyAsync(to, from, kBytes, hipMemcpyDefault, on);
  }
  void open() { std::atomic_ref<std::uint32_t>(*word_).store(1); }
  void shut(hipStream_t on) {
    std::atomic_ref<std::uint32_t>(*word_).store(0);
    EXPECT_EQ(hipStreamWaitValue32(on, word_, 1, hipStreamWaitValueEq, 0xFFFFFFFF), hipSuccess);
  }
  bool waits(const char* function, const Call& call) {
    shut(gated_);
    const bool late =
        returns_after(function, [&] { EXPECT_EQ(call(), hipSuccess); }, [&] { open(); });
    EXPECT_EQ(hipStreamSynchronize(gated_), hipSuccess);
    return late;
  }

  std::uint32_t* word_ = nullptr;
  void* device_ = nullptr;
  void* pinned_ = nullptr;
  void* second_ = nullptr;
  hipStream_t gated_ = nullptr;
  hipStream_t free_ = nullptr;
};

TEST_F(HipDriver, AllocationsAndFreesWaitForDevice) {
  void* device = nullptr;
  void* managed = nullptr;
  void* pinned = nullptr;
  void* word = nullptr;
  const std::vector<std::pair<const char*, Call>> calls{
      {"hipMalloc", [&] { return hipMalloc(&device, kBytes); }},
      {"hipMallocManaged", [&] { return hipMallocManaged(&managed, kBytes, hipMemAttachGlobal); }},
      {"hipHostMalloc", [&] { return hipHostMalloc(&pinned, kBytes, 0); }},
      {"hipExtMallocWithFlags",
       [&] { return hipExtMallocWithFlags(&word, 8, hipMallocSignalMemory); }},
      {"hipFree", [&] { return hipFree(device); }},
      {"hipFree", [&] { return hipFree(managed); }},
      {"hipFree", [&] { return hipFree(word); }},
      {"hipHostFree", [&] { return hipHostFree(pinned); }},
  };
  for (const auto& [function, call] : calls) EXPECT_TRUE(waits(function, call)) << function;
}

TEST_F(HipDriver, HostToHostCopyWaitsForStream) {
  EXPECT_TRUE(waits("hipMemcpyAsync", [&] { return copy(second_, pinned_, gated_); }));
  shut(gated_);
  EXPECT_EQ(copy(second_, pinned_, free_), hipSuccess);
  EXPECT_EQ(copy(pinned_, device_, gated_), hipSuccess);
  EXPECT_EQ(hipStreamQuery(gated_), hipErrorNotReady);
}

TEST_F(HipDriver, StreamDestroyWaitsForWork) {
  const hipStream_t busy = stream();
  EXPECT_TRUE(waits("hipStreamDestroy", [&] {
    shut(busy);
    return hipStreamDestroy(busy);
  }));
}

TEST_F(HipDriver, StreamsShareHardwareQueuesRoundRobin) {
  std::vector<hipStream_t> streams;
  streams.reserve(kQueues + 1);
  for (int i = 0; i <= kQueues; ++i) streams.push_back(stream());
  shut(streams[0]);
  // Disjoint parts, because the streams are not ordered.
  constexpr std::size_t kPart = kBytes / (kQueues + 1);
  for (int i = 0; i <= kQueues; ++i) {
    void* part = static_cast<std::byte*>(device_) + (i * kPart);
    EXPECT_EQ(hipMemcpyAsync(part, pinned_, kPart, hipMemcpyDefault, streams[i]), hipSuccess);
  }
  for (int i = 1; i < kQueues; ++i) EXPECT_EQ(hipStreamSynchronize(streams[i]), hipSuccess);
  EXPECT_EQ(hipStreamQuery(streams[kQueues]), hipErrorNotReady);
  open();
  for (const hipStream_t each : streams) EXPECT_EQ(hipStreamDestroy(each), hipSuccess);
}

}  // namespace
