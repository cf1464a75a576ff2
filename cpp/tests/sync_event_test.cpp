// SPDX-License-Identifier: Apache-2.0
//
// Device types, and events that need no vendor library: NULL, without a runtime, with a waiter.
#include "fletching/sync_event.hpp"
#include "fletching/vulkan_event.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "error_messages.hpp"
#include "fletching/array_builder.hpp"
#include "fletching/cuda_array.hpp"
#include "fletching/device_stream.hpp"
#include "fletching/device_type.hpp"
#include "fletching/export_event.hpp"
#include "fletching/release_after.hpp"
#include "fletching/schema_builder.hpp"
#include "fletching/waiter.hpp"
#include "released_array.hpp"
#include "runtimes/cuda.hpp"

namespace fletching {
namespace {

using testing::contains;
using testing::message;
using testing::ReleasedArray;

constexpr ArrowDeviceType kNew = 9999;  // not in any table

TEST(DeviceType, AcceptsUnknownNumbers) {
  for (const ArrowDeviceType number : {kNew, 0, -1, std::numeric_limits<int>::min()}) {
    const DeviceType type = number;
    EXPECT_EQ(type.value(), number);
    EXPECT_FALSE(type.is_known());
    EXPECT_EQ(type.name(), "unknown(" + std::to_string(number) + ")");
    EXPECT_EQ(type.runtime(), Runtime::kNone);
    EXPECT_EQ(type.event_pointer(), EventPointer::kProducerDefined);
  }
}

TEST(DeviceType, NamesKnownDevices) {
  constexpr DeviceType kHost = ARROW_DEVICE_CUDA_HOST;
  EXPECT_TRUE(kHost.is_known());
  EXPECT_EQ(kHost.runtime(), Runtime::kCuda);
  EXPECT_EQ(kHost.name(), "cuda_host");
  EXPECT_EQ(kHost.event_pointer(), EventPointer::kAddressOfHandle);
  EXPECT_EQ(DeviceType(ARROW_DEVICE_ONEAPI).event_pointer(), EventPointer::kObject);
  EXPECT_EQ(DeviceType(ARROW_DEVICE_ROCM).runtime(), Runtime::kHip);
  EXPECT_LT(DeviceType(ARROW_DEVICE_CPU), kHost);
}

// It does not count as "no event", and the freed event is not read.
TEST(SyncEvent, RejectsReleasedArray) {
  const auto free_event = [](ArrowArray* self) {
    self->release = nullptr;
    delete static_cast<void**>(self->private_data);
  };
  for (const ArrowDeviceType type : {ARROW_DEVICE_CPU, ARROW_DEVICE_CUDA, ARROW_DEVICE_ROCM,
                                     ARROW_DEVICE_OPENCL, ARROW_DEVICE_VULKAN, kNew}) {
    for (const bool has_event : {true, false}) {
      ArrowDeviceArray raw{};
      raw.device_type = type;
      raw.array.release = free_event;
      if (has_event) {
        auto* const event = new void*(&raw);
        raw.array.private_data = static_cast<void*>(event);
        raw.sync_event = static_cast<void*>(event);
      }
      DeviceArray array(&raw);
      array.release();
      const SyncEvent events[] = {SyncEvent(array), SyncEvent(*array.get())};
      for (const SyncEvent& event : events) {
        EXPECT_FALSE(event.is_null());
        EXPECT_EQ(event.get(), nullptr);
        const auto refused = [&](const auto& result) {
          ASSERT_FALSE(result.ok()) << device_name(type);
          EXPECT_EQ(result.error().code(), EINVAL);
          EXPECT_TRUE(contains(message(result), "array is released")) << message(result);
        };
        refused(event.synchronize());
        refused(event.wait_on({type, nullptr}));
        refused(event.ready());
        refused(event.synchronize(vulkan::WaitContext{}));
        refused(event.wait_on(vulkan::WaitContext{}, nullptr));
        refused(event.ready(vulkan::WaitContext{}));
      }
    }
  }
  EXPECT_FALSE(SyncEvent(DeviceArray()).ready().ok());
}

// The event passed instead of its address.
TEST(Rules, SyncEventTypeOfTable) {
  for (const ArrowDeviceType type : {ARROW_DEVICE_CUDA, ARROW_DEVICE_ROCM, ARROW_DEVICE_OPENCL}) {
    for (const std::uintptr_t handle :
         {std::uintptr_t{42}, static_cast<std::uintptr_t>(0x7000000000001)}) {
      const SyncEvent event(type, 0, reinterpret_cast<void*>(handle));
      ASSERT_FALSE(event.ready().ok());
      EXPECT_EQ(event.ready().error().code(), EINVAL);
      EXPECT_TRUE(contains(message(event.ready()), "not the handle")) << message(event.ready());
    }
    void* null_handle = nullptr;
    const SyncEvent event(type, 0, static_cast<void*>(&null_handle));
    EXPECT_TRUE(contains(message(event.wait_on({type, null_handle})), "the handle is NULL"));
  }
}

TEST(SyncEvent, NamesMissingLibrary) {
  if (cuda::functions().ok()) GTEST_SKIP() << "there is a CUDA driver";
  void* handle = &handle;
  const SyncEvent event(ARROW_DEVICE_CUDA, 0, static_cast<void*>(&handle));
  EXPECT_EQ(event.synchronize().error().code(), ENOENT);
  for (const char* name : cuda::kLibraries) {
    const Status status = event.wait_on({ARROW_DEVICE_CUDA, nullptr});
    EXPECT_TRUE(contains(message(status), name)) << message(status);
  }
}

struct Calls {
  int synchronized = 0;
  void* stream = nullptr;
  bool happened = false;
  int code = 0;
  std::string_view text;
};

int answer(void* context, FletchingMessage* message) {
  const auto* calls = static_cast<Calls*>(context);
  calls->text.copy(message->text, sizeof message->text - 1);
  return calls->code;
}

constexpr FletchingWaiter waiter_for(Calls* calls) {
  return {[](void* context, void*, int64_t, FletchingMessage* message) {
            ++static_cast<Calls*>(context)->synchronized;
            return answer(context, message);
          },
          [](void* context, void*, int64_t, void* stream, FletchingMessage* message) {
            static_cast<Calls*>(context)->stream = stream;
            return answer(context, message);
          },
          [](void* context, void*, int64_t, int* ready, FletchingMessage* message) {
            *ready = static_cast<Calls*>(context)->happened ? 1 : 0;
            return answer(context, message);
          },
          calls};
}

class Waiter : public ::testing::Test {
 protected:
  void TearDown() override { unregister_waiter(kNew); }

