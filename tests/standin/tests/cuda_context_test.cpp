// SPDX-License-Identifier: Apache-2.0
// CUDA stand-in: contexts, devices, kinds of memory, faults and leaks.
#include <cerrno>
#include <cstring>
#include <string>
#include <thread>

#include "cuda_fixture.hpp"

namespace {

using CudaContext = Cuda;

bool active(CUdevice device) {
  unsigned int flags = 1;
  int is_active = -1;
  EXPECT_EQ(cuDevicePrimaryCtxGetState(device, &flags, &is_active), CUDA_SUCCESS);
  EXPECT_EQ(flags, 0U);
  return is_active == 1;
}

TEST_F(CudaContext, PrimaryIsActiveWhileRetained) {
  EXPECT_FALSE(active(1));
  CUcontext first = nullptr;
  CUcontext second = nullptr;
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&first, 1), CUDA_SUCCESS);
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&second, 1), CUDA_SUCCESS);
  EXPECT_EQ(first, second);
  EXPECT_TRUE(active(1));
  EXPECT_EQ(cuDevicePrimaryCtxRelease(1), CUDA_SUCCESS);
  EXPECT_TRUE(active(1));
  EXPECT_EQ(cuDevicePrimaryCtxRelease(1), CUDA_SUCCESS);
  EXPECT_FALSE(active(1));
  EXPECT_EQ(cuDevicePrimaryCtxRelease(1), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cuCtxPushCurrent(first), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cuDevicePrimaryCtxRetain(&first, 2), CUDA_ERROR_INVALID_DEVICE);
  CUdevice device = 0;
  EXPECT_EQ(cuDeviceGet(&device, -1), CUDA_ERROR_INVALID_DEVICE);
}

// One thread releases the primary context while another retains it, which must get a valid context.
TEST_F(CudaContext, RetainsPrimaryDuringRelease) {
  constexpr int kRounds = 3000;
  const auto rounds = [] {
    int refused = 0;
    for (int round = 0; round < kRounds; ++round) {
      CUcontext context = nullptr;
      EXPECT_EQ(cuDevicePrimaryCtxRetain(&context, 1), CUDA_SUCCESS);
      const bool is_there = cuCtxPushCurrent(context) == CUDA_SUCCESS;
      refused += is_there ? 0 : 1;
      if (is_there) {
        EXPECT_EQ(cuCtxPopCurrent(nullptr), CUDA_SUCCESS);
      }
      EXPECT_EQ(cuDevicePrimaryCtxRelease(1), CUDA_SUCCESS);
    }
    EXPECT_EQ(refused, 0);
  };
  std::thread other(rounds);
  rounds();
  other.join();
}

TEST_F(CudaContext, DestroyFreesRemainingObjects) {
  FletchingStandinCounts before{};
  FletchingStandinLeaks(&before);
  CUcontext context = nullptr;
  ASSERT_EQ(cuCtxCreate(&context, nullptr, 0, 1), CUDA_SUCCESS);
  Gate gate;
  const CUstream left = stream();
  const CUevent done = event();
  gate.shut(left);
  ASSERT_EQ(cuEventRecord(done, left), CUDA_SUCCESS);
  gate.open();
  ASSERT_EQ(cuStreamSynchronize(left), CUDA_SUCCESS);
  CUdeviceptr memory = 0;
  ASSERT_EQ(cuMemAlloc(&memory, 16), CUDA_SUCCESS);
  gate.free();
  ASSERT_EQ(cuCtxDestroy(context), CUDA_SUCCESS);
  FletchingStandinCounts after{};
  FletchingStandinLeaks(&after);
  EXPECT_EQ(after.abandoned - before.abandoned, 3);  // the stream, the event, the memory
  EXPECT_EQ(cuEventQuery(done), CUDA_ERROR_INVALID_HANDLE);
  CUcontext current = nullptr;
  ASSERT_EQ(cuCtxGetCurrent(&current), CUDA_SUCCESS);
  EXPECT_EQ(current, context_);
}

