// The stream argument of __dlpack__.
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <optional>

#include "dlpack_data.hpp"
#include "error_messages.hpp"
#include "fletching/dlpack.hpp"
#include "fletching/dlpack_stream.hpp"
#include "fletching/waiter.hpp"

namespace fletching::testing {
namespace {

using Argument = std::optional<std::int64_t>;

void expect_ordered(ArrowDeviceType device, Argument stream, Ordering ordering,
                    std::uintptr_t handle = 0) {
  const Result<ConsumerStream> read = read_dlpack_stream(device, stream);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->ordering, ordering) << device;
  EXPECT_EQ(read->stream.handle(), reinterpret_cast<void*>(handle)) << device;
  EXPECT_EQ(read->stream.device_type(), device);
}

void expect_refused(ArrowDeviceType device, std::int64_t stream) {
  const Result<ConsumerStream> read = read_dlpack_stream(device, stream);
  ASSERT_FALSE(read) << device << " takes " << stream;
  EXPECT_EQ(read.error().code(), EINVAL);
}

constexpr ArrowDeviceType kStreams[] = {ARROW_DEVICE_CUDA, ARROW_DEVICE_CUDA_HOST,
                                        ARROW_DEVICE_CUDA_MANAGED, ARROW_DEVICE_ROCM,
                                        ARROW_DEVICE_ROCM_HOST};

TEST(DlpackStream, AcceptsHandles) {
  // With 32-bit handles, the lower half.
  constexpr auto kHandle = static_cast<std::uintptr_t>(0x7f0012345678);
  for (const ArrowDeviceType device : kStreams) {
    expect_ordered(device, 3, Ordering::kStream, 3);
    expect_ordered(device, static_cast<std::int64_t>(kHandle), Ordering::kStream, kHandle);
  }
}

TEST(DlpackStream, OrdersHostForHostReadableMemory) {
  expect_ordered(ARROW_DEVICE_CUDA_HOST, {}, Ordering::kHost);
  expect_ordered(ARROW_DEVICE_CUDA_MANAGED, {}, Ordering::kHost);
  expect_ordered(ARROW_DEVICE_ROCM_HOST, {}, Ordering::kHost);
}

TEST(DlpackStream, OrdersHostForDevicesWithoutStreams) {
  for (const DeviceInfo& device : kDevices) {
    const bool has_streams = device.runtime == Runtime::kCuda || device.runtime == Runtime::kHip;
    if (!has_streams) expect_ordered(device.value, {}, Ordering::kHost);
  }
  expect_ordered(9999, {}, Ordering::kHost);
}

/// Exports an array for a consumer that passes None.
Status exported_for_none(ArrowDeviceType device, void* event) {
  constexpr static std::array<std::int32_t, 2> kValues{};
  Data data("i", 2, kValues.data());
  const Schema schema = data.schema();
  DeviceArray array = data.on(device, 0).event(event).array();
  const ConsumerStream stream = read_dlpack_stream(device, {}).value();
  const Result<DlpackTensor> tensor = to_dlpack(*schema, array, stream);
  EXPECT_EQ(array.is_released(), tensor.ok()) << device;
  return tensor ? Status() : Status(tensor.error());
}

// The export waits for an event or fails; it never skips the wait.
TEST(DlpackStream, WaitsForEventOnDevicesWithoutStreams) {
  struct WaitCounter {
    void* event = nullptr;
    int count = 0;
    int result = 0;
  };
  FletchingWaiter waiter{};
  waiter.synchronize = [](void* context, void* event, std::int64_t, FletchingMessage*) {
    auto* const waits = static_cast<WaitCounter*>(context);
    waits->event = event;
    ++waits->count;
    return waits->result;
  };
  int event = 0;
  for (const ArrowDeviceType device :
       {ARROW_DEVICE_CPU, ARROW_DEVICE_VULKAN, ARROW_DEVICE_METAL, ARROW_DEVICE_EXT_DEV,
        ARROW_DEVICE_ONEAPI, ARROW_DEVICE_WEBGPU, ArrowDeviceType{9999}}) {
    const Status refused = exported_for_none(device, &event);
    ASSERT_FALSE(refused) << device;
    EXPECT_EQ(refused.error().code(), ENOTSUP) << device;
    expect_mentions(refused.error(), "to_dlpack: ");
    EXPECT_TRUE(exported_for_none(device, nullptr)) << device;

    WaitCounter waits;
    waiter.context = &waits;
    ASSERT_TRUE(register_waiter(device, waiter));
    EXPECT_TRUE(exported_for_none(device, &event)) << device;
    EXPECT_EQ(waits.count, 1) << device;
    EXPECT_EQ(waits.event, &event) << device;
    waits.result = EIO;
    EXPECT_FALSE(exported_for_none(device, &event)) << device;
    EXPECT_TRUE(unregister_waiter(device));
  }
}

/// A stream is never passed to another runtime, which would treat it as a pointer.
TEST(DlpackStream, RejectsStreamOfOtherRuntime) {
  constexpr static std::array<std::int32_t, 2> kValues{};
  FletchingWaiter waiter{};
  int waits = 0;
  waiter.context = &waits;
  waiter.wait_on = [](void* context, void*, std::int64_t, void*, FletchingMessage*) {
    return ++*static_cast<int*>(context), 0;
  };
  ASSERT_TRUE(register_waiter(ARROW_DEVICE_ONEAPI, waiter));
  int event = 0;
  struct Pair {
    ConsumerStream stream;
    ArrowDeviceType device;
    const char* text;
  };
  const auto stream_of = [](ArrowDeviceType device) {
    return read_dlpack_stream(device, 0x1000).value();
  };
  const Pair pairs[] = {
      {stream_of(ARROW_DEVICE_CUDA), ARROW_DEVICE_ROCM, "expected one of rocm, got one of CUDA"},
      {stream_of(ARROW_DEVICE_ROCM_HOST), ARROW_DEVICE_CUDA_MANAGED,
       "expected one of cuda_managed, got one of HIP"},
      {stream_of(ARROW_DEVICE_CUDA), ARROW_DEVICE_ONEAPI,
       "expected one of oneapi, got one of CUDA"},
      {{Ordering::kStream, {0, reinterpret_cast<void*>(0x1000)}},
       ARROW_DEVICE_CUDA,
       "expected one of cuda, got one without a runtime"},
  };
  for (const Pair& pair : pairs) {
    Data data("i", 2, kValues.data());
    const Schema schema = data.schema();
    DeviceArray array = data.on(pair.device, 0).event(&event).array();
    const Error exported = to_dlpack(*schema, array, pair.stream).error();
    EXPECT_EQ(exported.code(), EINVAL);
    expect_mentions(exported, "to_dlpack: stream of another runtime: ");
    expect_mentions(exported, pair.text);
    ASSERT_FALSE(array.is_released());
    if (pair.device == ARROW_DEVICE_ONEAPI) continue;  // imports have no event there
    for (const Strided strided : {Strided::kRefuse, Strided::kCopy}) {
      Data foreign("i", 2, kValues.data());
      DeviceArray source = foreign.on(pair.device, 0).array();
      Result<DlpackTensor> tensor = to_dlpack(*schema, source);
      ASSERT_TRUE(tensor);
      const DlpackImportOptions options{.strided = strided};
      const Error imported = from_dlpack(*std::move(tensor), pair.stream, options).error();
      EXPECT_EQ(imported.code(), EINVAL);
      expect_mentions(imported, "from_dlpack: stream of another runtime: ");
      expect_mentions(imported, pair.text);
      EXPECT_EQ(foreign.releases(), 1);
    }
  }
  EXPECT_EQ(waits, 0);
  EXPECT_TRUE(unregister_waiter(ARROW_DEVICE_ONEAPI));
}

TEST(DlpackStream, ErrorNamesDevice) {
  const Result<ConsumerStream> read = read_dlpack_stream(9999, 5);
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message().find("unknown(9999)"), std::string::npos);
}

