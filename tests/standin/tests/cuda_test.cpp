// SPDX-License-Identifier: Apache-2.0
// CUDA stand-in: streams, events, gates, memory and kernels.
#include <cstring>
#include <string>
#include <thread>

#include "cuda_fixture.hpp"

namespace {

constexpr char kImage[] = "FLETCHING-STANDIN-IMAGE 1\nkernel add\nkernel fill\nkernel copy\n";

TEST_F(Cuda, ReportsStandIn) {
  char name[64] = "";
  ASSERT_EQ(cuDeviceGetName(name, sizeof(name), 1), CUDA_SUCCESS);
  EXPECT_STREQ(name, "Fletching stand-in (no GPU) 1");
  ASSERT_EQ(cuDeviceGetName(name, 10, 1), CUDA_SUCCESS);
  EXPECT_STREQ(name, "Fletching");
  int count = 0;
  ASSERT_EQ(cuDeviceGetCount(&count), CUDA_SUCCESS);
  EXPECT_EQ(count, 2);
  int version = 0;
  ASSERT_EQ(cuDriverGetVersion(&version), CUDA_SUCCESS);
  EXPECT_EQ(version, CUDA_VERSION);
}

TEST_F(Cuda, GateBlocksStreamAndWaiters) {
  Gate gate;
  const CUstream producer = stream();
  const CUstream unwaited = stream();
  const CUstream waiting = stream();
  const CUevent done = event();
  const CUdeviceptr data = numbers();
  CUmodule module = nullptr;
  CUfunction kernel = nullptr;
  ASSERT_EQ(cuModuleLoadData(&module, kImage), CUDA_SUCCESS);
  ASSERT_EQ(cuModuleGetFunction(&kernel, module, "add"), CUDA_SUCCESS);

  gate.shut(producer);
  ASSERT_EQ(add(kernel, producer, data, 7), CUDA_SUCCESS);
  ASSERT_EQ(cuEventRecord(done, producer), CUDA_SUCCESS);
  // Enough time to get past a gate that does not block.
  for (int i = 0; i < 100; ++i) ASSERT_EQ(last(data, unwaited), 0);
  EXPECT_EQ(cuEventQuery(done), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(cuStreamQuery(producer), CUDA_ERROR_NOT_READY);
  ASSERT_EQ(cuStreamWaitEvent(waiting, done, CU_EVENT_WAIT_DEFAULT), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamQuery(waiting), CUDA_ERROR_NOT_READY);

  gate.open();
  EXPECT_EQ(last(data, waiting), 7);
  EXPECT_EQ(cuEventSynchronize(done), CUDA_SUCCESS);
  EXPECT_EQ(cuEventQuery(done), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(producer), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamQuery(producer), CUDA_SUCCESS);

  EXPECT_EQ(cuModuleUnload(module), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree(data), CUDA_SUCCESS);
  EXPECT_EQ(cuEventDestroy(done), CUDA_SUCCESS);
  for (const CUstream each : {producer, unwaited, waiting}) {
    EXPECT_EQ(cuStreamDestroy(each), CUDA_SUCCESS);
  }
}

// Work without a gate completes and gated work stays blocked, both in the same state.
TEST_F(Cuda, SettleCompletesUngatedWork) {
  const CUstream gated = stream();
  const CUstream behind = stream();
  const CUstream free = stream();
  const CUevent opened = event();
  const CUdeviceptr memory = numbers();
  for (int round = 0; round < 100; ++round) {
    Gate gate;
    gate.shut(gated);
    ASSERT_EQ(cuEventRecord(opened, gated), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamWaitEvent(behind, opened, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuMemsetD8Async(memory, 1, 4, free), CUDA_SUCCESS);
    ASSERT_EQ(cuEventRecord(opened, free), CUDA_SUCCESS);
    FletchingStandinSettle();
    EXPECT_EQ(cuEventQuery(opened), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamQuery(free), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamQuery(behind), CUDA_ERROR_NOT_READY);
    gate.open();
    FletchingStandinSettle();
    EXPECT_EQ(cuStreamQuery(gated), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamQuery(behind), CUDA_SUCCESS);
  }
  EXPECT_EQ(cuMemFree(memory), CUDA_SUCCESS);
  EXPECT_EQ(cuEventDestroy(opened), CUDA_SUCCESS);
  for (const CUstream each : {gated, behind, free}) EXPECT_EQ(cuStreamDestroy(each), CUDA_SUCCESS);
}

TEST_F(Cuda, ContentsReturnsHostAddressOfMemory) {
  const CUdeviceptr memory = numbers();
  const auto* const device = reinterpret_cast<const unsigned char*>(memory);
  const auto* const contents =
      static_cast<const unsigned char*>(FletchingStandinContents(device + 1));
  ASSERT_NE(contents, nullptr);
  EXPECT_NE(contents, device + 1);
  EXPECT_EQ(contents[0], 0) << "fresh memory is 0xA5";
  ASSERT_EQ(cuMemFree(memory), CUDA_SUCCESS);
  EXPECT_EQ(FletchingStandinContents(device), nullptr);
}

TEST_F(Cuda, GateInDeviceMemoryOpensFromOtherStream) {
  const CUstream waiting = stream();
  const CUstream opening = stream();
  const CUdeviceptr word = numbers();
  ASSERT_EQ(cuStreamWaitValue32(waiting, word, 0x01010101, CU_STREAM_WAIT_VALUE_EQ), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamQuery(waiting), CUDA_ERROR_NOT_READY);
  ASSERT_EQ(cuStreamSynchronize(opening), CUDA_SUCCESS);
  void* pinned = nullptr;
  ASSERT_EQ(cuMemHostAlloc(&pinned, 4, 0), CUDA_SUCCESS);
  std::memset(pinned, 1, 4);
  ASSERT_EQ(cuMemcpyHtoDAsync(word, pinned, 4, opening), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(waiting), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(opening), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFreeHost(pinned), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree(word), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamDestroy(waiting), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamDestroy(opening), CUDA_SUCCESS);
}

TEST_F(Cuda, ChecksGateConditions) {
  const CUstream waiting = stream();
  Gate gate;
  const auto passes = [&](unsigned int flags, std::uint32_t value, std::uint32_t word) {
    gate.open(word);
    EXPECT_EQ(cuStreamWaitValue32(waiting, gate.word(), value, flags), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamSynchronize(waiting), CUDA_SUCCESS);
  };
  passes(CU_STREAM_WAIT_VALUE_GEQ, 0xFFFFFFFF, 1);  // compares by the wrapped difference
  passes(CU_STREAM_WAIT_VALUE_EQ, 5, 5);
  passes(CU_STREAM_WAIT_VALUE_AND, 4, 6);
  passes(CU_STREAM_WAIT_VALUE_NOR, 1, 2);
  EXPECT_EQ(cuStreamWaitValue32(waiting, gate.word(), 0, 17), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuStreamWaitValue32(waiting, gate.word() + 1, 0, 0), CUDA_ERROR_INVALID_VALUE);
  const std::uint32_t pageable = 0;
  EXPECT_EQ(cuStreamWaitValue32(waiting, address(&pageable), 0, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuStreamDestroy(waiting), CUDA_SUCCESS);
}

TEST_F(Cuda, LegacyStreamOrdersBlockingStreamsOnly) {
  for (const CUstream legacy : {static_cast<CUstream>(nullptr), CU_STREAM_LEGACY}) {
    Gate gate;
    const CUstream blocking = stream(CU_STREAM_DEFAULT);
    const CUstream free = stream(CU_STREAM_NON_BLOCKING);
    gate.shut(blocking);
    EXPECT_EQ(cuStreamQuery(legacy), CUDA_ERROR_NOT_READY);  // it is behind the blocking stream
    EXPECT_EQ(cuStreamSynchronize(free), CUDA_SUCCESS);
    gate.open();
    EXPECT_EQ(cuStreamSynchronize(legacy), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamQuery(blocking), CUDA_SUCCESS);

    gate.shut(legacy, 2);
    const CUevent behind = event();
    const CUevent beside = event();
    ASSERT_EQ(cuEventRecord(behind, blocking), CUDA_SUCCESS);
    ASSERT_EQ(cuEventRecord(beside, free), CUDA_SUCCESS);
    EXPECT_EQ(cuEventSynchronize(beside), CUDA_SUCCESS);
    EXPECT_EQ(cuEventQuery(behind), CUDA_ERROR_NOT_READY);
    gate.open(2);
    EXPECT_EQ(cuEventSynchronize(behind), CUDA_SUCCESS);
    EXPECT_EQ(cuEventDestroy(behind), CUDA_SUCCESS);
    EXPECT_EQ(cuEventDestroy(beside), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamDestroy(blocking), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamDestroy(free), CUDA_SUCCESS);
  }
}

TEST_F(Cuda, EachThreadHasSeparateDefaultStream) {
  Gate gate;
  gate.shut(CU_STREAM_PER_THREAD);
  EXPECT_EQ(cuStreamQuery(CU_STREAM_PER_THREAD), CUDA_ERROR_NOT_READY);
  std::thread([&] {
    ASSERT_EQ(cuCtxPushCurrent(context_), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamSynchronize(CU_STREAM_PER_THREAD), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxPopCurrent(nullptr), CUDA_SUCCESS);
  }).join();
  gate.open();
  EXPECT_EQ(cuStreamSynchronize(CU_STREAM_PER_THREAD), CUDA_SUCCESS);
}

TEST_F(Cuda, WaitersKeepEarlierRecord) {
  Gate first;
  Gate second;
  const CUstream producer = stream();
  const CUstream waiting = stream();
  const CUevent done = event();
  EXPECT_EQ(cuEventQuery(done), CUDA_SUCCESS);  // never recorded
  first.shut(producer);
  ASSERT_EQ(cuEventRecord(done, producer), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamWaitEvent(waiting, done, 0), CUDA_SUCCESS);
  second.shut(producer);
  ASSERT_EQ(cuEventRecord(done, producer), CUDA_SUCCESS);
  first.open();
  EXPECT_EQ(cuStreamSynchronize(waiting), CUDA_SUCCESS);
  EXPECT_EQ(cuEventQuery(done), CUDA_ERROR_NOT_READY);
  second.open();
  EXPECT_EQ(cuEventSynchronize(done), CUDA_SUCCESS);
  EXPECT_EQ(cuEventDestroy(done), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamDestroy(producer), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamDestroy(waiting), CUDA_SUCCESS);
}

TEST_F(Cuda, EventDestroyedWhilePendingCompletes) {
  Gate gate;
  const CUstream producer = stream();
  const CUstream waiting = stream();
  const CUevent done = event();
  const CUdeviceptr data = numbers();
  gate.shut(producer);
  ASSERT_EQ(cuMemsetD8Async(data, 1, sizeof(std::int32_t) * kElements, producer), CUDA_SUCCESS);
  ASSERT_EQ(cuEventRecord(done, producer), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamWaitEvent(waiting, done, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuEventDestroy(done), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamDestroy(producer), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamQuery(waiting), CUDA_ERROR_NOT_READY);
  gate.open();
  EXPECT_EQ(last(data, waiting), 0x01010101);
  EXPECT_EQ(cuMemFree(data), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamDestroy(waiting), CUDA_SUCCESS);
}

TEST_F(Cuda, ElapsedTimeNeedsTimingEvents) {
  const CUstream on = stream();
  const CUevent from = event(CU_EVENT_DEFAULT);
  const CUevent to = event(CU_EVENT_DEFAULT);
  const CUevent without = event();
  for (const CUevent each : {from, to, without}) ASSERT_EQ(cuEventRecord(each, on), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamSynchronize(on), CUDA_SUCCESS);
  float milliseconds = -1;
  EXPECT_EQ(cuEventElapsedTime(&milliseconds, from, to), CUDA_SUCCESS);
  EXPECT_GE(milliseconds, 0);
  EXPECT_EQ(cuEventElapsedTime(&milliseconds, from, without), CUDA_ERROR_INVALID_HANDLE);
  for (const CUevent each : {from, to, without}) EXPECT_EQ(cuEventDestroy(each), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamDestroy(on), CUDA_SUCCESS);
}

TEST_F(Cuda, RejectsHandleInPlaceOfAddress) {
  const CUevent done = event();
  void* const sync_event = done;  // should have been &done
  const CUevent followed = *static_cast<CUevent*>(sync_event);
  EXPECT_EQ(cuEventSynchronize(followed), CUDA_ERROR_INVALID_HANDLE);
  const auto* address_as_handle = &done;
  EXPECT_EQ(cuEventQuery(reinterpret_cast<CUevent>(const_cast<CUevent*>(address_as_handle))),
            CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuEventQuery(nullptr), CUDA_ERROR_INVALID_HANDLE);
  const CUstream on = stream();
  EXPECT_EQ(cuEventQuery(reinterpret_cast<CUevent>(on)), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuStreamWaitEvent(reinterpret_cast<CUstream>(done), done, 0),
            CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuStreamDestroy(on), CUDA_SUCCESS);
  EXPECT_EQ(cuEventDestroy(done), CUDA_SUCCESS);
  EXPECT_EQ(cuEventDestroy(done), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuEventQuery(done), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuStreamQuery(on), CUDA_ERROR_INVALID_HANDLE);
}

using CudaDeathTest = Cuda;

TEST_F(CudaDeathTest, HostReadOfDeviceMemoryCrashes) {
  const CUdeviceptr data = numbers();
  EXPECT_DEATH(
      {
        const auto* pointer = reinterpret_cast<const volatile std::int32_t*>(data);
        std::exit(*pointer == 0 ? 0 : 1);
      },
      "");
  EXPECT_EQ(cuMemFree(data), CUDA_SUCCESS);
}

TEST_F(Cuda, KernelsProcessOneElementPerThread) {
  const CUstream on = stream();
  const CUdeviceptr data = numbers();
  CUmodule module = nullptr;
  CUfunction kernel = nullptr;
  ASSERT_EQ(cuModuleLoadData(&module, kImage), CUDA_SUCCESS);
  ASSERT_EQ(cuModuleGetFunction(&kernel, module, "fill"), CUDA_SUCCESS);
  EXPECT_EQ(cuModuleGetFunction(&kernel, module, "missing"), CUDA_ERROR_NOT_FOUND);
  CUdeviceptr pointer = data;
  std::int64_t n = kElements;
  std::int32_t value = 9;
  void* arguments[] = {&pointer, &n, &value};
  const auto launch = [&](unsigned int grid, unsigned int block) {
    return cuLaunchKernel(kernel, grid, 1, 1, block, 1, 1, 0, on, arguments, nullptr);
  };
  ASSERT_EQ(launch(1, kElements - 1), CUDA_SUCCESS);
  EXPECT_EQ(last(data, on), 0);
  ASSERT_EQ(launch(2, 512), CUDA_SUCCESS);
  EXPECT_EQ(last(data, on), 9);
  EXPECT_EQ(launch(0, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launch(1, 1025), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuModuleUnload(module), CUDA_SUCCESS);
  EXPECT_EQ(launch(1, 1), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuMemFree(data), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamDestroy(on), CUDA_SUCCESS);
}

TEST_F(Cuda, RejectsRealDeviceImages) {
  CUmodule module = nullptr;
  EXPECT_EQ(cuModuleLoadData(&module, "\177ELF\x02"), CUDA_ERROR_NO_BINARY_FOR_GPU);
  EXPECT_EQ(cuModuleLoadData(&module, "\x50\xed\x55\xba"), CUDA_ERROR_NO_BINARY_FOR_GPU);
  EXPECT_EQ(cuModuleLoadData(&module, "//\n.version 8.0\n"), CUDA_ERROR_NO_BINARY_FOR_GPU);
  EXPECT_EQ(cuModuleLoadData(&module, "nonsense"), CUDA_ERROR_INVALID_IMAGE);
  EXPECT_EQ(cuModuleLoadData(&module, "FLETCHING-STANDIN-IMAGE 1\nkernel nothing\n"),
            CUDA_ERROR_INVALID_IMAGE);
  EXPECT_EQ(cuModuleLoadData(&module, nullptr), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Cuda, ErrorsHaveNamesAndMentionStandIn) {
  const char* text = nullptr;
  ASSERT_EQ(cuGetErrorName(CUDA_ERROR_LAUNCH_FAILED, &text), CUDA_SUCCESS);
  EXPECT_STREQ(text, "CUDA_ERROR_LAUNCH_FAILED");
  ASSERT_EQ(cuGetErrorString(CUDA_ERROR_NOT_READY, &text), CUDA_SUCCESS);
  EXPECT_STREQ(text, "not ready (stand-in)");
  EXPECT_EQ(cuGetErrorName(static_cast<CUresult>(12345), &text), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(text, nullptr);
}

}  // namespace
