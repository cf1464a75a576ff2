// SPDX-License-Identifier: Apache-2.0
// Fixture with the primary context of device 0, and the checks at the end of a test.
#ifndef FLETCHING_STANDIN_TESTS_CUDA_FIXTURE_HPP
#define FLETCHING_STANDIN_TESTS_CUDA_FIXTURE_HPP

#include <cuda.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <vector>

#include "standin.h"

inline CUdeviceptr address(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

// A word in pinned memory for which a stream waits.
class Gate {
 public:
  Gate() {
    void* word = nullptr;
    EXPECT_EQ(cuMemHostAlloc(&word, sizeof(std::uint32_t), CU_MEMHOSTALLOC_DEVICEMAP),
              CUDA_SUCCESS);
    word_ = static_cast<std::uint32_t*>(word);
    *word_ = 0;
  }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  ~Gate() { free(); }

  // Call before the context is destroyed.
  void free() {
    if (word_ == nullptr) return;
    EXPECT_EQ(cuMemFreeHost(word_), CUDA_SUCCESS);
    word_ = nullptr;
  }

  void shut(CUstream stream, std::uint32_t value = 1) {
    EXPECT_EQ(cuStreamWaitValue32(stream, address(word_), value, CU_STREAM_WAIT_VALUE_GEQ),
              CUDA_SUCCESS);
  }
  void open(std::uint32_t value = 1) {
    std::atomic_ref<std::uint32_t>(*word_).store(value, std::memory_order_release);
  }
  CUdeviceptr word() const { return address(word_); }

 private:
  std::uint32_t* word_ = nullptr;
};

class Cuda : public testing::Test {
 protected:
  static constexpr int kElements = 1000;

  void SetUp() override {
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
    FletchingStandinResetFaults();
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context_, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxPushCurrent(context_), CUDA_SUCCESS);
    FletchingStandinLeaks(&before_);
  }

  void TearDown() override {
    FletchingStandinCounts after{};
    FletchingStandinLeaks(&after);
    EXPECT_EQ(after.streams, before_.streams);
    EXPECT_EQ(after.events, before_.events);
    EXPECT_EQ(after.modules, before_.modules);
    EXPECT_EQ(after.device_memory, before_.device_memory);
    EXPECT_EQ(after.host_memory, before_.host_memory);
    EXPECT_EQ(after.managed_memory, before_.managed_memory);
    CUcontext popped = nullptr;
    ASSERT_EQ(cuCtxPopCurrent(&popped), CUDA_SUCCESS);
    EXPECT_EQ(popped, context_);
    ASSERT_EQ(cuDevicePrimaryCtxRelease(0), CUDA_SUCCESS);
  }

  static CUstream stream(unsigned int flags = CU_STREAM_NON_BLOCKING) {
    CUstream made = nullptr;
    EXPECT_EQ(cuStreamCreate(&made, flags), CUDA_SUCCESS);
    return made;
  }

  static CUevent event(unsigned int flags = CU_EVENT_DISABLE_TIMING) {
    CUevent made = nullptr;
    EXPECT_EQ(cuEventCreate(&made, flags), CUDA_SUCCESS);
    return made;
  }

  // Device memory with kElements zeros of type int32.
  static CUdeviceptr numbers() {
    CUdeviceptr made = 0;
    EXPECT_EQ(cuMemAlloc(&made, kElements * sizeof(std::int32_t)), CUDA_SUCCESS);
    const CUstream scratch = stream();
    EXPECT_EQ(cuMemsetD8Async(made, 0, kElements * sizeof(std::int32_t), scratch), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamSynchronize(scratch), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamDestroy(scratch), CUDA_SUCCESS);
    return made;
  }

  // Copies the last number on the stream and waits for it, as pageable memory demands.
  static std::int32_t last(CUdeviceptr numbers, CUstream on) {
    std::int32_t value = -1;
    const CUdeviceptr from = numbers + (kElements - 1) * sizeof(value);
    EXPECT_EQ(cuMemcpyDtoHAsync(&value, from, sizeof(value), on), CUDA_SUCCESS);
    return value;
  }

  // data[i] += value, by the kernel.
  static CUresult add(CUfunction kernel, CUstream on, CUdeviceptr data, std::int32_t value) {
    std::int64_t n = kElements;
    void* arguments[] = {&data, &n, &value};
    return cuLaunchKernel(kernel, 4, 1, 1, 256, 1, 1, 0, on, arguments, nullptr);
  }

  CUcontext context_ = nullptr;

 private:
  FletchingStandinCounts before_{};
};

#endif  // FLETCHING_STANDIN_TESTS_CUDA_FIXTURE_HPP
