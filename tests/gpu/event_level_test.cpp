// Events passed with one pointer level too few or too many. A stand-in detects this; a real driver
// may crash.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

#include "device.hpp"
#include "gated.hpp"

namespace fletching::gpu {
namespace {

class EventLevel : public ::testing::TestWithParam<const char*> {};

void expect_refused(const Device& device, DeviceArray& array, void* sync_event) {
  void* const right = std::exchange(array->sync_event, sync_event);
  Queue queue(device);
  const auto expect = [](std::string_view operation, const auto& result) {
    ASSERT_FALSE(result.ok()) << operation << " accepted it";
    const std::string& text = result.error().message();
    EXPECT_NE(text.find("sync_event"), std::string::npos) << operation << ": " << text;
    EXPECT_NE(text.find("handle"), std::string::npos) << operation << ": " << text;
  };
  expect("ready", SyncEvent(array).ready());
  expect("wait_on", wait_on(array, queue.handle()));
  expect("synchronize", SyncEvent(array).synchronize());
  EXPECT_TRUE(queue.is_idle());
  array->sync_event = right;
}

TEST_P(EventLevel, RejectsHandleAndDoubleAddress) {
  const Device device(GetParam());
  if (std::string_view(device.status()) != "stand-in") {
    GTEST_SKIP() << GetParam() << " is " << device.status() << ": " << device.description();
  }
  GatedProducer gate(device);
  Schema schema;
  DeviceArray array;
  gate.export_array("int32", schema.out(), array.out());
  void* const handle = *static_cast<void**>(array->sync_event);
  void* address = array->sync_event;

  expect_refused(device, array, handle);    // by value instead of by address
  expect_refused(device, array, &address);  // address of the address

  const Result<bool> ready = SyncEvent(array).ready();
  ASSERT_TRUE(ready.ok()) << ready.error().message();
  EXPECT_FALSE(*ready);
  gate.open();
  EXPECT_TRUE(SyncEvent(array).synchronize().ok());
}

INSTANTIATE_TEST_SUITE_P(All, EventLevel,
                         ::testing::Values("cuda", "cuda_host", "cuda_managed", "rocm",
                                           "rocm_host"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace fletching::gpu
