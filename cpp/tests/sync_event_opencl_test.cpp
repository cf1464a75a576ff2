// SPDX-License-Identifier: Apache-2.0
//
// Events of OpenCL on whatever driver is installed, behind a gate: a user event.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "fletching/array_builder.hpp"
#include "fletching/dlpack_stream.hpp"
#include "fletching/export_event.hpp"
#include "fletching/release_after.hpp"
#include "fletching/schema_builder.hpp"
#include "fletching/sync_event.hpp"
#include "released_array.hpp"
#include "runtimes/opencl.hpp"
#include "texts.hpp"

namespace fletching {
namespace {

using opencl::cl_command_queue;
using opencl::cl_context;
using opencl::cl_device_id;
using opencl::cl_event;
using opencl::cl_int;
using opencl::cl_mem;
using opencl::cl_platform_id;
using testing::message;
using testing::ReleasedArray;

constexpr std::int32_t kOld = 1;
constexpr std::int32_t kNew = 2;

class OpenCl : public ::testing::Test {
 protected:
  void SetUp() override {
    auto loaded = opencl::functions();
    if (!loaded) GTEST_SKIP() << loaded.error().message();
    cl_ = *loaded;
    cl_platform_id platform = nullptr;
    if (cl_->cl_get_platform_ids(1, &platform, nullptr) != 0 ||
        cl_->cl_get_device_ids(platform, opencl::kClDeviceTypeAll, 1, &device_, nullptr) != 0) {
      GTEST_SKIP() << "no OpenCL device is installed (libOpenCL.so.1 is there)";
    }
    context_ = make_context();
    producer_ = make_queue(context_);
    consumer_ = make_queue(context_);
    other_ = make_queue(context_);
    gate_ = cl_->cl_create_user_event(context_, nullptr);
    memory_ =
        cl_->cl_create_buffer(context_, opencl::kClMemReadWrite, sizeof kOld, nullptr, nullptr);
    write(kOld, nullptr);
    ASSERT_EQ(cl_->cl_finish(producer_), 0);
  }

  void TearDown() override {
    if (context_ == nullptr) return;
    open_gate();
    for (cl_command_queue queue : {producer_, consumer_, other_}) {
      cl_->cl_finish(queue);
      cl_->cl_release_command_queue(queue);
    }
    if (event_ != nullptr) cl_->cl_release_event(event_);
    cl_->cl_release_event(gate_);
    cl_->cl_release_mem_object(memory_);
    cl_->cl_release_context(context_);
  }

  cl_context make_context() {
    return cl_->cl_create_context(nullptr, 1, &device_, nullptr, nullptr, nullptr);
  }
  cl_command_queue make_queue(cl_context context) {
    return cl_->cl_create_command_queue(context, device_, 0, nullptr);
  }

  // On the producer's queue; a wait for the event in the list is enqueued first.
  void write(std::int32_t value, const cl_event* wait_for) {
    written_ = value;
    ASSERT_EQ(cl_->cl_enqueue_write_buffer(producer_, memory_, opencl::kClFalse, 0, sizeof value,
                                           &written_, wait_for != nullptr ? 1 : 0, wait_for,
                                           wait_for != nullptr ? &event_ : nullptr),
              0);
    ASSERT_EQ(cl_->cl_flush(producer_), 0);
  }

  void export_behind_gate() { write(kNew, &gate_); }

  void open_gate(cl_int status = opencl::kClComplete) {
    if (!is_open_) cl_->cl_set_user_event_status(gate_, status);
    is_open_ = true;
  }

  SyncEvent event() { return {ARROW_DEVICE_OPENCL, 0, static_cast<void*>(&event_)}; }

  const opencl::Functions* cl_ = nullptr;
  cl_device_id device_ = nullptr;
  cl_context context_ = nullptr;
  cl_command_queue producer_ = nullptr;
  cl_command_queue consumer_ = nullptr;
  cl_command_queue other_ = nullptr;
  cl_event gate_ = nullptr;
  cl_event event_ = nullptr;
  cl_mem memory_ = nullptr;
  std::int32_t written_ = 0;
  bool is_open_ = false;
};

TEST_F(OpenCl, WaitsBehindTheGate) {
  export_behind_gate();
  Result<bool> ready = event().ready();
  ASSERT_TRUE(ready.ok()) << message(ready);
  EXPECT_FALSE(*ready);

  std::int32_t unwaited = 0;
  ASSERT_EQ(cl_->cl_enqueue_read_buffer(other_, memory_, opencl::kClTrue, 0, sizeof unwaited,
                                        &unwaited, 0, nullptr, nullptr),
            0);
  EXPECT_EQ(unwaited, kOld) << "the negative control: without a wait the old data is read";

  const Status waiting = event().wait_on({ARROW_DEVICE_OPENCL, consumer_});
  ASSERT_TRUE(waiting.ok()) << message(waiting);  // it has returned, and the gate is shut
  std::int32_t waited = 0;
  cl_event read = nullptr;
  ASSERT_EQ(cl_->cl_enqueue_read_buffer(consumer_, memory_, opencl::kClFalse, 0, sizeof waited,
                                        &waited, 0, nullptr, &read),
            0);
  ASSERT_EQ(cl_->cl_flush(consumer_), 0);
  EXPECT_FALSE(*SyncEvent(ARROW_DEVICE_OPENCL, 0, static_cast<void*>(&read)).ready());

  open_gate();
  const Status done = event().synchronize();
  EXPECT_TRUE(done.ok()) << message(done);
  EXPECT_TRUE(*event().ready());
  EXPECT_TRUE(SyncEvent(ARROW_DEVICE_OPENCL, 0, static_cast<void*>(&read)).synchronize().ok());
  EXPECT_EQ(waited, kNew);
  cl_->cl_release_event(read);
}

TEST_F(OpenCl, RefusesAQueueOfAnotherContext) {
  export_behind_gate();
  cl_context context = make_context();
  cl_command_queue queue = make_queue(context);
  const Status status = event().wait_on({ARROW_DEVICE_OPENCL, queue});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), EINVAL);
  EXPECT_NE(message(status).find("cl_context of the queue differs"), std::string::npos)
      << message(status);
  EXPECT_EQ(event().wait_on({ARROW_DEVICE_OPENCL, nullptr}).error().code(), EINVAL)
      << "there is no default queue";
  cl_->cl_release_command_queue(queue);
  cl_->cl_release_context(context);
}

