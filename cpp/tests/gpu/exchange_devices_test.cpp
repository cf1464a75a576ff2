// SPDX-License-Identifier: Apache-2.0
//
// Exchanges of memory on device 0 while device 1 is current or the thread has no context: a default
// stream belongs to the memory's device.
#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "exchange.hpp"

namespace fletching::testing {
namespace {

class TwoDevices : public Exchange {
 protected:
  void SetUp() override {
    if (current_device() != CurrentDevice::kOwn) GTEST_SKIP() << kChoosesItself;
    Exchange::SetUp();
    if (is_open_ && devices_ < 2) GTEST_SKIP() << "needs two devices";
  }

  /// Runs the body while device 1 is current.
  template <class Body>
  void elsewhere(Body body) {
    const auto here = Api::current();
    Api::open_device(1);
    const auto there = Api::current();
    body();
    EXPECT_EQ(Api::current(), there);
    Api::close_device(1);
    EXPECT_EQ(Api::current(), here);
  }
};

TEST_F(TwoDevices, DlpackOrdersDefaultStreamOfArrayDevice) {
  const Schema schema = make_schema({.format = "i"}).value();
  write_behind_gate();
  DeviceArray array = make_with_event();
  elsewhere([&] {
    const ConsumerStream stream = read_dlpack_stream(ARROW_DEVICE_CUDA, 1).value();
    const Result<DlpackTensor> tensor = to_dlpack(*schema, array, stream);
    ASSERT_TRUE(tensor) << message(tensor);
    EXPECT_FALSE(is_blocked(nullptr)) << "of device 1";
  });
  EXPECT_TRUE(is_blocked(nullptr)) << "of device 0";
}

TEST_F(TwoDevices, ImportWithDefaultStreamIsPending) {
  for (void* stream : {legacy_handle(), per_thread_handle()}) {
    set_gate(0);
    Api::wait_for_word(stream, gate_);
    ImportedTensor tensor;
    elsewhere([&] { tensor = imported(says(handle(stream))); });
    EXPECT_EQ(tensor.array->device_id, 0);
    settle();
    EXPECT_FALSE(SyncEvent(tensor.array).ready().value());
    open_gate();
    EXPECT_TRUE(SyncEvent(tensor.array).synchronize());
  }
}

TEST_F(TwoDevices, ProducerWaitsForConsumerDefaultStream) {
  ImportedTensor tensor =
      imported(says(handle(producer_)), {.consumer_stream = Stream::legacy(ARROW_DEVICE_CUDA)});
  Api::wait_for_word(legacy_handle(), gate_);  // the consumer's work
  elsewhere([&] { tensor = ImportedTensor(); });
  EXPECT_TRUE(is_blocked(producer_));
}

TEST_F(TwoDevices, ReleasesExportAfterDefaultStream) {
  for (void* stream : {legacy_handle(), per_thread_handle()}) {
    set_gate(0);
    std::optional<CudaArray> array(described(make(), stream));
    const int before = releases_.count();
    Api::wait_for_word(stream, gate_);  // the consumer's work
    elsewhere([&] { array.reset(); });
    ReleasedArray other;
    DeviceArray next = other.make(ARROW_DEVICE_CUDA, 0);
    ASSERT_TRUE(release_after(next, on(consumer_)));
    ASSERT_TRUE(other.parents.wait_for(1)) << "one that need not wait overtakes it";
    EXPECT_EQ(releases_.count(), before);
    open_gate();
    EXPECT_TRUE(releases_.wait_for(before + 1));
  }
}

TEST_F(TwoDevices, InternalStreamUsesArrayDevice) {
  const auto here = Api::current();
  DeviceArray array = make_with_event();
  elsewhere([&] {
    const CudaArray exported = described(std::move(array));
    cuda::CUcontext context = nullptr;
    ASSERT_EQ(Api::api().cu_stream_get_ctx(
                  static_cast<cuda::CUstream>(stream_named(exported.array_interface())), &context),
              0);
    EXPECT_EQ(reinterpret_cast<std::intptr_t>(context), here);
  });
}

TEST_F(TwoDevices, FindsMemoryFromAnyContext) {
  elsewhere([&] { EXPECT_EQ(imported(says()).array->device_id, 0); });
  std::thread([&] { EXPECT_EQ(imported(says(handle(producer_))).array->device_id, 0); }).join();
}

}  // namespace
}  // namespace fletching::testing
