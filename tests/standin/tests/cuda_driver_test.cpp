// SPDX-License-Identifier: Apache-2.0
// `driver` mode: calls that wait for a stream behind a shut gate, and calls that do not. Run with
// FLETCHING_STANDIN_MODE=driver and CUDA_DEVICE_MAX_CONNECTIONS=4, and with and without
// CUDA_MODULE_LOADING=EAGER.
#include <cstdlib>
#include <functional>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "cuda_fixture.hpp"
#include "waiting.hpp"

namespace {

constexpr std::size_t kBytes = 4096;
constexpr int kQueues = 4;
constexpr char kImage[] = "FLETCHING-STANDIN-IMAGE 1\nkernel add\n";

using Call = std::function<CUresult()>;

// A gated stream, a free stream, and memory of every kind.
class CudaDriver : public Cuda {
 protected:
  void SetUp() override {
    Cuda::SetUp();
    gate_.emplace();
    ASSERT_EQ(cuMemAlloc(&device_, kBytes), CUDA_SUCCESS);
    ASSERT_EQ(cuMemAllocManaged(&managed_, kBytes, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
    for (void** each : {&pinned_, &second_}) {
      ASSERT_EQ(cuMemHostAlloc(each, kBytes, CU_MEMHOSTALLOC_DEVICEMAP), CUDA_SUCCESS);
    }
    gated_ = stream();
    free_ = stream();
  }
  void TearDown() override {
    gate_->open();
    for (const CUstream each : {gated_, free_}) {
      EXPECT_EQ(cuStreamSynchronize(each), CUDA_SUCCESS);
      EXPECT_EQ(cuStreamDestroy(each), CUDA_SUCCESS);
    }
    gate_.reset();
    for (const CUdeviceptr each : {device_, managed_}) EXPECT_EQ(cuMemFree(each), CUDA_SUCCESS);
    for (void* each : {pinned_, second_}) EXPECT_EQ(cuMemFreeHost(each), CUDA_SUCCESS);
    Cuda::TearDown();
  }

  // Shuts the gate only during the call.
  bool waits(const char* function, const Call& call) {
    gate_->open(0);
    gate_->shut(gated_);
    const auto on_this_context = [&] {
      EXPECT_EQ(cuCtxPushCurrent(context_), CUDA_SUCCESS);
      EXPECT_EQ(call(), CUDA_SUCCESS) << function;
      EXPECT_EQ(cuCtxPopCurrent(nullptr), CUDA_SUCCESS);
    };
    const bool late = returns_after(function, on_this_context, [&] { gate_->open(); });
    EXPECT_EQ(cuStreamSynchronize(gated_), CUDA_SUCCESS);
    return late;
  }
  // Calls on this thread, which opens the gate afterwards: a call that waits would never return.
  void expect_returns(const Call& call) {
    gate_->open(0);
    gate_->shut(gated_);
    EXPECT_EQ(call(), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamQuery(gated_), CUDA_ERROR_NOT_READY);
    gate_->open();
    EXPECT_EQ(cuStreamSynchronize(gated_), CUDA_SUCCESS);
  }
  CUresult copy(CUdeviceptr to, CUdeviceptr from, CUstream on) const {
    return cuMemcpyAsync(to, from, kBytes, on);
  }
  // Pairs of addresses, and whether a copy between them waits for its stream.
  std::vector<std::tuple<CUdeviceptr, CUdeviceptr, bool>> copies() {
    const CUdeviceptr pinned = address(pinned_);
    const CUdeviceptr second = address(second_);
    const CUdeviceptr pageable = address(pageable_.data());
    return {{device_, pinned, false},  {pinned, device_, false},  {second, pinned, true},
            {pinned, pageable, true},  {pageable, pinned, true},  {pageable, device_, true},
            {device_, pageable, true}, {managed_, device_, true}, {device_, managed_, true},
            {pinned, managed_, true},  {managed_, pageable, true}};
  }
  void prime() {
    for (const auto& [to, from, blocks] : copies()) {
      ASSERT_EQ(copy(to, from, free_), CUDA_SUCCESS);
    }
  }

  std::optional<Gate> gate_;  // created after the context
  CUstream gated_ = nullptr;
  CUstream free_ = nullptr;
  CUdeviceptr device_ = 0;
  CUdeviceptr managed_ = 0;
  void* pinned_ = nullptr;
  void* second_ = nullptr;
  std::vector<char> pageable_ = std::vector<char>(kBytes);
};

TEST_F(CudaDriver, AllocationsAndFreesWaitForDevice) {
  CUdeviceptr device = 0;
  CUdeviceptr managed = 0;
  void* pinned = nullptr;
  void* host = nullptr;
  CUmodule module = nullptr;
  const std::vector<std::pair<const char*, Call>> calls{
      {"cuMemAlloc", [&] { return cuMemAlloc(&device, kBytes); }},
      {"cuMemAllocManaged",
       [&] { return cuMemAllocManaged(&managed, kBytes, CU_MEM_ATTACH_GLOBAL); }},
      {"cuMemHostAlloc", [&] { return cuMemHostAlloc(&pinned, kBytes, 0); }},
      {"cuMemAllocHost", [&] { return cuMemAllocHost(&host, kBytes); }},
      {"cuModuleLoadData", [&] { return cuModuleLoadData(&module, kImage); }},
      {"cuMemFree", [&] { return cuMemFree(device); }},
      {"cuMemFree", [&] { return cuMemFree(managed); }},
      {"cuMemFreeHost", [&] { return cuMemFreeHost(pinned); }},
      {"cuMemFreeHost", [&] { return cuMemFreeHost(host); }},
      {"cuModuleUnload", [&] { return cuModuleUnload(module); }},
  };
  for (const auto& [function, call] : calls) EXPECT_TRUE(waits(function, call)) << function;
}

TEST_F(CudaDriver, CallsWithoutMemoryDoNotWait) {
  CUstream made = nullptr;
  CUevent event = nullptr;
  std::size_t free = 0;
  std::size_t total = 0;
  expect_returns([&] { return cuStreamCreate(&made, CU_STREAM_NON_BLOCKING); });
  expect_returns([&] { return cuEventCreate(&event, CU_EVENT_DISABLE_TIMING); });
  expect_returns([&] { return cuEventRecord(event, gated_); });
  expect_returns([&] { return cuStreamWaitEvent(made, event, 0); });
  expect_returns([&] { return cuMemGetInfo(&free, &total); });
  expect_returns([&] { return cuEventDestroy(event); });
  expect_returns([&] { return cuStreamDestroy(made); });
}

TEST_F(CudaDriver, PageableCopiesWaitForStream) {
  prime();
  for (const auto& [to, from, blocks] : copies()) {
    const Call behind_the_gate = [&, to = to, from = from] { return copy(to, from, gated_); };
    if (blocks) {
      EXPECT_TRUE(waits("cuMemcpyAsync", behind_the_gate)) << to << " from " << from;
    } else {
      expect_returns(behind_the_gate);
    }
    expect_returns([&, to = to, from = from] { return copy(to, from, free_); });
  }
}

// Needs a separate process, as with `make test`: after earlier copies the context is not cold.
TEST_F(CudaDriver, FirstCopyOfKindWaitsForDevice) {
  CUcontext cold = nullptr;
  CUdeviceptr device = 0;
  ASSERT_EQ(cuCtxCreate(&cold, nullptr, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemAlloc(&device, kBytes), CUDA_SUCCESS);
  const CUstream there = stream();
  const Call first = [&] { return cuMemcpyAsync(device, address(pinned_), kBytes, there); };
  EXPECT_TRUE(waits("cuMemcpyAsync", first));
  expect_returns(first);
  EXPECT_EQ(cuStreamSynchronize(there), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamDestroy(there), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree(device), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxDestroy(cold), CUDA_SUCCESS);
}

TEST_F(CudaDriver, FirstLazyKernelLaunchWaits) {
  CUmodule module = nullptr;
  CUfunction kernel = nullptr;
  ASSERT_EQ(cuModuleLoadData(&module, kImage), CUDA_SUCCESS);
  ASSERT_EQ(cuModuleGetFunction(&kernel, module, "add"), CUDA_SUCCESS);
  const Call launch = [&] { return add(kernel, free_, device_, 1); };
  const char* loading = std::getenv("CUDA_MODULE_LOADING");
  if (loading == nullptr || std::string_view(loading) != "EAGER") {
    EXPECT_TRUE(waits("cuLaunchKernel", launch));
  }
  expect_returns(launch);
  EXPECT_EQ(cuModuleUnload(module), CUDA_SUCCESS);
}

// If two streams share a hardware queue, the second waits for all earlier work of the first.
TEST_F(CudaDriver, StreamsShareHardwareQueuesRoundRobin) {
  std::vector<CUstream> streams;
  streams.reserve(std::size_t{2} * kQueues);
  for (int i = 0; i < 2 * kQueues; ++i) streams.push_back(stream());
  prime();
  gate_->open(0);
  gate_->shut(streams[0]);
  constexpr std::size_t kPart = kBytes / 2 / kQueues;  // disjoint parts, because the copies overlap
  for (std::size_t i = 0; i < streams.size(); ++i) {
    const CUdeviceptr to = device_ + i * kPart;
    EXPECT_EQ(cuMemcpyAsync(to, address(pinned_), kPart, streams[i]), CUDA_SUCCESS);
  }
  for (int i = 0; i < 2 * kQueues; ++i) {
    if (i % kQueues == 0) {
      EXPECT_EQ(cuStreamQuery(streams[i]), CUDA_ERROR_NOT_READY) << i;
    } else {
      EXPECT_EQ(cuStreamSynchronize(streams[i]), CUDA_SUCCESS) << i;
    }
  }
  EXPECT_EQ(cuStreamQuery(streams[kQueues]), CUDA_ERROR_NOT_READY);
  gate_->open();
  for (const CUstream each : streams) {
    EXPECT_EQ(cuStreamSynchronize(each), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamDestroy(each), CUDA_SUCCESS);
  }
}

// Independent of the number of earlier streams.
TEST_F(CudaDriver, StreamGetsUnusedHardwareQueue) {
  const CUstream waiting = stream();
  prime();
  gate_->open(0);
  gate_->shut(waiting);
  for (int i = 0; i < 2 * kQueues; ++i) {
    const CUstream other = stream();
    EXPECT_EQ(copy(device_, address(pinned_), other), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamSynchronize(other), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamDestroy(other), CUDA_SUCCESS);
  }
  gate_->open();
  EXPECT_EQ(cuStreamDestroy(waiting), CUDA_SUCCESS);
}

}  // namespace
