// SPDX-License-Identifier: Apache-2.0
//
// Deferred releases under adverse conditions: slow callbacks, queries that fail, a destroyed
// context, a fork.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <iterator>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "../error_messages.hpp"
#include "../released_array.hpp"
#include "api.hpp"
#include "fletching/export_event.hpp"
#include "fletching/release_after.hpp"
#include "fletching/sync_event.hpp"
#include "gated.hpp"

namespace fletching {
namespace {

using testing::contains;
using testing::CudaApi;
using testing::HipApi;
using testing::message;
using testing::ReleasedArray;
using testing::Releases;

template <class Api>
class Deferred : public testing::Gated<Api> {
 protected:
  void TearDown() override {
    if (!this->is_open_) return;
    this->end_streams();
    this->close();
    if (this->control_.is_there()) {
      EXPECT_TRUE(this->control_.comes_to(this->before_)) << "something leaks";
    }
  }
};

using Apis = ::testing::Types<CudaApi, HipApi>;
struct ApiNames {
  template <class Api>
  static std::string GetName(int) {
    return std::is_same_v<Api, CudaApi> ? "Cuda" : "Hip";
  }
};
TYPED_TEST_SUITE(Deferred, Apis, ApiNames);

/// An array whose release callback blocks until the latch is open.
class SlowArray {
 public:
  explicit SlowArray(std::latch& open) : open_(open) {}

  DeviceArray make(ArrowDeviceType type) {
    ArrowDeviceArray raw{};
    raw.device_type = type;
    raw.array.private_data = this;
    raw.array.release = [](ArrowArray* self) {
      auto* array = static_cast<SlowArray*>(self->private_data);
      self->release = nullptr;
      array->begun.add();
      array->open_.wait();
      array->done.add();
    };
    return DeviceArray(&raw);
  }

  Releases begun;
  Releases done;

