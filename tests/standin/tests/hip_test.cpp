// SPDX-License-Identifier: Apache-2.0
// HIP stand-in: behavior that differs from CUDA. The CUDA tests cover the shared engine.
#include <gtest/gtest.h>
#include <hip/hip_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>

#include "standin.h"

// Not declared without HIP_API_PER_THREAD_DEFAULT_STREAM.
extern "C" hipError_t hipEventRecord_spt(hipEvent_t event, hipStream_t stream);

namespace {

class Gate {
 public:
  Gate() {
    void* word = nullptr;
    EXPECT_EQ(hipExtMallocWithFlags(&word, sizeof(std::uint64_t), hipMallocSignalMemory),
              hipSuccess);
    word_ = static_cast<std::uint32_t*>(word);
    *word_ = 0;
  }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  ~Gate() { EXPECT_EQ(hipFree(word_), hipSuccess); }

  hipError_t shut(hipStream_t stream, unsigned int flags = hipStreamWaitValueGte,
                  std::uint32_t value = 1, std::uint32_t mask = 0xFFFFFFFF) {
    return hipStreamWaitValue32(stream, word_, value, flags, mask);
  }
  void open(std::uint32_t value = 1) {
    std::atomic_ref<std::uint32_t>(*word_).store(value, std::memory_order_release);
  }

 private:
  std::uint32_t* word_ = nullptr;
};

class Hip : public testing::Test {
 protected:
  void SetUp() override {
    FletchingStandinResetFaults();
    ASSERT_EQ(hipSetDevice(0), hipSuccess);
  }
  void TearDown() override { EXPECT_EQ(FletchingStandinLeaks(nullptr), 0); }

