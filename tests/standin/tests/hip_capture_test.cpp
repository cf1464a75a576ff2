// SPDX-License-Identifier: Apache-2.0
// HIP stand-in: stream captures into graphs, with the engine that the CUDA tests cover.
#include <gtest/gtest.h>
#include <hip/hip_runtime_api.h>

#include <thread>

#include "standin.h"

// ROCm 5.2.3 declares neither this function nor the flags of external events.
extern "C" hipError_t hipEventRecordWithFlags(hipEvent_t event, hipStream_t stream,
                                              unsigned int flags);

namespace {

constexpr unsigned int kExternal = 1;

class HipCapture : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(hipSetDevice(0), hipSuccess);
    ASSERT_EQ(hipStreamCreateWithFlags(&stream_, hipStreamNonBlocking), hipSuccess);
    ASSERT_EQ(hipEventCreateWithFlags(&event_, hipEventDisableTiming), hipSuccess);
  }
  void TearDown() override {
    EXPECT_EQ(hipEventDestroy(event_), hipSuccess);
    EXPECT_EQ(hipStreamDestroy(stream_), hipSuccess);
    EXPECT_EQ(FletchingStandinLeaks(nullptr), 0);
  }
  hipStreamCaptureStatus status() const {
    auto found = hipStreamCaptureStatusNone;
    EXPECT_EQ(hipStreamIsCapturing(stream_, &found), hipSuccess);
    return found;
  }

  hipStream_t stream_ = nullptr;
  hipEvent_t event_ = nullptr;
  hipGraph_t graph_ = nullptr;
};

TEST_F(HipCapture, RejectsUnsafeCallsUnlessRelaxed) {
  ASSERT_EQ(hipStreamBeginCapture(stream_, hipStreamCaptureModeGlobal), hipSuccess);
  std::thread([&] {
    auto mode = hipStreamCaptureModeRelaxed;
    EXPECT_EQ(hipThreadExchangeStreamCaptureMode(&mode), hipSuccess);
    EXPECT_EQ(mode, hipStreamCaptureModeGlobal);
    EXPECT_EQ(hipEventQuery(event_), hipSuccess);
    EXPECT_EQ(hipThreadExchangeStreamCaptureMode(&mode), hipSuccess);
    EXPECT_EQ(status(), hipStreamCaptureStatusActive);
    EXPECT_EQ(hipEventQuery(event_), hipErrorStreamCaptureUnsupported);
  }).join();
  EXPECT_EQ(status(), hipStreamCaptureStatusInvalidated);
  EXPECT_EQ(hipStreamEndCapture(stream_, &graph_), hipErrorStreamCaptureInvalidated);
  EXPECT_EQ(graph_, nullptr);
}

TEST_F(HipCapture, RecordsExternalEventsPerLaunch) {
  EXPECT_EQ(hipEventRecordWithFlags(event_, stream_, kExternal), hipErrorInvalidValue);
  ASSERT_EQ(hipStreamBeginCapture(stream_, hipStreamCaptureModeGlobal), hipSuccess);
  ASSERT_EQ(hipStreamWaitEvent(stream_, event_, kExternal), hipSuccess);
  ASSERT_EQ(hipEventRecordWithFlags(event_, stream_, kExternal), hipSuccess);
  ASSERT_EQ(hipStreamEndCapture(stream_, &graph_), hipSuccess);
  hipGraphExec_t executable = nullptr;
  ASSERT_EQ(hipGraphInstantiateWithFlags(&executable, graph_, 0), hipSuccess);
  ASSERT_EQ(hipGraphDestroy(graph_), hipSuccess);
  ASSERT_EQ(hipGraphLaunch(executable, stream_), hipSuccess);
  EXPECT_EQ(hipEventSynchronize(event_), hipSuccess);
  EXPECT_EQ(hipGraphExecDestroy(executable), hipSuccess);
}

TEST_F(HipCapture, RejectsWaitForEventOutsideCapture) {
  ASSERT_EQ(hipStreamBeginCapture(stream_, hipStreamCaptureModeRelaxed), hipSuccess);
  EXPECT_EQ(hipStreamWaitEvent(stream_, event_, 0), hipErrorStreamCaptureIsolation);
  EXPECT_EQ(hipStreamEndCapture(stream_, &graph_), hipErrorStreamCaptureInvalidated);
}

}  // namespace