 private:
  std::latch& open_;
};

TYPED_TEST(Deferred, SlowCallbacksDoNotDelayOtherReleases) {
  using Api = TypeParam;
  std::latch open(1);
  std::vector<std::unique_ptr<SlowArray>> slow(8);
  for (auto& each : slow) {
    each = std::make_unique<SlowArray>(open);
    DeviceArray array = each->make(Api::kType);
    ASSERT_TRUE(release_after(array, this->on(this->consumer_)).ok());
    EXPECT_TRUE(each->begun.wait_for(1));
  }
  ReleasedArray made;
  DeviceArray array = made.make(Api::kType, 0);
  ASSERT_TRUE(release_after(array, this->on(this->consumer_)).ok());
  EXPECT_TRUE(made.parents.wait_for(1));
  for (auto& each : slow) EXPECT_EQ(each->done.count(), 0);
  open.count_down();
  for (auto& each : slow) EXPECT_TRUE(each->done.wait_for(1));
}

// Many callbacks that block at once, each waiting for the next to begin. Few threads remain.
TYPED_TEST(Deferred, MutuallyWaitingCallbacksFinish) {
  using Api = TypeParam;
  constexpr int kMany = 40;
  std::latch all_begun(kMany);
  struct Waiting {
    std::latch* all_begun = nullptr;
    Releases done;
  };
  std::vector<Waiting> arrays(kMany);
  for (Waiting& each : arrays) {
    each.all_begun = &all_begun;
    ArrowDeviceArray raw{};
    raw.device_type = Api::kType;
    raw.array.private_data = &each;
    raw.array.release = [](ArrowArray* self) {
      auto* array = static_cast<Waiting*>(self->private_data);
      self->release = nullptr;
      array->all_begun->arrive_and_wait();
      array->done.add();
    };
    DeviceArray array(&raw);
    ASSERT_TRUE(release_after(array, this->on(this->consumer_)).ok());
  }
  for (Waiting& each : arrays) EXPECT_TRUE(each.done.wait_for(1));
  // The test's timeout ends an infinite wait.
  const auto threads = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
  };
  while (threads() >= kMany) std::this_thread::yield();
}

// A callback may call the driver, so the stream's context or device must be current.
TYPED_TEST(Deferred, CallbackRunsOnDeviceOfStream) {
  using Api = TypeParam;
  if (this->devices_ < 2) GTEST_SKIP() << "needs two devices";
  if (testing::current_device() != testing::CurrentDevice::kOwn) {
    GTEST_SKIP() << testing::kChoosesItself;
  }
  struct Callback {
    std::intptr_t current = -1;
    Releases done;
  };
  Api::open_device(1);
  void* stream = Api::make_stream();
  Callback callback;
  ArrowDeviceArray raw{};
  raw.device_type = Api::kType;
  raw.device_id = 1;
  raw.array.private_data = &callback;
  raw.array.release = [](ArrowArray* self) {
    auto* called = static_cast<Callback*>(self->private_data);
    self->release = nullptr;
    called->current = Api::current();
    called->done.add();
  };
  DeviceArray array(&raw);
  EXPECT_TRUE(release_after(array, this->on(stream)).ok());
  EXPECT_TRUE(callback.done.wait_for(1));
  EXPECT_EQ(callback.current, Api::current());
  Api::destroy_stream(stream);
  Api::close_device(1);
}

/// Runs the body in a child of fork and returns its exit status.
template <class Body>
int in_a_child(Body body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// The child has neither the reaper's thread nor the driver.
TYPED_TEST(Deferred, ForkedChildDoesNotReleaseAfterStream) {
  using Api = TypeParam;
  if (!this->control_.is_there()) GTEST_SKIP() << "a driver does not survive a fork";
  ReleasedArray first;
  DeviceArray begun = first.make(Api::kType, 0);
  ASSERT_TRUE(release_after(begun, this->on(this->consumer_)).ok());
  EXPECT_TRUE(first.parents.wait_for(1)) << "the reaper runs";
  this->write_behind_gate();
  ReleasedArray waiting;
  DeviceArray behind_gate = waiting.make(Api::kType, 0);
  ASSERT_TRUE(release_after(behind_gate, this->on(this->producer_)).ok());
  ReleasedArray made;
  DeviceArray array = made.make(Api::kType, 0);
  const int problem = in_a_child([&] {
    const Status status = release_after(array, this->on(this->consumer_));
    if (status.ok() || !array.is_released()) return 1;
    if (!contains(message(status), "fork")) return 2;
    if (pending_releases()->pending != 0 || pending_releases()->leaked != 1) return 3;
    return made.parents.count() == 0 ? 0 : 4;
  });
  EXPECT_EQ(problem, 0);
  EXPECT_EQ(pending_releases()->pending, 1) << "the child has none, and the parent still has its";
  EXPECT_TRUE(release_after(array, this->on(this->consumer_)).ok()) << "the parent stays valid";
  EXPECT_TRUE(made.parents.wait_for(1));
  this->open_gate();
  EXPECT_TRUE(waiting.parents.wait_for(1));
}

TYPED_TEST(Deferred, ForkedChildDoesNotDestroyEvent) {
  using Api = TypeParam;
  if (!this->control_.is_there()) GTEST_SKIP() << "a driver does not survive a fork";
  ReleasedArray made;
  DeviceArray array = made.make(Api::kType, 0);
  ASSERT_TRUE(export_with_event(array, this->on(this->producer_)).ok());
  const int problem = in_a_child([&] {
    const std::int64_t before = this->control_.all_calls();
    array.release();
    if (made.parents.count() != 1) return 1;
    if (this->control_.all_calls() != before) return 2;
    return pending_releases()->inherited_events == 1 ? 0 : 3;
  });
  EXPECT_EQ(problem, 0);
  EXPECT_EQ(pending_releases()->inherited_events, 0) << "the child's is not the parent's";
  array.release();
}

// A failed query implies nothing about the work, however often it fails.
TYPED_TEST(Deferred, FailedQueryIsNotCompletion) {
  using Api = TypeParam;
  if (!this->control_.is_there()) GTEST_SKIP() << "needs the stand-in";
  const auto refused = std::string(Api::kQuery) + ":*:900";
  ASSERT_TRUE(this->control_.set_fault(refused.c_str()));
  ReleasedArray made;
  DeviceArray array = made.make(Api::kType, 0);
  ASSERT_TRUE(release_after(array, this->on(this->consumer_)).ok());
  const std::int64_t before = this->control_.calls(Api::kQuery);
  while (this->control_.calls(Api::kQuery) < before + 5) std::this_thread::yield();
  EXPECT_EQ(made.parents.count(), 0);
  const PendingReleases pending = pending_releases().value();
  EXPECT_EQ(pending.pending, 1);
  EXPECT_EQ(pending.refused, 1);
  EXPECT_TRUE(contains(pending.last_refusal, Api::kQuery)) << pending.last_refusal;
  this->control_.reset_faults();
  EXPECT_TRUE(made.parents.wait_for(1)) << "the driver answers again";
  EXPECT_EQ(pending_releases()->pending, 0);
}

// Every call then reports the loss, but only the query of the event shows that its device is lost.
TYPED_TEST(Deferred, DetectsLossReportedByEveryCall) {
  using Api = TypeParam;
  if (!this->control_.is_there()) GTEST_SKIP() << "needs the stand-in";
  this->write_behind_gate();
  ReleasedArray made;
  DeviceArray array = made.make(Api::kType, 0);
  ASSERT_TRUE(release_after(array, this->on(this->producer_)).ok());
  const std::string mode = std::string(Api::kExchangeMode) + ":*:700";
  ASSERT_TRUE(this->control_.set_fault(mode.c_str()));
  const std::int64_t before = this->control_.calls(Api::kExchangeMode);
  while (this->control_.calls(Api::kExchangeMode) < before + 10) std::this_thread::yield();
  EXPECT_EQ(made.parents.count(), 0) << "of another device, for all that is known";
  ASSERT_TRUE(this->control_.set_fault((std::string(Api::kQuery) + ":*:700").c_str()));
  EXPECT_TRUE(made.parents.wait_for(1));
  this->control_.reset_faults();
}

/// Tests with the primary context of device 1.
class DestroyedContext : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!control_.is_there()) GTEST_SKIP() << "a driver need not survive a wrong answer here";
    if (testing::current_device() != testing::CurrentDevice::kOwn) {
      GTEST_SKIP() << testing::kChoosesItself;
    }
    CudaApi::devices();
    CudaApi::open_device(1);
    stream_ = CudaApi::make_stream();
    stale_ = control_.stale_handles();
  }

  static Stream on(void* handle) { return {CudaApi::kType, handle}; }

  const testing::Control control_{cuda::kRuntime};
  void* stream_ = nullptr;
  std::int64_t stale_ = 0;
};