  Calls calls_;
  int object_ = 0;
  SyncEvent event_{kNew, 7, &object_};
};

TEST_F(Waiter, EveryOperationCallsWaiter) {
  ASSERT_TRUE(register_waiter(kNew, waiter_for(&calls_)).ok());
  EXPECT_FALSE(*event_.ready());
  calls_.happened = true;
  EXPECT_TRUE(*event_.ready());
  EXPECT_TRUE(event_.synchronize().ok());
  EXPECT_EQ(calls_.synchronized, 1);
  EXPECT_TRUE(event_.wait_on({kNew, &calls_}).ok());
  EXPECT_EQ(calls_.stream, &calls_);
  EXPECT_TRUE(unregister_waiter(kNew));
  EXPECT_FALSE(unregister_waiter(kNew));
  EXPECT_EQ(event_.synchronize().error().code(), ENOTSUP);
}

TEST_F(Waiter, ErrorContainsWaiterText) {
  calls_.code = ENODEV;
  calls_.text = "the device \xff is gone";
  ASSERT_TRUE(register_waiter(kNew, waiter_for(&calls_)).ok());
  const Status status = event_.synchronize();
  EXPECT_EQ(status.error().code(), ENODEV);
  EXPECT_EQ(message(status), "synchronize: event of unknown(9999): the device \\xff is gone");
  calls_.text = "";
  EXPECT_TRUE(contains(message(event_.ready()), "without a message"));
}

TEST_F(Waiter, RegistersFromManyThreads) {
  std::vector<std::thread> threads;
  threads.reserve(8);
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([this] {
      for (int round = 0; round < 100; ++round) {
        EXPECT_TRUE(register_waiter(kNew, waiter_for(&calls_)).ok());
        (void)event_.ready().ok();
        unregister_waiter(kNew);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(WaitContext, RejectsOtherDevices) {
  int object = 0;
  const SyncEvent event(ARROW_DEVICE_CUDA, 0, &object);
  EXPECT_EQ(event.synchronize(vulkan::WaitContext{}).error().code(), EINVAL);
}

TEST(EventOperations, ErrorNamesRuntimeAndReason) {
  for (const ArrowDeviceType type :
       {ARROW_DEVICE_CPU, ARROW_DEVICE_VULKAN, ARROW_DEVICE_METAL, ARROW_DEVICE_ONEAPI, kNew}) {
    ReleasedArray made;
    DeviceArray array = made.make(type, 0);
    const Status exported = export_with_event(array, {type, nullptr});
    EXPECT_EQ(exported.error().code(), ENOTSUP);
    EXPECT_TRUE(contains(message(exported), device_name(type))) << message(exported);
    EXPECT_EQ(array->sync_event, nullptr);
    // Without a runtime no work can be pending on a NULL stream. With another runtime this is
    // unknown, so the array is leaked.
    const bool is_idle = DeviceType(type).runtime() == Runtime::kNone;
    const Status deferred = release_after(array, {type, nullptr});
    EXPECT_EQ(deferred.ok() ? 0 : deferred.error().code(), is_idle ? 0 : ENOTSUP);
    EXPECT_TRUE(array.is_released());
    EXPECT_EQ(made.parents.count(), is_idle ? 1 : 0);
    EXPECT_EQ(export_with_event(array, {type, nullptr}).error().code(), EINVAL);
    EXPECT_EQ(release_after(array, {type, nullptr}).error().code(), EINVAL);
  }
}

TEST(EventOperations, ExportRejectsMalformedArray) {
  ReleasedArray made;
  DeviceArray array = made.make(ARROW_DEVICE_CUDA, 0);
  const std::int64_t children = std::exchange(array->array.n_children, -1);
  const Status exported = export_with_event(array, {ARROW_DEVICE_CUDA, nullptr});
  ASSERT_FALSE(exported.ok());
  EXPECT_EQ(exported.error().code(), EINVAL);
  EXPECT_TRUE(contains(message(exported), "n_children")) << message(exported);
  array->array.n_children = children;
}

TEST(PendingReleases, AreNoneAtFirst) {
  const PendingReleases none;
  EXPECT_EQ(none.pending + none.refused + none.running + none.leaked + none.inherited_events, 0);
}

// A handle does not identify its runtime, and the address of a handle is not a stream.
static_assert(!std::is_convertible_v<void*, Stream> && !std::is_constructible_v<Stream, void*>);
static_assert(std::is_constructible_v<Stream, ArrowDeviceType, int*> &&
              !std::is_constructible_v<Stream, ArrowDeviceType, int**> &&
              !std::is_constructible_v<Stream, ArrowDeviceType, void**>);

TEST(EventOperations, RejectStreamOfOtherRuntime) {
  int object = 0;
  void* handle = &object;
  cuda_array_interface::Interface says;
  says.typestr = "|i1";
  says.pointer = 8;
  const auto refused = [](const auto& result) {
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code(), EINVAL) << message(result);
    EXPECT_TRUE(contains(message(result), "stream of another runtime")) << message(result);
  };
  for (const ArrowDeviceType type : {ARROW_DEVICE_ROCM, ARROW_DEVICE_CPU, kNew}) {
    const Stream stream(type, &object);
    ReleasedArray made;
    DeviceArray array = made.make(ARROW_DEVICE_CUDA, 0);
    refused(export_with_event(array, stream));
    refused(SyncEvent(ARROW_DEVICE_CUDA, 0, static_cast<void*>(&handle)).wait_on(stream));
    refused(SyncEvent(ARROW_DEVICE_EXT_DEV, 0, &object).wait_on(stream));
    refused(join_cuda_streams(stream, {}, 0));
    refused(join_cuda_streams({ARROW_DEVICE_CUDA, &object}, std::array{stream}, 0));
    refused(from_cuda_array(says, 0, {.consumer_stream = stream}));
    refused(release_after(array, stream));
    EXPECT_TRUE(array.is_released());
    EXPECT_EQ(made.parents.count(), 0) << "its memory may be in use: it is leaked";
    const Schema schema = make_schema({.format = "i"}).value();
    DeviceArray column = make_device_array({}, {nullptr, nullptr}, 0, ARROW_DEVICE_CUDA, 0).value();
    refused(to_cuda_array(*schema, column, stream));
    EXPECT_FALSE(column.is_released());
  }
}

}  // namespace
}  // namespace fletching
