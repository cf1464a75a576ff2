// SPDX-License-Identifier: Apache-2.0
//
// Events while streams are captured into CUDA and HIP graphs: the library invalidates no capture
// and never treats a rejected query as done.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

#include "../error_messages.hpp"
#include "../released_array.hpp"
#include "api.hpp"
#include "fletching/export_event.hpp"
#include "fletching/release_after.hpp"
#include "fletching/sync_event.hpp"
#include "gated.hpp"
#include "graphs.hpp"

namespace fletching {
namespace {

using testing::CaptureMode;
using testing::contains;
using testing::CudaApi;
using testing::HipApi;
using testing::kNew;
using testing::kOld;
using testing::message;
using testing::ReleasedArray;

template <class Api>
class Capture : public testing::Gated<Api> {
 protected:
  using Graphs = testing::Graphs<Api>;

  void SetUp() override {
    testing::Gated<Api>::SetUp();
    if (!this->is_open_) return;
    captured_ = Api::make_stream();
    if (!Graphs::are_there()) GTEST_SKIP() << Api::kRuntime.title << " has no graphs";
  }

  void TearDown() override {
    if (!this->is_open_) return;
    this->end_streams();
    Api::destroy_stream(captured_);
    this->close();
    if (this->control_.is_there()) {
      EXPECT_TRUE(this->control_.comes_to(this->before_)) << "something leaks";
    }
  }

  /// Ends the capture, which must still be valid.
  void end_capture() { Graphs::destroy(Graphs::end(captured_)); }