TEST(Rules, DlpackStreamRange) {
  for (const ArrowDeviceType device : kStreams) {
    expect_refused(device, -2);
    expect_refused(device, INT64_MIN);
  }
}

TEST(Rules, DlpackStreamMinusOne) {
  for (const ArrowDeviceType device : kStreams) expect_ordered(device, -1, Ordering::kNone);
}

TEST(Rules, DlpackStreamNoneIsLegacy) {
  expect_ordered(ARROW_DEVICE_CUDA, {}, Ordering::kStream, 1);
  expect_ordered(ARROW_DEVICE_ROCM, {}, Ordering::kStream, 0);
}

TEST(Rules, DlpackStreamCudaNotZero) {
  expect_refused(ARROW_DEVICE_CUDA, 0);
  expect_refused(ARROW_DEVICE_CUDA_HOST, 0);
  expect_refused(ARROW_DEVICE_CUDA_MANAGED, 0);
  expect_ordered(ARROW_DEVICE_CUDA, 1, Ordering::kStream, 1);
  expect_ordered(ARROW_DEVICE_CUDA, 2, Ordering::kStream, 2);
}

TEST(Rules, DlpackStreamRocmNotOneOrTwo) {
  for (const ArrowDeviceType device : {ARROW_DEVICE_ROCM, ARROW_DEVICE_ROCM_HOST}) {
    expect_refused(device, 1);
    expect_refused(device, 2);
    expect_ordered(device, 0, Ordering::kStream, 0);
  }
}

TEST(Rules, DlpackStreamNoneElsewhere) {
  for (const ArrowDeviceType device : {ARROW_DEVICE_CPU, ARROW_DEVICE_OPENCL, ARROW_DEVICE_ONEAPI,
                                       ARROW_DEVICE_METAL, ArrowDeviceType{9999}}) {
    expect_ordered(device, {}, Ordering::kHost);
    for (const std::int64_t stream : {-1, 0, 1, 2, 99}) expect_refused(device, stream);
  }
}

}  // namespace
}  // namespace fletching::testing
