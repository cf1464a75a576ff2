// SPDX-License-Identifier: Apache-2.0
// CUDA stand-in: stream captures into graphs, calls that captures forbid, and destroyed contexts.
#include <functional>
#include <string>
#include <thread>

#include "cuda_fixture.hpp"

namespace {

class CudaCapture : public Cuda {
 protected:
  static void begin(CUstream on, CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL) {
    ASSERT_EQ(cuStreamBeginCapture(on, mode), CUDA_SUCCESS);
  }
  static CUgraph end(CUstream on) {
    CUgraph graph = nullptr;
    EXPECT_EQ(cuStreamEndCapture(on, &graph), CUDA_SUCCESS);
    return graph;
  }
  // Ends an invalidated capture.
  static void end_invalidated(CUstream on) {
    CUgraph graph = nullptr;
    EXPECT_EQ(cuStreamEndCapture(on, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EXPECT_EQ(graph, nullptr);
    EXPECT_EQ(status(on), CU_STREAM_CAPTURE_STATUS_NONE);
  }
  static CUstreamCaptureStatus status(CUstream on) {
    auto found = CU_STREAM_CAPTURE_STATUS_NONE;
    EXPECT_EQ(cuStreamIsCapturing(on, &found), CUDA_SUCCESS);
    return found;
  }
  static CUstreamCaptureMode exchange(CUstreamCaptureMode mode) {
    EXPECT_EQ(cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
    return mode;
  }
  static CUgraphExec instantiate(CUgraph graph) {
    CUgraphExec made = nullptr;
    EXPECT_EQ(cuGraphInstantiate(&made, graph, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
    return made;
  }
  static void destroy(std::initializer_list<CUstream> streams) {
    for (CUstream each : streams) EXPECT_EQ(cuStreamDestroy(each), CUDA_SUCCESS);
  }
};

TEST_F(CudaCapture, LaunchRunsCapturedWork) {
  const CUstream on = stream();
  const CUdeviceptr data = numbers();
  begin(on);
  EXPECT_EQ(status(on), CU_STREAM_CAPTURE_STATUS_ACTIVE);
  ASSERT_EQ(cuMemsetD8Async(data, 1, kElements * sizeof(std::int32_t), on), CUDA_SUCCESS);
  const CUgraphExec graph = instantiate(end(on));
  EXPECT_EQ(last(data, on), 0);
  for (int round = 0; round < 2; ++round) {
    ASSERT_EQ(cuGraphLaunch(graph, on), CUDA_SUCCESS);
    EXPECT_EQ(last(data, on), 0x01010101);
    ASSERT_EQ(cuMemsetD8Async(data, 0, kElements * sizeof(std::int32_t), on), CUDA_SUCCESS);
    EXPECT_EQ(last(data, on), 0);
  }
  EXPECT_EQ(cuGraphExecDestroy(graph), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree(data), CUDA_SUCCESS);
  destroy({on});
}

TEST_F(CudaCapture, RejectsMisplacedBeginAndEnd) {
  const CUstream on = stream();
  const CUstream other = stream();
  CUgraph graph = nullptr;
  EXPECT_EQ(cuStreamBeginCapture(nullptr, CU_STREAM_CAPTURE_MODE_GLOBAL),
            CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(cuStreamEndCapture(on, &graph), CUDA_ERROR_ILLEGAL_STATE);
  begin(on);
  EXPECT_EQ(cuStreamBeginCapture(on, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_ERROR_ILLEGAL_STATE);
  std::thread([&] {
    ASSERT_EQ(cuCtxPushCurrent(context_), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamEndCapture(on, &graph), CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    EXPECT_EQ(cuCtxPopCurrent(nullptr), CUDA_SUCCESS);
  }).join();
  const CUevent fork = event();
  ASSERT_EQ(cuEventRecord(fork, on), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamWaitEvent(other, fork, 0), CUDA_SUCCESS);
  EXPECT_EQ(status(other), CU_STREAM_CAPTURE_STATUS_ACTIVE) << "it has joined the capture";
  EXPECT_EQ(cuStreamEndCapture(other, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  const CUdeviceptr data = [] {
    CUdeviceptr made = 0;
    exchange(CU_STREAM_CAPTURE_MODE_RELAXED);
    EXPECT_EQ(cuMemAlloc(&made, 4), CUDA_SUCCESS);
    exchange(CU_STREAM_CAPTURE_MODE_GLOBAL);
    return made;
  }();
  ASSERT_EQ(cuMemsetD8Async(data, 1, 4, other), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamEndCapture(on, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  EXPECT_EQ(status(on), CU_STREAM_CAPTURE_STATUS_NONE);

  // The same with the other stream joined again.
  begin(on);
  ASSERT_EQ(cuEventRecord(fork, on), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamWaitEvent(other, fork, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemsetD8Async(data, 1, 4, other), CUDA_SUCCESS);
  const CUevent join = event();
  ASSERT_EQ(cuEventRecord(join, other), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamWaitEvent(on, join, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphDestroy(end(on)), CUDA_SUCCESS);

  // A capture that begins on another stream cannot be merged with this one.
  begin(on);
  begin(other);
  ASSERT_EQ(cuEventRecord(fork, on), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamWaitEvent(other, fork, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
  end_invalidated(on);
  end_invalidated(other);
  for (CUevent each : {fork, join}) EXPECT_EQ(cuEventDestroy(each), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree(data), CUDA_SUCCESS);
  destroy({on, other});
}

// Calls that the driver calls unsafe, by the capture's mode, the calling thread's mode, and whether
// the thread is the capturing one.
TEST_F(CudaCapture, RejectsUnsafeCallsByMode) {
  const CUevent done = event();
  const CUdeviceptr memory = numbers();
  void* pinned = nullptr;
  ASSERT_EQ(cuMemHostAlloc(&pinned, 4, 0), CUDA_SUCCESS);
  const CUstream on = stream();
  const std::function<CUresult()> unsafe[] = {
      [&] { return cuEventQuery(done); },
      [&] { return cuEventSynchronize(done); },
      [&] { return cuMemFree(memory); },
      [&] { return cuMemFreeHost(pinned); },
      [] {
        CUdeviceptr made = 0;
        const CUresult result = cuMemAlloc(&made, 4);
        if (result == CUDA_SUCCESS) {
          EXPECT_EQ(cuMemFree(made), CUDA_SUCCESS);
        }
        return result;
      },
  };
  constexpr auto kGlobal = CU_STREAM_CAPTURE_MODE_GLOBAL;
  constexpr auto kLocal = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
  constexpr auto kRelaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
  struct Row {
    CUstreamCaptureMode capture;
    CUstreamCaptureMode thread;
    bool is_other_thread;
    bool is_refused;
  };
  const Row rows[] = {{kGlobal, kGlobal, true, true},    {kGlobal, kLocal, true, false},
                      {kGlobal, kRelaxed, true, false},  {kLocal, kGlobal, true, false},
                      {kRelaxed, kGlobal, true, false},  {kGlobal, kGlobal, false, true},
                      {kGlobal, kLocal, false, true},    {kLocal, kGlobal, false, true},
                      {kLocal, kLocal, false, true},     {kLocal, kRelaxed, false, false},
                      {kRelaxed, kGlobal, false, false}, {kRelaxed, kLocal, false, false}};
  for (std::size_t i = 0; i < std::size(unsafe); ++i) {
    for (const Row& row : rows) {
      if (!row.is_refused && (i == 2 || i == 3)) continue;  // the call would free the object
      begin(on, row.capture);
      const auto call = [&] {
        exchange(row.thread);
        EXPECT_EQ(unsafe[i](),
                  row.is_refused ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS)
            << "call " << i << ", " << row.capture << row.thread << row.is_other_thread;
        EXPECT_EQ(exchange(kGlobal), row.thread);
      };
      if (row.is_other_thread) {
        std::thread([&] {
          ASSERT_EQ(cuCtxPushCurrent(context_), CUDA_SUCCESS);
          call();
          EXPECT_EQ(cuCtxPopCurrent(nullptr), CUDA_SUCCESS);
        }).join();
      } else {
        call();
      }
      if (row.is_refused) {
        EXPECT_EQ(status(on), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
        EXPECT_EQ(cuEventRecord(done, on), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        CUcontext of_stream = nullptr;  // the same result as driver 580
        EXPECT_EQ(cuStreamGetCtx(on, &of_stream), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        end_invalidated(on);
      } else {
        EXPECT_EQ(cuGraphDestroy(end(on)), CUDA_SUCCESS);
      }
    }
  }
  auto wrong = static_cast<CUstreamCaptureMode>(3);
  EXPECT_EQ(cuThreadExchangeStreamCaptureMode(&wrong), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFreeHost(pinned), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree(memory), CUDA_SUCCESS);
  EXPECT_EQ(cuEventDestroy(done), CUDA_SUCCESS);
  destroy({on});
}

// Calls that contradict a capture fail in every mode.
TEST_F(CudaCapture, RejectsQueryAndWaitOfCapturedWork) {
  exchange(CU_STREAM_CAPTURE_MODE_RELAXED);
  const CUstream on = stream();
  const CUevent captured = event();
  const CUevent outside = event();
  const CUdeviceptr memory = numbers();
  const std::function<CUresult()> calls[] = {
      [&] { return cuEventQuery(captured); },
      [&] { return cuEventSynchronize(captured); },
      [&] { return cuStreamQuery(on); },
      [&] { return cuStreamSynchronize(on); },
      [&] { return cuStreamWaitEvent(on, outside, 0); },
      [&] {
        std::int32_t pageable = 0;
        return cuMemcpyDtoHAsync(&pageable, memory, sizeof pageable, on);
      },
  };
  const CUresult expected[] = {CUDA_ERROR_CAPTURED_EVENT,
                               CUDA_ERROR_CAPTURED_EVENT,
                               CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                               CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                               CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
                               CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED};
  for (std::size_t i = 0; i < std::size(calls); ++i) {
    begin(on, CU_STREAM_CAPTURE_MODE_RELAXED);
    ASSERT_EQ(cuEventRecord(captured, on), CUDA_SUCCESS);
    EXPECT_EQ(calls[i](), expected[i]) << "call " << i;
    end_invalidated(on);
  }
  EXPECT_EQ(cuEventQuery(captured), CUDA_ERROR_CAPTURED_EVENT) << "the capture is over";
  ASSERT_EQ(cuEventRecord(captured, on), CUDA_SUCCESS);
  EXPECT_EQ(cuEventSynchronize(captured), CUDA_SUCCESS) << "recorded again";
  for (CUevent each : {captured, outside}) EXPECT_EQ(cuEventDestroy(each), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree(memory), CUDA_SUCCESS);
  destroy({on});
  exchange(CU_STREAM_CAPTURE_MODE_GLOBAL);
}

// The legacy default stream is unusable while a blocking stream is captured; querying is harmless.
TEST_F(CudaCapture, RejectsLegacyStreamDuringBlockingCapture) {
  const CUstream blocking = stream(CU_STREAM_DEFAULT);
  const CUstream free = stream();
  const CUevent done = event();
  auto found = CU_STREAM_CAPTURE_STATUS_NONE;
  begin(free, CU_STREAM_CAPTURE_MODE_RELAXED);
  EXPECT_EQ(status(nullptr), CU_STREAM_CAPTURE_STATUS_NONE);
  EXPECT_EQ(cuGraphDestroy(end(free)), CUDA_SUCCESS);
  begin(blocking, CU_STREAM_CAPTURE_MODE_RELAXED);
  EXPECT_EQ(cuStreamIsCapturing(CU_STREAM_LEGACY, &found), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  EXPECT_EQ(status(blocking), CU_STREAM_CAPTURE_STATUS_ACTIVE);
  EXPECT_EQ(cuEventRecord(done, CU_STREAM_LEGACY), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  end_invalidated(blocking);
  EXPECT_EQ(cuEventDestroy(done), CUDA_SUCCESS);
  destroy({blocking, free});
}

TEST_F(CudaCapture, RecordsExternalEventsPerLaunch) {
  const CUstream on = stream();
  const CUstream producer = stream();
  const CUevent before = event();
  const CUevent after = event();
  const CUdeviceptr data = numbers();
  EXPECT_EQ(cuEventRecordWithFlags(after, on, CU_EVENT_RECORD_EXTERNAL), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuStreamWaitEvent(on, before, CU_EVENT_WAIT_EXTERNAL), CUDA_ERROR_INVALID_VALUE);
  begin(on);
  ASSERT_EQ(cuStreamWaitEvent(on, before, CU_EVENT_WAIT_EXTERNAL), CUDA_SUCCESS);
  ASSERT_EQ(cuMemsetD8Async(data, 1, kElements * sizeof(std::int32_t), on), CUDA_SUCCESS);
  ASSERT_EQ(cuEventRecordWithFlags(after, on, CU_EVENT_RECORD_EXTERNAL), CUDA_SUCCESS);
  const CUgraphExec graph = instantiate(end(on));

  Gate gate;
  gate.shut(producer);
  ASSERT_EQ(cuEventRecord(before, producer), CUDA_SUCCESS);
  EXPECT_EQ(cuEventQuery(after), CUDA_SUCCESS) << "nothing has been recorded in it";
  ASSERT_EQ(cuGraphLaunch(graph, on), CUDA_SUCCESS);
  EXPECT_EQ(cuEventQuery(after), CUDA_ERROR_NOT_READY);
  gate.open();
  EXPECT_EQ(cuEventSynchronize(after), CUDA_SUCCESS);
  EXPECT_EQ(last(data, on), 0x01010101);

  // The graph does not keep the event alive: a driver may crash here, and the stand-in reports it.
  const auto stale = FletchingStandinStaleHandles();
  ASSERT_EQ(cuEventDestroy(after), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphLaunch(graph, on), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(FletchingStandinStaleHandles(), stale + 1);
  EXPECT_EQ(cuGraphExecDestroy(graph), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphExecDestroy(graph), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuEventDestroy(before), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree(data), CUDA_SUCCESS);
  destroy({on, producer});
}

// A reset destroys everything except the references. The next primary context has the same handle
// and a different id.
TEST_F(CudaCapture, ResetPrimaryContextGetsNewId) {
  CUcontext first = nullptr;
  CUcontext second = nullptr;
  unsigned long long first_id = 0;
  unsigned long long second_id = 0;
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&first, 1), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxGetId(first, &first_id), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxPushCurrent(first), CUDA_SUCCESS);
  const CUevent done = event();
  EXPECT_EQ(cuCtxPopCurrent(nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cuDevicePrimaryCtxReset(1), CUDA_SUCCESS);
  unsigned int flags = 0;
  int is_active = 1;
  EXPECT_EQ(cuDevicePrimaryCtxGetState(1, &flags, &is_active), CUDA_SUCCESS);
  EXPECT_EQ(is_active, 0);

  const auto stale = FletchingStandinStaleHandles();
  EXPECT_EQ(cuEventQuery(done), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuCtxPushCurrent(first), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cuCtxGetId(first, &second_id), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  EXPECT_EQ(FletchingStandinStaleHandles(), stale + 3);

  ASSERT_EQ(cuDevicePrimaryCtxRetain(&second, 1), CUDA_SUCCESS);
  EXPECT_EQ(second, first);
  ASSERT_EQ(cuCtxGetId(second, &second_id), CUDA_SUCCESS);
  EXPECT_NE(second_id, first_id);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(cuDevicePrimaryCtxRelease(1), CUDA_SUCCESS);
}

}  // namespace
