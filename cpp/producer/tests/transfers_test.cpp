// The blocking copies of a backend: they share one queue and may be called from any thread.
#include <array>
#include <atomic>
#include <latch>
#include <thread>

#include "faults/control.hpp"
#include "gate_support.hpp"

namespace {

using fletching::faults::Control;
using fletching::faults::vendor_of;

constexpr const char* kCase = "record_batch";

class TransfersTest : public ProducerTest, public testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override {
    ProducerTest::SetUp();
    const std::string why = why_absent(GetParam());
    if (!why.empty()) GTEST_SKIP() << GetParam() << " is absent: " << why;
  }

  // Returns 0 or an errno value.
  static int export_case(ArrowSchema& schema, ArrowDeviceArray& array, FletchingMessage& message) {
    return FletchingProducerExportArray(GetParam().c_str(), kCase, &schema, &array, &message);
  }
  static int verify(ArrowSchema& schema, ArrowDeviceArray& array, FletchingMessage& message) {
    return FletchingProducerVerifyArray(GetParam().c_str(), kCase, &schema, &array, &message);
  }
  static int export_verify_release(FletchingMessage& message) {
    ArrowSchema schema;
    ArrowDeviceArray array;
    int code = export_case(schema, array, message);
    if (code == 0) {
      code = verify(schema, array, message);
      array.array.release(&array.array);
      schema.release(&schema);
    }
    return code;
  }
};

// False for host memory, which the host copies.
bool has_queue_for_copies(const std::string& backend) { return !backend.ends_with("_host"); }

// The function that creates a queue.
std::string create_function(const std::string& backend) {
  if (backend == "opencl") return "clCreateCommandQueue";
  return backend.starts_with("cuda") ? "cuStreamCreate" : "hipStreamCreateWithFlags";
}

TEST_P(TransfersTest, AllCopiesShareOneQueue) {
  const Control control(*vendor_of(GetParam()).runtime);
  if (!control.is_there()) GTEST_SKIP() << "the library is the vendor's own, and counts no calls";
  FletchingMessage message;
  // Run the one-time initialization first.
  ASSERT_EQ(export_verify_release(message), 0) << message.text;
  const std::string create = create_function(GetParam());
  const int64_t calls = control.calls(create);
  const int64_t alive = control.alive();
  ArrowSchema schema;
  ArrowDeviceArray array;
  ASSERT_EQ(export_case(schema, array, message), 0) << message.text;
  EXPECT_GT(counters_now().live_allocations, 1) << "one copy proves nothing";
  EXPECT_EQ(verify(schema, array, message), 0) << message.text;
  EXPECT_EQ(control.calls(create), calls + (has_queue_for_copies(GetParam()) ? 1 : 0));
  release(array.array);
  release(schema);
  EXPECT_EQ(control.alive(), alive) << control.report();
}

// A driver may wait for the whole device before it allocates or frees, and copies from host to host
// on the calling thread. Here the memory of both is pinned.
TEST_P(TransfersTest, ShutGateMakesNoBlockingDriverCalls) {
  const Control control(*vendor_of(GetParam()).runtime);
  if (!control.is_there()) GTEST_SKIP() << "the library is the vendor's own, and counts no calls";
  std::vector<std::string> functions{"cuMemAlloc",
                                     "cuMemFree",
                                     "cuMemHostAlloc",
                                     "cuMemFreeHost",
                                     "cuMemAllocManaged",
                                     "hipMalloc",
                                     "hipFree",
                                     "hipHostMalloc",
                                     "hipHostFree",
                                     "hipMallocManaged",
                                     "hipExtMallocWithFlags"};
  if (GetParam() != "cuda" && GetParam() != "rocm") {
    functions.insert(functions.end(), {"cuMemcpyAsync", "hipMemcpyAsync"});
  }
  const auto calls = [&] {
    int64_t sum = 0;
    for (const std::string& function : functions) sum += control.calls(function);
    return sum;
  };
  const OwnedGate gate = new_gate(GetParam());
  const int64_t before = calls();
  ArrowSchema schema;
  ArrowDeviceArray array;
  FletchingMessage message;
  ASSERT_EQ(FletchingProducerExportArrayBehind(gate.get(), kCase, &schema, &array, &message), 0)
      << message.text;
  {
    const OwnedQueue queue = new_queue(GetParam());
    read(queue, kCase, array);
    EXPECT_GT(::verify(queue, FLETCHING_PRODUCER_OLD), 0);
  }
  release(array.array);
  release(schema);
  EXPECT_EQ(calls(), before);
  open(gate);
}

TEST_P(TransfersTest, CopiesConcurrentlyOnThreads) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 10;
  std::latch begin(kThreads);
  std::array<FletchingMessage, kThreads> messages{};
  std::atomic<int> failures = 0;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (FletchingMessage& message : messages) {
    threads.emplace_back([&] {
      begin.arrive_and_wait();
      for (int i = 0; i < kRounds && failures == 0; ++i) {
        if (export_verify_release(message) != 0) ++failures;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const FletchingMessage& message : messages) EXPECT_STREQ(message.text, "");
}

INSTANTIATE_TEST_SUITE_P(All, TransfersTest,
                         testing::Values("cuda", "cuda_host", "cuda_managed", "rocm", "rocm_host",
                                         "opencl"),
                         [](const auto& info) { return info.param; });

}  // namespace
