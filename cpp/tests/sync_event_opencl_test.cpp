// SPDX-License-Identifier: Apache-2.0
//
// Rejected arguments and errors of OpenCL events, and DLPack behind a gate (a user event), on any
// installed driver. The conformance suite runs the operations behind the gate.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <string>
#include <thread>

#include "error_messages.hpp"
#include "fletching/array_builder.hpp"
#include "fletching/dlpack.hpp"
#include "fletching/schema_builder.hpp"
#include "fletching/sync_event.hpp"
#include "runtimes/opencl.hpp"

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
    gate_ = cl_->cl_create_user_event(context_, nullptr);
    memory_ =
        cl_->cl_create_buffer(context_, opencl::kClMemReadWrite, sizeof kOld, nullptr, nullptr);
    write(kOld, nullptr);
    ASSERT_EQ(cl_->cl_finish(producer_), 0);
  }

  void TearDown() override {
    if (context_ == nullptr) return;
    open_gate();
    cl_->cl_finish(producer_);
    cl_->cl_release_command_queue(producer_);
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

  // Writes on the producer's queue, after a wait for the event in the list.
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
  cl_event gate_ = nullptr;
  cl_event event_ = nullptr;
  cl_mem memory_ = nullptr;
  std::int32_t written_ = 0;
  bool is_open_ = false;
};

TEST_F(OpenCl, RejectsQueueOfOtherContext) {
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

TEST_F(OpenCl, NegativeStateReturnsError) {
  const SyncEvent event(ARROW_DEVICE_OPENCL, 0, static_cast<void*>(&gate_));
  EXPECT_FALSE(*event.ready());
  open_gate(-5);
  EXPECT_EQ(event.ready().error().code(), EIO);
  EXPECT_NE(message(event.ready()).find("-5"), std::string::npos) << message(event.ready());
  EXPECT_FALSE(event.synchronize().ok());
}

TEST_F(OpenCl, DlpackSynchronizesHost) {
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
  // If the wait is missing, the other thread returns before the gate is open.
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

  // The export fails if the event cannot be waited on, and the caller still owns the array.
  cl_event lost = nullptr;
  array = make();
  array->sync_event = static_cast<void*>(&lost);
  EXPECT_EQ(to_dlpack(*schema, array, none).error().code(), EINVAL);
  EXPECT_FALSE(array.is_released());
}

}  // namespace
}  // namespace fletching