// The event is destroyed with the last release of the context, or by a reset even if there are
// other references. The handles of the event and the context must not be used afterwards: they may
// point to freed memory or to another context.
TEST_F(DestroyedContext, EventIsNotDestroyed) {
  for (const bool comes_back : {false, true}) {
    if (comes_back) {
      CudaApi::open_device(1);
      stream_ = CudaApi::make_stream();
    }
    ReleasedArray made;
    DeviceArray array = made.make(CudaApi::kType, 1);
    ASSERT_TRUE(export_with_event(array, on(stream_)).ok());
    if (comes_back) {
      CudaApi::reset_device(1);
      CudaApi::open_device(1);
    } else {
      CudaApi::close_device(1);
    }
    array.release();
    EXPECT_EQ(made.parents.count(), 1);
    EXPECT_EQ(control_.stale_handles(), stale_);
  }
  for (int opened = 0; opened < 2; ++opened) CudaApi::close_device(1);
}

// The thread's cached context of its last event is not used for this event.
TEST_F(DestroyedContext, EventOfOtherContextIsDestroyed) {
  CudaApi::open_device(0);
  void* other = CudaApi::make_stream();
  const std::int64_t before = control_.alive().events;
  for (void* stream : {other, stream_, other}) {
    ReleasedArray made;
    DeviceArray array = made.make(CudaApi::kType, stream == other ? 0 : 1);
    ASSERT_TRUE(export_with_event(array, on(stream)).ok());
    array.release();
    EXPECT_EQ(control_.alive().events, before);
  }
  CudaApi::destroy_stream(other);
  CudaApi::close_device(0);
  CudaApi::destroy_stream(stream_);
  CudaApi::close_device(1);
}

// The reaper holds a reference during a query, so that the context is not destroyed meanwhile.
TEST_F(DestroyedContext, ReleasesWithoutWaiting) {
  void* gate = CudaApi::allocate_pinned();
  testing::store_word(gate, 0);
  CudaApi::wait_for_word(stream_, gate);
  ReleasedArray made;
  DeviceArray array = made.make(CudaApi::kType, 1);
  ASSERT_TRUE(release_after(array, on(stream_)).ok());
  CudaApi::close_device(1);
  EXPECT_TRUE(made.parents.wait_for(1)) << "nothing runs in the context any more";
  EXPECT_EQ(control_.stale_handles(), stale_);
}

// An error while making the event's context current can also report the lost device.
TEST_F(DestroyedContext, DeviceLossReleasesArray) {
  void* gate = CudaApi::allocate_pinned();
  testing::store_word(gate, 0);
  CudaApi::wait_for_word(stream_, gate);
  ReleasedArray made;
  DeviceArray array = made.make(CudaApi::kType, 1);
  ASSERT_TRUE(release_after(array, on(stream_)).ok());
  const std::string state = "cuDevicePrimaryCtxGetState";
  ASSERT_TRUE(control_.set_fault((state + ":*:304").c_str()));  // not a context error
  const std::int64_t before = control_.calls(state.c_str());
  while (control_.calls(state.c_str()) < before + 3) std::this_thread::yield();
  EXPECT_EQ(made.parents.count(), 0);
  control_.reset_faults();
  ASSERT_TRUE(control_.set_fault((state + ":*:700").c_str()));
  EXPECT_TRUE(made.parents.wait_for(1));
  control_.reset_faults();
  testing::store_word(gate, 1);
  CudaApi::destroy_stream(stream_);
  CudaApi::close_device(1);
}

}  // namespace
}  // namespace fletching