  static hipStream_t stream(unsigned int flags = hipStreamNonBlocking) {
    hipStream_t made = nullptr;
    EXPECT_EQ(hipStreamCreateWithFlags(&made, flags), hipSuccess);
    return made;
  }
  static hipEvent_t event() {
    hipEvent_t made = nullptr;
    EXPECT_EQ(hipEventCreateWithFlags(&made, hipEventDisableTiming), hipSuccess);
    return made;
  }
  static std::int32_t read(const void* from, hipStream_t on) {
    std::int32_t value = -1;
    EXPECT_EQ(hipMemcpyAsync(&value, from, sizeof(value), hipMemcpyDeviceToHost, on), hipSuccess);
    return value;
  }
};

TEST_F(Hip, ReportsStandIn) {
  char name[64] = "";
  ASSERT_EQ(hipInit(0), hipSuccess);
  ASSERT_EQ(hipDeviceGetName(name, sizeof(name), 0), hipSuccess);
  EXPECT_STREQ(name, "Fletching stand-in (no GPU) 0");
  int version = 0;
  ASSERT_EQ(hipRuntimeGetVersion(&version), hipSuccess);
  EXPECT_EQ(version, 70000000) << "as its name, libamdhip64.so.7, says";
  EXPECT_STREQ(hipGetErrorName(hipErrorInvalidHandle), "hipErrorInvalidHandle");
  EXPECT_STREQ(hipGetErrorName(static_cast<hipError_t>(12345)), "hipErrorUnknown");
  EXPECT_STREQ(hipGetErrorString(hipErrorNotReady), "not ready (stand-in)");
}

TEST_F(Hip, GateBlocksStreamAndWaiters) {
  Gate gate;
  const hipStream_t producer = stream();
  const hipStream_t unwaited = stream();
  const hipStream_t waiting = stream();
  const hipEvent_t done = event();
  constexpr std::int32_t kElements = 100;
  void* data = nullptr;
  ASSERT_EQ(hipMalloc(&data, kElements * sizeof(std::int32_t)), hipSuccess);
  ASSERT_EQ(hipMemsetAsync(data, 0, kElements * sizeof(std::int32_t), producer), hipSuccess);
  ASSERT_EQ(hipStreamSynchronize(producer), hipSuccess);
  hipModule_t module = nullptr;
  hipFunction_t kernel = nullptr;
  ASSERT_EQ(hipModuleLoadData(&module, "FLETCHING-STANDIN-IMAGE 1\nkernel fill\n"), hipSuccess);
  ASSERT_EQ(hipModuleGetFunction(&kernel, module, "fill"), hipSuccess);

  ASSERT_EQ(gate.shut(producer), hipSuccess);
  std::int64_t count = kElements;
  std::int32_t value = -1;
  void* arguments[] = {&data, &count, &value};
  ASSERT_EQ(hipModuleLaunchKernel(kernel, 1, 1, 1, 128, 1, 1, 0, producer, arguments, nullptr),
            hipSuccess);
  ASSERT_EQ(hipEventRecord(done, producer), hipSuccess);
  EXPECT_EQ(hipEventQuery(done), hipErrorNotReady);
  EXPECT_EQ(read(data, unwaited), 0);
  ASSERT_EQ(hipStreamWaitEvent(waiting, done, 0), hipSuccess);
  EXPECT_EQ(hipStreamQuery(waiting), hipErrorNotReady);
  gate.open();
  EXPECT_EQ(read(data, waiting), -1);
  EXPECT_EQ(hipEventSynchronize(done), hipSuccess);
  EXPECT_EQ(hipEventQuery(done), hipSuccess);

  EXPECT_EQ(hipModuleUnload(module), hipSuccess);
  EXPECT_EQ(hipFree(data), hipSuccess);
  EXPECT_EQ(hipEventDestroy(done), hipSuccess);
  for (const hipStream_t each : {producer, unwaited, waiting}) {
    EXPECT_EQ(hipStreamDestroy(each), hipSuccess);
  }
}

TEST_F(Hip, GateConditionsUseMaskedWord) {
  Gate gate;
  const hipStream_t waiting = stream();
  gate.open(0xF5);
  EXPECT_EQ(gate.shut(waiting, hipStreamWaitValueEq, 5, 0x0F), hipSuccess);
  EXPECT_EQ(gate.shut(waiting, hipStreamWaitValueGte, 0xF5), hipSuccess);
  EXPECT_EQ(gate.shut(waiting, hipStreamWaitValueAnd, 1), hipSuccess);
  EXPECT_EQ(gate.shut(waiting, hipStreamWaitValueNor, 0), hipSuccess);
  EXPECT_EQ(hipStreamSynchronize(waiting), hipSuccess);
  // Unlike in CUDA, the values are compared as plain numbers.
  EXPECT_EQ(gate.shut(waiting, hipStreamWaitValueGte, 0xFFFFFFFF), hipSuccess);
  EXPECT_EQ(hipStreamQuery(waiting), hipErrorNotReady);
  gate.open(0xFFFFFFFF);
  EXPECT_EQ(hipStreamSynchronize(waiting), hipSuccess);
  EXPECT_EQ(gate.shut(waiting, 9), hipErrorInvalidValue);
  EXPECT_EQ(hipStreamDestroy(waiting), hipSuccess);
}

// HIP's documentation demands signal memory; a device attribute says whether streams can wait.
TEST_F(Hip, StreamWaitNeedsSignalMemory) {
  const hipStream_t waiting = stream();
  int can_wait = 0;
  EXPECT_EQ(hipDeviceGetAttribute(&can_wait, hipDeviceAttributeCanUseStreamWaitValue, 0),
            hipSuccess);
  EXPECT_EQ(can_wait, 1);
  void* pinned = nullptr;
  void* device = nullptr;
  ASSERT_EQ(hipHostMalloc(&pinned, 8, hipHostMallocMapped), hipSuccess);
  ASSERT_EQ(hipExtMallocWithFlags(&device, 8, hipDeviceMallocDefault), hipSuccess);
  for (void* word : {pinned, device}) {
    EXPECT_EQ(hipStreamWaitValue32(waiting, word, 0, hipStreamWaitValueGte, 1),
              hipErrorInvalidValue);
  }
  void* word = nullptr;
  EXPECT_EQ(hipExtMallocWithFlags(&word, 4, hipMallocSignalMemory), hipErrorInvalidValue);
  ASSERT_EQ(hipExtMallocWithFlags(&word, 8, hipMallocSignalMemory), hipSuccess);
  EXPECT_EQ(hipHostFree(word), hipErrorInvalidValue);
  EXPECT_EQ(hipFree(word), hipSuccess);
  EXPECT_EQ(hipFree(device), hipSuccess);
  EXPECT_EQ(hipHostFree(pinned), hipSuccess);
  EXPECT_EQ(hipStreamDestroy(waiting), hipSuccess);
}

TEST_F(Hip, NullIsDeviceOrThreadDefaultStream) {
  Gate gate;
  const hipStream_t blocking = stream(hipStreamDefault);
  const hipEvent_t behind = event();
  const hipEvent_t of_thread = event();
  ASSERT_EQ(gate.shut(blocking), hipSuccess);
  ASSERT_EQ(hipEventRecord(behind, nullptr), hipSuccess);
  EXPECT_EQ(hipEventQuery(behind), hipErrorNotReady);
  gate.open();
  EXPECT_EQ(hipEventSynchronize(behind), hipSuccess);

  ASSERT_EQ(gate.shut(blocking, hipStreamWaitValueGte, 2), hipSuccess);
  ASSERT_EQ(hipEventRecord_spt(of_thread, nullptr), hipSuccess);
  EXPECT_EQ(hipEventSynchronize(of_thread), hipSuccess);
  EXPECT_EQ(hipStreamQuery(hipStreamPerThread), hipSuccess);
  gate.open(2);
  EXPECT_EQ(hipStreamSynchronize(nullptr), hipSuccess);
  // The number of CUDA's legacy stream handle is not a handle in HIP.
  EXPECT_EQ(hipStreamQuery(reinterpret_cast<hipStream_t>(1)), hipErrorInvalidHandle);
  EXPECT_EQ(hipStreamDestroy(blocking), hipSuccess);
  EXPECT_EQ(hipEventDestroy(behind), hipSuccess);
  EXPECT_EQ(hipEventDestroy(of_thread), hipSuccess);
}

TEST_F(Hip, ThreadsHaveDeviceAndStreamsKeepTheirs) {
  const hipEvent_t done = event();
  const hipStream_t first = stream();
  ASSERT_EQ(hipSetDevice(1), hipSuccess);
  std::thread([] {
    int device = -1;
    EXPECT_EQ(hipGetDevice(&device), hipSuccess);
    EXPECT_EQ(device, 0);
  }).join();
  const hipStream_t second = stream();
  EXPECT_EQ(hipGetStreamDeviceId(first), 0);
  EXPECT_EQ(hipGetStreamDeviceId(second), 1);
  EXPECT_EQ(hipGetStreamDeviceId(nullptr), 1);
  EXPECT_LT(hipGetStreamDeviceId(reinterpret_cast<hipStream_t>(done)), 0);
  EXPECT_EQ(hipEventRecord(done, second), hipErrorInvalidHandle);
  ASSERT_EQ(hipEventRecord(done, first), hipSuccess);
  EXPECT_EQ(hipStreamWaitEvent(second, done, 0), hipSuccess);
  EXPECT_EQ(hipStreamSynchronize(second), hipSuccess);
  unsigned int flags = 9;
  int active = -1;
  EXPECT_EQ(hipDevicePrimaryCtxGetState(1, &flags, &active), hipSuccess);
  EXPECT_EQ(active, 1);
  EXPECT_EQ(hipSetDevice(2), hipErrorInvalidDevice);
  EXPECT_EQ(hipStreamDestroy(first), hipSuccess);
  EXPECT_EQ(hipStreamDestroy(second), hipSuccess);
  EXPECT_EQ(hipEventDestroy(done), hipSuccess);
}

TEST_F(Hip, ReportsPointerAttributes) {
  void* device = nullptr;
  void* managed = nullptr;
  void* host = nullptr;
  ASSERT_EQ(hipMalloc(&device, 8), hipSuccess);
  ASSERT_EQ(hipMallocManaged(&managed, 8, hipMemAttachGlobal), hipSuccess);
  ASSERT_EQ(hipHostMalloc(&host, 8, hipHostMallocPortable), hipSuccess);
  for (void* each : {device, managed, host}) {
    int ordinal = -1;
    EXPECT_EQ(hipPointerGetAttribute(&ordinal, HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL, each),
              hipSuccess);
    EXPECT_EQ(ordinal, 0);
    void* alias = nullptr;
    EXPECT_EQ(hipPointerGetAttribute(&alias, HIP_POINTER_ATTRIBUTE_DEVICE_POINTER, each),
              hipSuccess);
    EXPECT_EQ(alias, each);
    EXPECT_EQ(hipPointerGetAttribute(&alias, HIP_POINTER_ATTRIBUTE_HOST_POINTER, each),
              each == device ? hipErrorInvalidValue : hipSuccess);
    bool is_managed = false;
    EXPECT_EQ(hipPointerGetAttribute(&is_managed, HIP_POINTER_ATTRIBUTE_IS_MANAGED, each),
              hipSuccess);
    EXPECT_EQ(is_managed, each == managed);
  }
  void* alias = nullptr;
  EXPECT_EQ(hipHostGetDevicePointer(&alias, host, 0), hipSuccess);
  EXPECT_EQ(alias, host);
  EXPECT_EQ(hipHostGetDevicePointer(&alias, device, 0), hipErrorInvalidValue);
  int unknown = 0;
  EXPECT_EQ(hipPointerGetAttribute(&unknown, HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL, &unknown),
            hipErrorInvalidValue);
  size_t free = 0;
  size_t total = 0;
  EXPECT_EQ(hipMemGetInfo(&free, &total), hipSuccess);
  EXPECT_EQ(total - free, 8U);
  EXPECT_EQ(hipFree(host), hipErrorInvalidValue);
  EXPECT_EQ(hipFree(device), hipSuccess);
  EXPECT_EQ(hipFree(managed), hipSuccess);
  EXPECT_EQ(hipHostFree(host), hipSuccess);
  EXPECT_EQ(hipFree(nullptr), hipSuccess);
}

TEST_F(Hip, InjectsFaults) {
  const hipEvent_t done = event();
  ASSERT_EQ(FletchingStandinSetFault("hipEventSynchronize:2:hipErrorLaunchFailure,"
                                     "hipGetErrorName:1:1,hipGetStreamDeviceId:1:1"),
            0);
  EXPECT_EQ(hipEventSynchronize(done), hipSuccess);
  EXPECT_EQ(hipEventSynchronize(done), hipErrorLaunchFailure);
  EXPECT_EQ(hipEventSynchronize(done), hipSuccess);
  EXPECT_EQ(hipGetErrorName(hipSuccess), nullptr);
  EXPECT_EQ(hipGetStreamDeviceId(nullptr), -1);
  EXPECT_EQ(FletchingStandinSetFault("cuEventSynchronize:1:1"), 22);
  ASSERT_EQ(FletchingStandinSetFault("hipEventRecord_spt:1:hipErrorNotSupported"), 0);
  EXPECT_EQ(hipEventRecord(done, nullptr), hipErrorNotSupported);
  EXPECT_EQ(hipEventDestroy(done), hipSuccess);
}

TEST_F(Hip, RestoresLostDevice) {
  const hipStream_t on = stream();
  Gate gate;
  ASSERT_EQ(hipSetDevice(1), hipSuccess);
  const hipStream_t lost = stream();
  ASSERT_EQ(gate.shut(lost), hipSuccess);
  ASSERT_EQ(FletchingStandinLoseDevice(1, hipErrorUnknown), 0);
  EXPECT_EQ(hipStreamSynchronize(lost), hipErrorUnknown);
  EXPECT_EQ(hipStreamDestroy(lost), hipErrorUnknown);
  EXPECT_EQ(hipStreamSynchronize(on), hipSuccess);
  ASSERT_EQ(FletchingStandinRestoreDevice(1), 0);
  const hipStream_t again = stream();
  EXPECT_EQ(hipStreamSynchronize(again), hipSuccess);
  EXPECT_EQ(hipStreamDestroy(again), hipSuccess);
  EXPECT_EQ(hipStreamDestroy(on), hipSuccess);
}

}  // namespace