TEST_F(OpenCl, ANegativeStateIsAnError) {
  const SyncEvent event(ARROW_DEVICE_OPENCL, 0, static_cast<void*>(&gate_));
  EXPECT_FALSE(*event.ready());
  open_gate(-5);
  EXPECT_EQ(event.ready().error().code(), EIO);
  EXPECT_NE(message(event.ready()).find("-5"), std::string::npos) << message(event.ready());
  EXPECT_FALSE(event.synchronize().ok());
}

TEST_F(OpenCl, ExportedEventLivesUntilTheLastChildIsReleased) {
  ASSERT_EQ(cl_->cl_enqueue_barrier_with_wait_list(producer_, 1, &gate_, nullptr), 0);
  ReleasedArray made;
  DeviceArray array = made.make(ARROW_DEVICE_OPENCL, 0);
  const Status exported = export_with_event(array, {ARROW_DEVICE_OPENCL, producer_});
  ASSERT_TRUE(exported.ok()) << message(exported);
  const SyncEvent before(array);
  EXPECT_FALSE(*before.ready());

  DeviceArray moved = std::move(array);
  const SyncEvent after(moved);
  EXPECT_EQ(after.get(), before.get()) << "its address stays";
  Array child(moved->array.children[1]);
  open_gate();
  EXPECT_TRUE(after.synchronize().ok());

  cl_event handle = *static_cast<cl_event*>(after.get());
  ASSERT_EQ(cl_->cl_retain_event(handle), 0);  // to see that it is not released twice
  moved.release();
  EXPECT_EQ(made.parents.count(), 1);
  EXPECT_EQ(made.children.count(), 1) << "the other one was moved out";
  EXPECT_TRUE(*after.ready()) << "the event is there until the child is released";
  child.release();
  EXPECT_EQ(made.children.count(), 2);
  EXPECT_EQ(cl_->cl_release_event(handle), 0);
}

TEST_F(OpenCl, ReleasesAfterTheQueue) {
  ASSERT_EQ(cl_->cl_enqueue_barrier_with_wait_list(consumer_, 1, &gate_, nullptr), 0);
  ReleasedArray gated;
  ReleasedArray free;
  DeviceArray array = gated.make(ARROW_DEVICE_OPENCL, 0);
  ASSERT_TRUE(release_after(array, {ARROW_DEVICE_OPENCL, consumer_}).ok());
  EXPECT_TRUE(array.is_released());
  // One that need not wait overtakes the other: the reaper has looked at both by then.
  DeviceArray second = free.make(ARROW_DEVICE_OPENCL, 0);
  ASSERT_TRUE(release_after(second, {ARROW_DEVICE_OPENCL, other_}).ok());
  EXPECT_TRUE(free.parents.wait_for(1));
  EXPECT_EQ(gated.parents.count(), 0) << "the gate is shut";
  open_gate();
  EXPECT_TRUE(gated.parents.wait_for(1));
  EXPECT_NE(gated.parents.last_thread(), std::this_thread::get_id());
  EXPECT_EQ(gated.parents.count(), 1);
  EXPECT_EQ(gated.children.count(), 2);
}

TEST_F(OpenCl, DlpackLetsTheHostWait) {
  const Schema schema = make_schema({.format = "i"}).value();
  const ConsumerStream none = read_dlpack_stream(ARROW_DEVICE_OPENCL, {}).value();
  const auto make = [&] {
    auto builder = build_array({.buffers = 2}, 0).value();
    builder.set(builder.root(), {.length = 1}, {nullptr, memory_});
    DeviceArray array = builder.finish(ARROW_DEVICE_OPENCL, 0).value();
    array->sync_event = static_cast<void*>(&event_);
    return array;
  };
  export_behind_gate();
  DeviceArray array = make();
  // Without a wait the other thread returns before the gate is open.
  std::atomic<bool> has_begun{false};
  std::atomic<bool> is_done{false};
  std::thread exporter([&] {
    has_begun = true;
    const Result<DlpackTensor> tensor = to_dlpack(*schema, array, none);
    is_done = true;
    EXPECT_TRUE(tensor) << message(tensor);
  });
  while (!has_begun) std::this_thread::yield();
  for (int i = 0; i < 1000; ++i) std::this_thread::yield();
  EXPECT_FALSE(is_done) << "nothing was waited for";
  open_gate();
  exporter.join();
  EXPECT_TRUE(event().ready().value());

  // What cannot be waited for is an error, and the array is still the caller's.
  cl_event lost = nullptr;
  array = make();
  array->sync_event = static_cast<void*>(&lost);
  EXPECT_EQ(to_dlpack(*schema, array, none).error().code(), EINVAL);
  EXPECT_FALSE(array.is_released());
}

}  // namespace
}  // namespace fletching
