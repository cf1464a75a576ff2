// SPDX-License-Identifier: Apache-2.0
// The stand-in's environment variables and its report at process exit. Each scenario runs this
// program again with a separate environment.
#include <cuda.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>
#include <string_view>

#include "standin.h"

namespace {

std::string self;  // path of this program

struct ProcessResult {
  int status;  // exit status, negative for a signal
  std::string text;
};

ProcessResult run(const std::string& environment, const std::string& scenario) {
  const std::string command =
      "exec env " + environment + " " + self + " --scenario " + scenario + " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return {-1, "popen failed"};
  ProcessResult result{0, ""};
  std::array<char, 256> part{};
  while (std::fgets(part.data(), part.size(), pipe) != nullptr) result.text += part.data();
  const int status = pclose(pipe);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  return result;
}

// The scenarios. Each returns the exit status, in most cases a driver result.
int before_init() {
  int count = 0;
  return cuDeviceGetCount(&count);
}

int init() { return cuInit(0) % 256; }

int leak() {
  (void)std::fputs("written before\n", stdout);  // must not be lost when the process ends
  CUcontext context = nullptr;
  CUevent event = nullptr;
  if (cuInit(0) != CUDA_SUCCESS) return 1;
  if (cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) return 1;
  if (cuCtxPushCurrent(context) != CUDA_SUCCESS) return 1;
  return cuEventCreate(&event, 0) == CUDA_SUCCESS ? 0 : 1;
}

// A program without a current context, in both modes.
int without_context() {
  CUcontext context = nullptr;
  CUevent event = nullptr;
  if (leak() != 0 || cuCtxPopCurrent(&context) != CUDA_SUCCESS) return 1;
  if (cuCtxPushCurrent(context) != CUDA_SUCCESS) return 1;
  if (cuEventCreate(&event, 0) != CUDA_SUCCESS) return 1;
  if (cuCtxPopCurrent(nullptr) != CUDA_SUCCESS) return 1;
  return cuEventDestroy(event);
}

// Releases after main() has returned and the thread's own objects are destroyed.
struct ReleaseAtExit {
  CUcontext context = nullptr;
  CUevent event = nullptr;

  ReleaseAtExit() = default;
  ReleaseAtExit(const ReleaseAtExit&) = delete;
  ReleaseAtExit& operator=(const ReleaseAtExit&) = delete;
  ~ReleaseAtExit() {
    if (context == nullptr) return;
    const bool fine =
        cuCtxPushCurrent(context) == CUDA_SUCCESS &&
        cuEventRecord(event, CU_STREAM_PER_THREAD) == CUDA_SUCCESS &&
        cuEventSynchronize(event) == CUDA_SUCCESS && cuEventDestroy(event) == CUDA_SUCCESS &&
        cuCtxPopCurrent(nullptr) == CUDA_SUCCESS && cuDevicePrimaryCtxRelease(0) == CUDA_SUCCESS;
    (void)std::fputs(fine ? "released late\n" : "not released\n", stdout);
  }
};
ReleaseAtExit late;

int release_at_exit() {
  if (cuInit(0) != CUDA_SUCCESS) return 1;
  if (cuDevicePrimaryCtxRetain(&late.context, 0) != CUDA_SUCCESS) return 1;
  if (cuCtxPushCurrent(late.context) != CUDA_SUCCESS) return 1;
  if (cuEventCreate(&late.event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) return 1;
  if (cuStreamSynchronize(CU_STREAM_PER_THREAD) != CUDA_SUCCESS) return 1;
  return cuCtxPopCurrent(nullptr);
}

int main_of(std::string_view scenario) {
  if (scenario == "before_init") return before_init();
  if (scenario == "init") return init();
  if (scenario == "leak") return leak();
  if (scenario == "release_at_exit") return release_at_exit();
  if (scenario == "without_context") return without_context();
  return 99;
}

TEST(Environment, CallsFailBeforeInit) {
  EXPECT_EQ(run("", "before_init").status, CUDA_ERROR_NOT_INITIALIZED);
}

TEST(Environment, ZeroDevicesFailsInit) {
  EXPECT_EQ(run("FLETCHING_STANDIN_DEVICES=0", "init").status, CUDA_ERROR_NO_DEVICE);
  EXPECT_EQ(run("FLETCHING_STANDIN_DEVICES=64", "init").status, CUDA_SUCCESS);
}

TEST(Environment, InjectsFaults) {
  EXPECT_EQ(run("FLETCHING_FAULT=cuInit:1:CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "init").status,
            CUDA_ERROR_SYSTEM_DRIVER_MISMATCH % 256);
  EXPECT_EQ(run("FLETCHING_FAULT=cuInit:2:5", "init").status, CUDA_SUCCESS);
  EXPECT_EQ(run("'FLETCHING_FAULT=hipInit:1:1,cuInit:*:5'", "init").status, 5);
}

TEST(Environment, InvalidValueTerminates) {
  const ProcessResult fault = run("FLETCHING_FAULT=cuInitialize:1:5", "init");
  EXPECT_NE(fault.status, 0);
  EXPECT_NE(fault.text.find("FLETCHING_FAULT is \"cuInitialize:1:5\""), std::string::npos)
      << fault.text;
  const ProcessResult devices = run("FLETCHING_STANDIN_DEVICES=two", "init");
  EXPECT_NE(devices.text.find("FLETCHING_STANDIN_DEVICES is \"two\""), std::string::npos)
      << devices.text;
}

TEST(Environment, ReportsLeaks) {
  const ProcessResult silent = run("", "leak");
  EXPECT_EQ(silent.status, 0);
  EXPECT_EQ(silent.text, "written before\n");
  const ProcessResult reported = run("FLETCHING_STANDIN_LEAKS=report", "leak");
  EXPECT_EQ(reported.status, 0);
  EXPECT_NE(reported.text.find("Fletching stand-in (cuda): 2 alive\n"), std::string::npos);
  EXPECT_NE(reported.text.find("  events 1\n"), std::string::npos) << reported.text;
  EXPECT_NE(reported.text.find("  cuEventCreate 1\n"), std::string::npos) << reported.text;
  const ProcessResult failed = run("FLETCHING_STANDIN_LEAKS=fail", "leak");
  EXPECT_EQ(failed.status, 86);
  EXPECT_NE(failed.text.find("written before\n"), std::string::npos) << failed.text;
  EXPECT_EQ(run("FLETCHING_STANDIN_LEAKS=fail", "init").status, 0);
}

TEST(Environment, AcceptsReleaseDuringProcessExit) {
  const ProcessResult result = run("FLETCHING_STANDIN_LEAKS=fail", "release_at_exit");
  EXPECT_EQ(result.text, "released late\n");
  EXPECT_EQ(result.status, 0);
}

TEST(Environment, DriverModeNeedsNoContext) {
  EXPECT_EQ(run("", "without_context").status, CUDA_ERROR_INVALID_CONTEXT % 256);
  EXPECT_EQ(run("FLETCHING_STANDIN_MODE=driver", "without_context").status, CUDA_SUCCESS);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "--scenario") return main_of(argv[2]);
  testing::InitGoogleTest(&argc, argv);
  self = argv[0];
  return RUN_ALL_TESTS();
}
