// SPDX-License-Identifier: Apache-2.0
//
// CUDA and HIP events behind a gate: a word in pinned memory that a stream waits on. Runs on the
// stand-in runtimes, or on a device if the vendor's library is loaded instead.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <thread>
#include <type_traits>

#include "../alloc_failure.hpp"
#include "../error_messages.hpp"
#include "../released_array.hpp"
#include "api.hpp"
#include "control.hpp"
#include "fletching/export_event.hpp"
#include "fletching/release_after.hpp"
#include "fletching/sync_event.hpp"
#include "gated.hpp"

namespace fletching {
namespace {

using testing::contains;
using testing::Control;
using testing::CudaApi;
using testing::HipApi;
using testing::kNew;
using testing::kOld;
using testing::legacy_handle;
using testing::message;
using testing::per_thread_handle;
using testing::ReleasedArray;

/// Tests with an event of the producer.
template <class Api>
class Events : public testing::Gated<Api> {
 protected:
  void SetUp() override {
    testing::Gated<Api>::SetUp();
    if (this->is_open_) event_ = Api::make_event();
  }

  void TearDown() override {
    if (!this->is_open_) return;
    this->end_streams();
    Api::destroy_event(event_);
    this->close();
    if (this->control_.is_there()) {
      EXPECT_TRUE(this->control_.comes_to(this->before_)) << "something leaks";
    }
  }

  void record() { Api::record(event_, this->producer_); }
  SyncEvent event() { return {Api::kType, 0, static_cast<void*>(&event_)}; }