TEST_F(CudaContext, CallsFailAfterDestroyOnOtherThread) {
  CUcontext context = nullptr;
  ASSERT_EQ(cuCtxCreate(&context, nullptr, 0, 0), CUDA_SUCCESS);
  std::thread([&] { EXPECT_EQ(cuCtxDestroy(context), CUDA_SUCCESS); }).join();
  CUdevice device = -1;
  EXPECT_EQ(cuCtxGetDevice(&device), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  CUevent done = nullptr;
  EXPECT_EQ(cuEventCreate(&done, 0), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  EXPECT_EQ(cuCtxPopCurrent(nullptr), CUDA_SUCCESS);
}

TEST_F(CudaContext, RecordsEventOnlyInOwnContext) {
  const CUevent done = event();
  const CUstream here = stream();
  CUcontext other = nullptr;
  ASSERT_EQ(cuCtxCreate(&other, nullptr, 0, 1), CUDA_SUCCESS);
  const CUstream there = stream();
  EXPECT_EQ(cuEventRecord(done, there), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuEventRecord(done, nullptr), CUDA_ERROR_INVALID_HANDLE);  // the current one's
  ASSERT_EQ(cuEventRecord(done, here), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamWaitEvent(there, done, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(there), CUDA_SUCCESS);

  CUcontext of_stream = nullptr;
  ASSERT_EQ(cuStreamGetCtx(here, &of_stream), CUDA_SUCCESS);
  EXPECT_EQ(of_stream, context_);
  ASSERT_EQ(cuStreamGetCtx(nullptr, &of_stream), CUDA_SUCCESS);
  EXPECT_EQ(of_stream, other);
  EXPECT_EQ(cuStreamDestroy(there), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxDestroy(other), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamDestroy(here), CUDA_SUCCESS);
  EXPECT_EQ(cuEventDestroy(done), CUDA_SUCCESS);
}

TEST_F(CudaContext, NewThreadHasNoContext) {
  const CUevent done = event();
  const CUstream on = stream();
  std::thread([&] {
    CUcontext current = context_;
    EXPECT_EQ(cuCtxGetCurrent(&current), CUDA_SUCCESS);
    EXPECT_EQ(current, nullptr);
    EXPECT_EQ(cuCtxPopCurrent(&current), CUDA_ERROR_INVALID_CONTEXT);
    CUevent made = nullptr;
    CUdeviceptr memory = 0;
    EXPECT_EQ(cuEventCreate(&made, 0), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(cuMemAlloc(&memory, 1), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(cuStreamQuery(nullptr), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(cuStreamWaitEvent(on, done, 0), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(cuEventSynchronize(done), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(cuEventDestroy(done), CUDA_ERROR_INVALID_CONTEXT);
    // These calls tell which context to make current.
    EXPECT_EQ(cuEventQuery(done), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamGetCtx(on, &current), CUDA_SUCCESS);
    EXPECT_EQ(current, context_);
  }).join();
  EXPECT_EQ(cuStreamDestroy(on), CUDA_SUCCESS);
  EXPECT_EQ(cuEventDestroy(done), CUDA_SUCCESS);
}

template <class T>
CUresult attribute(CUpointer_attribute which, CUdeviceptr pointer, T& value) {
  return cuPointerGetAttribute(&value, which, pointer);
}

TEST_F(CudaContext, ReportsPointerAttributes) {
  CUdeviceptr device = 0;
  CUdeviceptr managed = 0;
  void* host = nullptr;
  ASSERT_EQ(cuMemAlloc(&device, 100), CUDA_SUCCESS);
  ASSERT_EQ(cuMemAllocManaged(&managed, 100, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
  ASSERT_EQ(cuMemHostAlloc(&host, 100, CU_MEMHOSTALLOC_PORTABLE), CUDA_SUCCESS);
  struct Row {
    CUdeviceptr pointer;
    unsigned int type;
    unsigned int is_managed;
    CUresult host_readable;
  };
  for (const Row& row : {Row{device, CU_MEMORYTYPE_DEVICE, 0, CUDA_ERROR_INVALID_VALUE},
                         Row{managed, CU_MEMORYTYPE_DEVICE, 1, CUDA_SUCCESS},
                         Row{address(host), CU_MEMORYTYPE_HOST, 0, CUDA_SUCCESS}}) {
    const CUdeviceptr inside = row.pointer + 99;
    unsigned int number = 99;
    EXPECT_EQ(attribute(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, inside, number), CUDA_SUCCESS);
    EXPECT_EQ(number, row.type);
    EXPECT_EQ(attribute(CU_POINTER_ATTRIBUTE_IS_MANAGED, inside, number), CUDA_SUCCESS);
    EXPECT_EQ(number, row.is_managed);
    int ordinal = -1;
    EXPECT_EQ(attribute(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, inside, ordinal), CUDA_SUCCESS);
    EXPECT_EQ(ordinal, 0);
    CUcontext context = nullptr;
    EXPECT_EQ(attribute(CU_POINTER_ATTRIBUTE_CONTEXT, inside, context), CUDA_SUCCESS);
    EXPECT_EQ(context, context_);
    CUdeviceptr alias = 0;
    EXPECT_EQ(attribute(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, inside, alias), CUDA_SUCCESS);
    EXPECT_EQ(alias, inside);
    void* readable = nullptr;
    EXPECT_EQ(attribute(CU_POINTER_ATTRIBUTE_HOST_POINTER, inside, readable), row.host_readable);
    EXPECT_EQ(attribute(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, row.pointer + 100, number),
              CUDA_ERROR_INVALID_VALUE);
  }
  CUdeviceptr alias = 0;
  EXPECT_EQ(cuMemHostGetDevicePointer(&alias, host, 0), CUDA_SUCCESS);
  EXPECT_EQ(alias, address(host));
  EXPECT_EQ(cuMemFree(address(host)), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFreeHost(reinterpret_cast<void*>(managed)), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFree(device + 1), CUDA_ERROR_INVALID_VALUE);
  for (const CUdeviceptr each : {device, managed}) {
    EXPECT_EQ(cuMemFree(each), CUDA_SUCCESS);
    EXPECT_EQ(cuMemFree(each), CUDA_ERROR_INVALID_VALUE);
  }
  EXPECT_EQ(cuMemFreeHost(host), CUDA_SUCCESS);
}

TEST_F(CudaContext, CountsAndLimitsMemory) {
  size_t free_before = 0;
  size_t total = 0;
  ASSERT_EQ(cuMemGetInfo(&free_before, &total), CUDA_SUCCESS);
  CUdeviceptr memory = 0;
  ASSERT_EQ(cuMemAlloc(&memory, 1000), CUDA_SUCCESS);
  size_t free_after = 0;
  ASSERT_EQ(cuMemGetInfo(&free_after, &total), CUDA_SUCCESS);
  EXPECT_EQ(free_before - free_after, 1000U);
  CUdeviceptr more = 0;
  EXPECT_EQ(cuMemAlloc(&more, total), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemAlloc(&more, 0), CUDA_ERROR_INVALID_VALUE);
  const CUstream on = stream();
  EXPECT_EQ(cuMemsetD8Async(memory + 1, 0, 1000, on), CUDA_ERROR_INVALID_VALUE);
  char host[8] = "";
  EXPECT_EQ(cuMemcpyDtoHAsync(host, address(host), 8, on), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuStreamDestroy(on), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree(memory), CUDA_SUCCESS);
}

// A broken context stays unusable, so this test creates a separate one.
TEST_F(CudaContext, FreeDuringWorkBreaksContext) {
  CUcontext broken = nullptr;
  Gate gate;
  ASSERT_EQ(cuCtxCreate(&broken, nullptr, 0, 0), CUDA_SUCCESS);
  const CUstream on = stream();
  CUdeviceptr memory = 0;
  ASSERT_EQ(cuMemAlloc(&memory, 64), CUDA_SUCCESS);
  gate.shut(on);
  ASSERT_EQ(cuMemsetD8Async(memory, 1, 64, on), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree(memory), CUDA_SUCCESS);
  gate.open();
  EXPECT_EQ(cuStreamSynchronize(on), CUDA_ERROR_ILLEGAL_ADDRESS);
  CUevent made = nullptr;
  EXPECT_EQ(cuEventCreate(&made, 0), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cuStreamDestroy(on), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cuCtxDestroy(broken), CUDA_SUCCESS);
}

TEST_F(CudaContext, LostDeviceDropsWork) {
  Gate gate;
  CUcontext lost = nullptr;
  ASSERT_EQ(cuCtxCreate(&lost, nullptr, 0, 1), CUDA_SUCCESS);
  const CUstream on = stream();
  const CUevent done = event();
  gate.shut(on);
  ASSERT_EQ(cuEventRecord(done, on), CUDA_SUCCESS);
  EXPECT_EQ(cuEventQuery(done), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(FletchingStandinLoseDevice(7, 1), EINVAL);
  EXPECT_EQ(FletchingStandinLoseDevice(1, 0), EINVAL);
  ASSERT_EQ(FletchingStandinLoseDevice(1, CUDA_ERROR_LAUNCH_FAILED), 0);
  EXPECT_EQ(cuEventSynchronize(done), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(cuStreamSynchronize(on), CUDA_ERROR_LAUNCH_FAILED);
  CUcontext again = nullptr;
  EXPECT_EQ(cuDevicePrimaryCtxRetain(&again, 1), CUDA_ERROR_LAUNCH_FAILED);
  ASSERT_EQ(FletchingStandinRestoreDevice(1), 0);
  EXPECT_EQ(cuEventQuery(done), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(cuEventDestroy(done), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(cuStreamDestroy(on), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(cuCtxDestroy(lost), CUDA_SUCCESS);
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&again, 1), CUDA_SUCCESS);
  EXPECT_EQ(cuDevicePrimaryCtxRelease(1), CUDA_SUCCESS);
}

TEST_F(CudaContext, InjectsFaults) {
  const std::int64_t calls = FletchingStandinCalls("cuEventCreate");
  ASSERT_EQ(FletchingStandinSetFault("cuEventCreate:2:CUDA_ERROR_LAUNCH_FAILED,cuMemAlloc_v2:*:2"),
            0);
  const CUevent made = event();
  CUevent failed = nullptr;
  EXPECT_EQ(cuEventCreate(&failed, 0), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(failed, nullptr);
  const CUevent next = event();
  EXPECT_EQ(FletchingStandinCalls("cuEventCreate") - calls, 3);
  for (int i = 0; i < 2; ++i) {
    CUdeviceptr memory = 0;
    EXPECT_EQ(cuMemAlloc(&memory, 16), CUDA_ERROR_OUT_OF_MEMORY);
  }
  // A function that frees something does so even if it fails.
  ASSERT_EQ(FletchingStandinSetFault("cuEventDestroy:1:700"), 0);
  EXPECT_EQ(cuEventDestroy(made), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cuEventDestroy(made), CUDA_ERROR_INVALID_HANDLE);
  FletchingStandinResetFaults();
  EXPECT_EQ(cuEventDestroy(next), CUDA_SUCCESS);
  for (const char* wrong : {"", "cuEventCreate", "cuEventCreate:0:1", "cuEventCreate:1:NOTHING",
                            "cuEventCreate:1:0", "cuNothing:1:1", "cuEventCreate:x:1"}) {
    EXPECT_EQ(FletchingStandinSetFault(wrong), EINVAL) << wrong;
  }
  EXPECT_EQ(FletchingStandinSetFault(nullptr), EINVAL);
}

TEST_F(CudaContext, CountsLeaks) {
  FletchingStandinCounts before{};
  const std::int64_t all = FletchingStandinLeaks(&before);
  const CUevent leaked = event();
  FletchingStandinCounts after{};
  EXPECT_EQ(FletchingStandinLeaks(&after), all + 1);
  EXPECT_EQ(after.events, before.events + 1);
  EXPECT_EQ(after.primary_references, 1);
  const size_t length = FletchingStandinReport(nullptr, 0);
  std::string report(length + 1, '\0');
  EXPECT_EQ(FletchingStandinReport(report.data(), report.size()), length);
  EXPECT_NE(report.find("  events 1\n"), std::string::npos) << report;
  EXPECT_NE(report.find("  cuEventCreate "), std::string::npos) << report;
  char begin[10];
  EXPECT_EQ(FletchingStandinReport(begin, sizeof(begin)), length);
  EXPECT_STREQ(begin, "Fletching");
  EXPECT_EQ(cuEventDestroy(leaked), CUDA_SUCCESS);
}

}  // namespace