  void* captured_ = nullptr;
};

using Apis = ::testing::Types<CudaApi, HipApi>;
struct ApiNames {
  template <class Api>
  static std::string GetName(int) {
    return std::is_same_v<Api, CudaApi> ? "Cuda" : "Hip";
  }
};
TYPED_TEST_SUITE(Capture, Apis, ApiNames);

// The reaper queries events continuously on a separate thread.
TYPED_TEST(Capture, DoesNotReleaseGatedArrayDuringCapture) {
  using Api = TypeParam;
  this->write_behind_gate();
  ReleasedArray gated;
  ReleasedArray free;
  DeviceArray array = gated.make(Api::kType, 0);
  DeviceArray second = free.make(Api::kType, 0);
  ASSERT_TRUE(release_after(array, this->on(this->producer_)).ok());
  TestFixture::Graphs::begin(this->captured_);
  // A release that need not wait overtakes it; then the reaper has queried both.
  ASSERT_TRUE(release_after(second, this->on(this->consumer_)).ok());
  EXPECT_TRUE(free.parents.wait_for(1));
  EXPECT_EQ(gated.parents.count(), 0) << "the gate is shut";
  this->end_capture();
  this->open_gate();
  EXPECT_TRUE(gated.parents.wait_for(1));
}

// Captures of this thread and of another one.
TYPED_TEST(Capture, SurvivesReadyAndSynchronize) {
  using Api = TypeParam;
  ReleasedArray made;
  DeviceArray array = made.make(Api::kType, 0);
  ASSERT_TRUE(export_with_event(array, this->on(this->producer_)).ok());
  const auto ask = [&] {
    const SyncEvent event(array);
    const Status done = event.synchronize();
    EXPECT_TRUE(done.ok()) << message(done);
    const Result<bool> ready = event.ready();
    EXPECT_TRUE(ready.ok() && *ready) << message(ready);
    EXPECT_EQ(TestFixture::Graphs::exchange(CaptureMode::kGlobal), CaptureMode::kGlobal)
        << "the thread's mode is as before";
  };
  TestFixture::Graphs::begin(this->captured_);
  ask();
  std::thread(ask).join();
  // This also creates, records and destroys an event.
  ReleasedArray another;
  DeviceArray second = another.make(Api::kType, 0);
  const Status exported = export_with_event(second, this->on(this->producer_));
  EXPECT_TRUE(exported.ok()) << message(exported);
  second.release();
  this->end_capture();
  array.release();
}

TYPED_TEST(Capture, RejectsCapturingStream) {
  using Api = TypeParam;
  ReleasedArray made;
  DeviceArray exported = made.make(Api::kType, 0);
  ASSERT_TRUE(export_with_event(exported, this->on(this->producer_)).ok());
  ReleasedArray another;
  DeviceArray array = another.make(Api::kType, 0);
  TestFixture::Graphs::begin(this->captured_);
  ReleasedArray leaked;
  DeviceArray taken = leaked.make(Api::kType, 0);
  const std::int64_t leaks = pending_releases()->leaked;
  for (const Status& status : {SyncEvent(exported).wait_on(this->on(this->captured_)),
                               export_with_event(array, this->on(this->captured_)),
                               release_after(taken, this->on(this->captured_))}) {
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code(), EBUSY) << message(status);
    EXPECT_TRUE(contains(message(status), "captured into a graph")) << message(status);
  }
  EXPECT_EQ(array->sync_event, nullptr);
  EXPECT_TRUE(taken.is_released()) << "it is taken, and no error path releases early";
  EXPECT_EQ(leaked.parents.count(), 0);
  EXPECT_EQ(pending_releases()->leaked, leaks + 1);
  this->end_capture();
  EXPECT_TRUE(export_with_event(array, this->on(this->captured_)).ok()) << "it is over";
  array.release();
  exported.release();
}

TYPED_TEST(Capture, KeepsArrayThatGraphDoesNotRead) {
  ReleasedArray kept;
  DeviceArray array = kept.make(TypeParam::kType, 0);
  TestFixture::Graphs::begin(this->captured_);
  const Status deferred = release_after(array, this->on(this->captured_), OnCapture::kKeep);
  EXPECT_TRUE(deferred.ok()) << message(deferred);
  EXPECT_TRUE(array.is_released());
  EXPECT_EQ(kept.parents.count(), 0);
  this->end_capture();
  EXPECT_TRUE(kept.parents.wait_for(1));
}

// A capture that is already invalidated.
TYPED_TEST(Capture, RejectsInvalidatedCapture) {
  using Api = TypeParam;
  typename Api::Event event = Api::make_event();
  const SyncEvent awaited(Api::kType, 0, static_cast<void*>(&event));
  TestFixture::Graphs::begin(this->captured_);
  Api::record(event, this->captured_);
  EXPECT_FALSE(awaited.ready().ok()) << "an event of a capture: to ask invalidates the capture";
  const Status status = awaited.wait_on(this->on(this->captured_), OnCapture::kExternalEvent);
  EXPECT_EQ(status.ok() ? 0 : status.error().code(), EBUSY) << message(status);
  EXPECT_TRUE(contains(message(status), "invalid and not ended")) << message(status);
  void* graph = nullptr;
  EXPECT_EQ(TestFixture::Graphs::end(this->captured_, &graph), testing::kCaptureInvalidated);
  Api::destroy_event(event);
}

// Work on the legacy default stream would depend on the blocking stream.
TYPED_TEST(Capture, RejectsDefaultStreamDuringBlockingCapture) {
  using Api = TypeParam;
  typename Api::Event event = Api::make_event();
  const SyncEvent awaited(Api::kType, 0, static_cast<void*>(&event));
  ReleasedArray made;
  DeviceArray array = made.make(Api::kType, 0);
  void* blocking = Api::make_blocking_stream();
  TestFixture::Graphs::begin(blocking);
  for (const OnCapture on_capture : {OnCapture::kRefuse, OnCapture::kExternalEvent}) {
    for (const Status& status :
         {awaited.wait_on(Stream::legacy(TypeParam::kType), on_capture),
          export_with_event(array, Stream::legacy(TypeParam::kType), on_capture)}) {
      EXPECT_EQ(status.ok() ? 0 : status.error().code(), EBUSY) << message(status);
      EXPECT_TRUE(contains(message(status), "legacy default stream")) << message(status);
    }
  }
  EXPECT_TRUE(awaited.wait_on(Stream::per_thread(TypeParam::kType)).ok());
  TestFixture::Graphs::destroy(TestFixture::Graphs::end(blocking));
  EXPECT_TRUE(awaited.wait_on(Stream::legacy(TypeParam::kType)).ok());
  Api::destroy_stream(blocking);
  Api::destroy_event(event);
  array.release();
}

// A graph that waits for one event and records an array's event, launched twice. Operations that
// may block a driver are done before the gate is shut. The event and the array outlive the graph.
TYPED_TEST(Capture, RecordsExternalEventsPerLaunch) {
  using Api = TypeParam;
  typename Api::Event event = Api::make_event();
  const SyncEvent in(Api::kType, 0, static_cast<void*>(&event));
  ReleasedArray made;
  DeviceArray array = made.make(Api::kType, 0);
  ReleasedArray another;
  DeviceArray plain = another.make(Api::kType, 0);
  EXPECT_TRUE(in.wait_on(this->on(this->consumer_), OnCapture::kExternalEvent).ok());
  EXPECT_TRUE(export_with_event(plain, this->on(this->consumer_), OnCapture::kExternalEvent).ok())
      << "the stream is not captured: an event like any other";
  plain.release();

  TestFixture::Graphs::begin(this->captured_);
  const Status waiting = in.wait_on(this->on(this->captured_), OnCapture::kExternalEvent);
  ASSERT_TRUE(waiting.ok()) << message(waiting);
  Api::read(this->read_, this->memory_, this->captured_);
  const Status exported =
      export_with_event(array, this->on(this->captured_), OnCapture::kExternalEvent);
  ASSERT_TRUE(exported.ok()) << message(exported);
  void* graph = TestFixture::Graphs::instantiate(TestFixture::Graphs::end(this->captured_));
  const SyncEvent out(array);
  EXPECT_TRUE(*out.ready()) << "nothing has been recorded in it";
  TestFixture::Graphs::launch(graph, this->captured_);
  EXPECT_TRUE(out.synchronize().ok());
  EXPECT_EQ(*this->read_, kOld);

  this->write_behind_gate();
  Api::record(event, this->producer_);
  TestFixture::Graphs::launch(graph, this->captured_);
  EXPECT_FALSE(*out.ready()) << "the gate is shut";
  EXPECT_TRUE(out.wait_on(this->on(this->consumer_)).ok());
  EXPECT_TRUE(this->is_blocked(this->consumer_));
  this->open_gate();
  EXPECT_TRUE(out.synchronize().ok());
  EXPECT_EQ(*this->read_, kNew);
  Api::synchronize(this->captured_);
  TestFixture::Graphs::destroy_executable(graph);
  Api::synchronize(this->consumer_);
  Api::destroy_event(event);
  array.release();
}

// A callback that frees device memory, which the driver documents as unsafe.
TYPED_TEST(Capture, ReleaseCallbackFreesMemory) {
  using Api = TypeParam;
  struct Freeing {
    std::uintptr_t memory;
    testing::Releases released;
  } freeing{Api::allocate(), {}};
  ArrowDeviceArray raw{};
  raw.device_type = Api::kType;
  raw.array.private_data = &freeing;
  raw.array.release = [](ArrowArray* self) {
    auto* of_array = static_cast<Freeing*>(self->private_data);
    self->release = nullptr;
    Api::open_device(0);
    Api::free(of_array->memory);
    Api::close_device(0);
    of_array->released.add();
  };
  DeviceArray array(&raw);
  this->write_behind_gate();
  ASSERT_TRUE(release_after(array, this->on(this->producer_)).ok());
  TestFixture::Graphs::begin(this->captured_);
  this->open_gate();
  EXPECT_TRUE(freeing.released.wait_for(1));
  this->end_capture();
}

/// Uses a library that lacks the optional functions of the table: the stand-ins in standin-old.
template <class Api>
void use_an_old_library() {
  Api::devices();
  Api::open_device(0);
  void* stream = Api::make_stream();
  ReleasedArray made;
  DeviceArray array = made.make(Api::kType, 0);
  EXPECT_TRUE(export_with_event(array, Stream(Api::kType, stream)).ok());
  const SyncEvent event(array);
  EXPECT_TRUE(event.wait_on(Stream(Api::kType, stream)).ok());
  EXPECT_TRUE(event.synchronize().ok());
  EXPECT_TRUE(*event.ready());
  const Status deferred = release_after(array, Stream(Api::kType, stream));
  EXPECT_TRUE(deferred.ok()) << message(deferred);
  EXPECT_TRUE(made.parents.wait_for(1));
  Api::destroy_stream(stream);
  Api::close_device(0);
}

TEST(OldLibraries, WorkWithoutOptionalFunctions) {
  const auto cuda = CudaApi::load();
  const auto hip = HipApi::load();
  if (!cuda || !hip || (*cuda)->cu_event_record_with_flags != nullptr ||
      (*hip)->hip_event_record_with_flags != nullptr) {
    GTEST_SKIP() << "needs the old stand-ins";
  }
  use_an_old_library<CudaApi>();
  use_an_old_library<HipApi>();
}

TEST(OldLibraries, HaveNoExternalEvents) {
  const auto cuda = CudaApi::load();
  if (!cuda || (*cuda)->cu_event_record_with_flags != nullptr) {
    GTEST_SKIP() << "needs the old stand-in for CUDA";
  }
  using Graphs = testing::Graphs<CudaApi>;
  CudaApi::devices();
  CudaApi::open_device(0);
  void* stream = CudaApi::make_stream();
  ReleasedArray made;
  DeviceArray array = made.make(CudaApi::kType, 0);
  Graphs::begin(stream);
  const Status status =
      export_with_event(array, Stream(CudaApi::kType, stream), OnCapture::kExternalEvent);
  EXPECT_EQ(status.ok() ? 0 : status.error().code(), ENOTSUP) << message(status);
  EXPECT_TRUE(contains(message(status), "CUDA 11.1")) << message(status);
  Graphs::destroy(Graphs::end(stream));
  array.release();
  CudaApi::destroy_stream(stream);
  CudaApi::close_device(0);
}

// Without cuCtxGetId a primary context counts as destroyed until it is active again.
TEST(OldLibraries, DoNotDestroyEventOfDestroyedContext) {
  const auto cuda = CudaApi::load();
  if (!cuda || (*cuda)->cu_ctx_get_id != nullptr) {
    GTEST_SKIP() << "needs the old stand-in for CUDA";
  }
  const testing::Control control(cuda::kRuntime);
  CudaApi::devices();
  CudaApi::open_device(1);
  ReleasedArray made;
  DeviceArray array = made.make(CudaApi::kType, 1);
  ASSERT_TRUE(export_with_event(array, Stream(CudaApi::kType, CudaApi::make_stream())).ok());
  CudaApi::close_device(1);
  const std::int64_t stale = control.stale_handles();
  array.release();
  EXPECT_EQ(control.stale_handles(), stale);
}

}  // namespace
}  // namespace fletching