  typename Api::Event event_{};
};

using Apis = ::testing::Types<CudaApi, HipApi>;
struct ApiNames {
  template <class Api>
  static std::string GetName(int) {
    return std::is_same_v<Api, CudaApi> ? "Cuda" : "Hip";
  }
};
TYPED_TEST_SUITE(Events, Apis, ApiNames);

TYPED_TEST(Events, WaitForGate) {
  using Api = TypeParam;
  this->write_behind_gate();
  this->record();
  this->settle();
  Result<bool> ready = this->event().ready();
  ASSERT_TRUE(ready.ok()) << message(ready);
  EXPECT_FALSE(*ready);
  EXPECT_EQ(this->read_on(this->consumer_), kOld)
      << "the negative control: without a wait the old data is read";

  const Status waiting = this->event().wait_on(this->on(this->consumer_));
  ASSERT_TRUE(waiting.ok()) << message(waiting);  // it has returned while the gate is shut
  Api::read(this->read_, this->memory_, this->consumer_);
  EXPECT_TRUE(this->is_blocked(this->consumer_));

  Status done;
  EXPECT_FALSE(this->returns_before_the_gate_opens(Api::kSynchronize,
                                                   [&] { done = this->event().synchronize(); }));
  EXPECT_TRUE(done.ok()) << message(done);
  EXPECT_TRUE(*this->event().ready());
  Api::synchronize(this->consumer_);
  EXPECT_EQ(*this->read_, kNew);
}

TYPED_TEST(Events, WorkOnThreadWithoutContext) {
  using Api = TypeParam;
  this->write_behind_gate();
  ReleasedArray made;
  DeviceArray array = made.make(Api::kType, 0);
  std::thread([&] {
    const auto none = Api::current();
    const Status exported = export_with_event(array, this->on(this->producer_));
    ASSERT_TRUE(exported.ok()) << message(exported);
    const SyncEvent event(array);
    this->settle();
    Result<bool> ready = event.ready();
    ASSERT_TRUE(ready.ok()) << message(ready);
    EXPECT_FALSE(*ready);
    EXPECT_TRUE(event.wait_on(this->on(this->consumer_)).ok());
    EXPECT_TRUE(event.wait_on(this->on(nullptr)).ok()) << message(event.wait_on(this->on(nullptr)));
    EXPECT_EQ(Api::current(), none);
  }).join();
  EXPECT_TRUE(this->is_blocked(this->consumer_));
  EXPECT_TRUE(this->is_blocked(nullptr));
  this->open_gate();
  std::thread([&] {
    const auto none = Api::current();
    EXPECT_TRUE(SyncEvent(array).synchronize().ok());
    array.release();
    EXPECT_EQ(made.parents.count(), 1);
    EXPECT_EQ(Api::current(), none);
  }).join();
}

TYPED_TEST(Events, AcceptDefaultStreams) {
  this->record();
  for (void* stream : {static_cast<void*>(nullptr), legacy_handle(), per_thread_handle()}) {
    const Status status = this->event().wait_on(this->on(stream));
    EXPECT_TRUE(status.ok()) << message(status);
    TypeParam::synchronize(stream == legacy_handle() ? nullptr : stream);
  }
}

// A handle passed instead of its address. The memory behind a vendor's handle is private: only the
// stand-in reliably reports that it is not an event.
TYPED_TEST(Events, DetectHandleInPlaceOfAddress) {
  if (!this->control_.is_there()) GTEST_SKIP() << "needs the stand-in";
  this->record();
  const SyncEvent event(TypeParam::kType, 0, static_cast<void*>(this->event_));
  for (const Status& status : {event.synchronize(), event.wait_on(this->on(this->consumer_))}) {
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code(), EINVAL) << message(status);
    EXPECT_TRUE(contains(message(status), "address")) << message(status);
  }
}

TYPED_TEST(Events, LastChildReleaseDestroysExportedEvent) {
  using Api = TypeParam;
  this->write_behind_gate();
  ReleasedArray made;
  DeviceArray array = made.make(Api::kType, 0);
  ASSERT_TRUE(export_with_event(array, this->on(this->producer_)).ok());
  const SyncEvent event(array);
  Array child(array->array.children[0]);
  array.release();
  EXPECT_EQ(made.parents.count(), 1);
  this->settle();
  EXPECT_FALSE(*event.ready()) << "the event is there, and the gate is shut";
  this->open_gate();
  EXPECT_TRUE(event.synchronize().ok());
  std::thread([&] { child.release(); }).join();
  EXPECT_EQ(made.children.count(), 2);
  if (this->control_.is_there()) {
    EXPECT_EQ(this->control_.alive().events, this->before_.events + 1) << "only that of the test";
  }
}

// A taken child already holds its reference to the event, so taking it neither allocates nor defers
// again. A child moved out before the export holds none.
TYPED_TEST(Events, ExportedEventMovesWithTakenChild) {
  using Api = TypeParam;
  this->write_behind_gate();
  ReleasedArray made;
  DeviceArray array = made.make(Api::kType, 0);
  Array(array->array.children[1]).release();
  ASSERT_TRUE(export_with_event(array, this->on(this->producer_)).ok());
  EXPECT_EQ(array->array.children[1]->release, nullptr);
  const std::int64_t before = testing::allocations();
  DeviceArray child = array.take_child(0).value();
  EXPECT_EQ(testing::allocations(), before);
  array.release();
  EXPECT_EQ(made.parents.count(), 1);
  const SyncEvent event(child);
  this->settle();
  EXPECT_FALSE(*event.ready()) << "the event is there, and the gate is shut";
  this->open_gate();
  EXPECT_TRUE(event.synchronize().ok());
  child.release();
  EXPECT_EQ(made.children.count(), 2);
  if (this->control_.is_there()) {
    EXPECT_EQ(this->control_.alive().events, this->before_.events + 1) << "only that of the test";
  }
}

TYPED_TEST(Events, ReleaseAfterWaitsForStream) {
  using Api = TypeParam;
  this->write_behind_gate();
  ReleasedArray gated;
  ReleasedArray free;
  DeviceArray array = gated.make(Api::kType, 0);
  const Status deferred = release_after(array, this->on(this->producer_));
  ASSERT_TRUE(deferred.ok()) << message(deferred);
  EXPECT_TRUE(array.is_released());
  this->settle();
  // A release that need not wait overtakes it; then the reaper has queried both.
  DeviceArray second = free.make(Api::kType, 0);
  ASSERT_TRUE(release_after(second, this->on(this->consumer_)).ok());
  EXPECT_TRUE(free.parents.wait_for(1));
  EXPECT_EQ(gated.parents.count(), 0) << "the gate is shut";
  this->open_gate();
  EXPECT_TRUE(gated.parents.wait_for(1));
  EXPECT_NE(gated.parents.last_thread(), std::this_thread::get_id());
}

// Process exit neither waits for pending releases nor runs them.
TYPED_TEST(Events, ProcessExitSkipsPendingRelease) {
  using Api = TypeParam;
  if (!this->control_.is_there()) GTEST_SKIP() << "a driver does not survive a fork";
  const auto exit_with_a_pending_release = [] {
    Api::devices();
    Api::open_device(0);
    void* stream = Api::make_stream();
    void* gate = Api::allocate_word();
    *static_cast<std::int32_t*>(gate) = 0;
    Api::wait_for_word(stream, gate);
    ArrowDeviceArray raw{};
    raw.device_type = Api::kType;
    raw.array.release = [](ArrowArray*) { std::_Exit(7); };
    DeviceArray array(&raw);
    const bool deferred = release_after(array, {Api::kType, stream}).ok();
    std::exit(deferred && array.is_released() ? 0 : 8);
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(exit_with_a_pending_release(), ::testing::ExitedWithCode(0), "");
}

// The vendor's functions that describe an error may fail as well; the error number remains.
TEST(CudaErrors, ContainNumberWithoutDescription) {
  const Control control(cuda::kRuntime);
  if (!control.is_there()) GTEST_SKIP() << "needs the stand-in for CUDA";
  ASSERT_TRUE(control.set_fault("cuCtxGetCurrent:1:304,cuGetErrorName:1:1,cuGetErrorString:1:1"));
  void* handle = &handle;
  const Status status = SyncEvent(ARROW_DEVICE_CUDA, 0, static_cast<void*>(&handle)).synchronize();
  control.reset_faults();
  EXPECT_TRUE(contains(message(status), "cuCtxGetCurrent failed with 304")) << message(status);
}

// No context is current and the device has no active one: the library creates none.
TEST(CudaContexts, AreNotCreated) {
  const Control control(cuda::kRuntime);
  if (!control.is_there())
    GTEST_SKIP() << "needs the stand-in for CUDA: nothing else uses device 1";
  if (testing::current_device() != testing::CurrentDevice::kOwn) {
    GTEST_SKIP() << testing::kChoosesItself;
  }
  ASSERT_GE(CudaApi::devices(), 2);
  CudaApi::open_device(0);
  cuda::CUevent event = CudaApi::make_event();
  const FletchingStandinCounts before = control.alive();
  std::thread([&] {
    for (const std::int64_t device : {1, -1, 1000}) {
      const SyncEvent of_device(ARROW_DEVICE_CUDA, device, static_cast<void*>(&event));
      EXPECT_FALSE(of_device.synchronize().ok());
      EXPECT_FALSE(of_device.wait_on({ARROW_DEVICE_CUDA, nullptr}).ok());
      EXPECT_TRUE(of_device.ready().ok()) << "an event is asked from anywhere";
      EXPECT_EQ(CudaApi::current(), 0);
    }
    const SyncEvent inactive(ARROW_DEVICE_CUDA, 1, static_cast<void*>(&event));
    EXPECT_TRUE(contains(message(inactive.synchronize()), "not active"))
        << message(inactive.synchronize());
  }).join();
  EXPECT_TRUE(testing::same(control.alive(), before));
  std::uint32_t flags = 0;
  std::int32_t active = 1;
  EXPECT_EQ(CudaApi::api().cu_device_primary_ctx_get_state(1, &flags, &active), 0);
  EXPECT_EQ(active, 0);
  CudaApi::destroy_event(event);
  CudaApi::close_device(0);
}

}  // namespace
}  // namespace fletching
