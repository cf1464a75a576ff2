// SPDX-License-Identifier: Apache-2.0
//
// Release of objects exported or imported by the CUDA Array Interface: during a capture, on another
// thread, in a child of fork.
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "exchange.hpp"
#include "graphs.hpp"

namespace fletching::testing {
namespace {

using CudaGraphs = Graphs<CudaApi>;

/// An exported or imported object, with `ours` as the stream of the consumer's work.
class ExchangeRelease : public Exchange, public ::testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    Exchange::SetUp();
    if (!is_open_) return;
    ours_ = consumer_;
    if (!CudaGraphs::are_there()) GTEST_SKIP() << "the driver has no graphs";
  }

  void make_one(void* ours) {
    if (GetParam()) {
      exported_.emplace(described(make(), ours));
    } else {
      imported_ = imported(says(handle(producer_)), {.consumer_stream = on(ours)});
    }
  }
  void release() {
    exported_.reset();
    imported_.array.release();
  }
  [[nodiscard]] Releases& released() { return GetParam() ? releases_ : owners_; }

  void* ours_ = nullptr;
  std::optional<CudaArray> exported_;
  ImportedTensor imported_;
};
INSTANTIATE_TEST_SUITE_P(Both, ExchangeRelease, ::testing::Bool(), [](const auto& info) {
  return std::string(info.param ? "Export" : "Import");
});

TEST_P(ExchangeRelease, WaitsForEndOfStreamCapture) {
  make_one(ours_);
  ASSERT_TRUE(!imported_.array || SyncEvent(imported_.array).synchronize());
  CudaGraphs::begin(ours_);
  release();
  EXPECT_EQ(CudaGraphs::status(ours_), CaptureStatus::kActive);
  EXPECT_EQ(released().count(), 0) << "the consumer's work before the capture may still run";
  CudaGraphs::destroy(CudaGraphs::end(ours_));
  EXPECT_TRUE(released().wait_for(1));
}

// The event that could not be recorded during the capture belongs to this stream.
TEST_F(Exchange, ReleaseWaitsForFormerlyCapturedStream) {
  if (!CudaGraphs::are_there()) GTEST_SKIP() << "the driver has no graphs";
  void* idle = Api::make_stream();
  std::optional<CudaArray> array(described(make(), consumer_));
  Api::wait_for_word(consumer_, gate_);  // the consumer's work before the capture
  CudaGraphs::begin(consumer_);
  array.reset();
  CudaGraphs::destroy(CudaGraphs::end(consumer_));
  // These use the same path and overtake it: the reaper queries the first one first in each round.
  ReleasedArray other;
  for (int round = 1; round <= 3; ++round) {
    CudaGraphs::begin(idle);
    DeviceArray next = other.make(ARROW_DEVICE_CUDA, 0);
    ASSERT_TRUE(
        detail::defer_release(next, detail::cuda_stream(on(idle), 0), FLETCHING_CAPTURE_KEEP));
    CudaGraphs::destroy(CudaGraphs::end(idle));
    ASSERT_TRUE(other.parents.wait_for(round));
  }
  EXPECT_EQ(releases_.count(), 0);
  open_gate();
  EXPECT_TRUE(releases_.wait_for(1));
  Api::destroy_stream(idle);
}

// A garbage collector has a separate thread with a different per-thread default stream.
TEST_P(ExchangeRelease, OnOtherThreadWaitsForPerThreadStream) {
  make_one(per_thread_handle());
  ASSERT_TRUE(!imported_.array || SyncEvent(imported_.array).synchronize());
  Api::wait_for_word(per_thread_handle(), gate_);
  Api::read(read_, memory_, per_thread_handle());
  settle();
  std::thread([&] {
    Api::open_device(0);
    release();
    if (!GetParam()) Api::fill(memory_, 1, producer_);
    Api::synchronize(per_thread_handle());  // this thread's stream, which is idle
    Api::close_device(0);
  }).join();
  settle();
  // Releases that need not wait overtake it: the reaper queries all of them periodically.
  ReleasedArray other;
  for (int round = 1; round <= 50; ++round) {
    DeviceArray next = other.make(ARROW_DEVICE_CUDA, 0);
    ASSERT_TRUE(release_after(next, on(consumer_)));
    ASSERT_TRUE(other.parents.wait_for(round));
  }
  if (GetParam()) {
    EXPECT_EQ(released().count(), 0) << "the memory is still being read";
  } else {
    EXPECT_TRUE(is_blocked(producer_)) << "it does not wait for the consumer";
  }
  open_gate();
  Api::synchronize(per_thread_handle());
  Api::synchronize(producer_);
  EXPECT_EQ(*read_, kOld) << "the producer wrote while the consumer read";
  EXPECT_TRUE(released().wait_for(1));
}

TEST_P(ExchangeRelease, InForkedChild) {
  if (!control_.is_there()) GTEST_SKIP() << "a driver does not survive a fork";
  make_one(ours_);
  const pid_t child = fork();
  if (child == 0) {
    const std::int64_t before = control_.all_calls();
    release();
    if (released().count() != 1) _exit(1);
    _exit(control_.all_calls() == before ? 0 : 2);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0) << "1: not released; 2: the driver was called";
  release();
  EXPECT_TRUE(released().wait_for(1));
}

// The library's own stream, which a consumer may capture as well.
TEST_F(Exchange, DoesNotDestroyCapturedInternalStream) {
  if (!CudaGraphs::are_there()) GTEST_SKIP() << "the driver has no graphs";
  std::optional<CudaArray> array(described(make_with_event()));
  void* named = stream_named(array->array_interface());
  CudaGraphs::begin(named);
  array.reset();
  EXPECT_EQ(CudaGraphs::status(named), CaptureStatus::kActive);
  CudaGraphs::destroy(CudaGraphs::end(named));
  EXPECT_TRUE(releases_.wait_for(1));
}

// The mask describes nulls of the outermost elements only.
TEST_F(Exchange, MaskDoesNotHideInnerListNulls) {
  const Schema schema = make_schema({.format = "+w:1", .children = {{.format = "i"}}}).value();
  auto builder = build_array({.arrays = 1, .buffers = 3}, Counted(&releases_));
  ASSERT_TRUE(builder);
  ++made_;
  builder->set(builder->root(), {.length = 1}, {nullptr});
  builder->set(builder->add_children(builder->root(), 1)[0], {.length = 1, .null_count = 1},
               {data(), data()});
  DeviceArray array = builder->finish(ARROW_DEVICE_CUDA, 0).value();
  expect_mentions(to_cuda_array(*schema, array, {}, {.mask = true}).error(), "nulls");
  DeviceArray flat = make({.length = 1, .null_count = 1});
  const Schema number = make_schema({.format = "i"}).value();
  expect_mentions(to_cuda_array(*number.get(), flat, {}, {.mask = true}).error(),
                  "validity bitmap is NULL");
}

}  // namespace
}  // namespace fletching::testing
