// SPDX-License-Identifier: Apache-2.0
//
// Exchanges schemas, arrays and device arrays between libarrow and the owners.
#include <arrow/c/bridge.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "fletching/owner.hpp"
#include "support.hpp"

namespace fletching::peers {
namespace {

TEST(Libarrow, ExportsAndImportsArray) {
  const auto array = int32_array({1, 2, 3});
  const long before = array->data().use_count();
  Array ours;
  Schema schema;
  ASSERT_TRUE(arrow::ExportArray(*array, ours.out(), schema.out()).ok());
  EXPECT_EQ(ours->length, 3);
  EXPECT_STREQ(schema->format, "i");
  EXPECT_EQ(static_cast<const std::int32_t*>(ours->buffers[1])[2], 3);

  Array moved(std::move(ours));
  const auto back = value_of(arrow::ImportArray(moved.get(), schema.get()));
  EXPECT_TRUE(moved.is_released());
  EXPECT_TRUE(schema.is_released());
  EXPECT_TRUE(back->Equals(*array));
  EXPECT_EQ(array->data().use_count(), before + 1);
}

TEST(Libarrow, ExportsAndImportsFakeDeviceArray) {
  ASSERT_TRUE(register_fake_device().ok());
  const auto cpu = int32_batch({1, 2, 3});
  const auto batch = on_fake_device(*cpu, 3);
  FakeEvent event;
  DeviceArray ours;
  Schema schema;
  ASSERT_TRUE(arrow::ExportDeviceRecordBatch(*batch,
                                             std::make_shared<FakeSyncEvent>(&event, nullptr),
                                             ours.out(), schema.out())
                  .ok());
  EXPECT_EQ(ours->device_type, ARROW_DEVICE_EXT_DEV);
  EXPECT_EQ(ours->device_id, 3);
  EXPECT_EQ(ours->sync_event, &event);
  const auto address = reinterpret_cast<std::uint64_t>(ours->array.children[0]->buffers[1]);
  EXPECT_EQ(reinterpret_cast<const std::int32_t*>(host_address(address))[2], 3);

  DeviceArray moved(std::move(ours));
  const auto back = value_of(arrow::ImportDeviceRecordBatch(moved.get(), schema.get()));
  EXPECT_TRUE(moved.is_released());
  EXPECT_EQ(back->device_type(), arrow::DeviceAllocationType::kEXT_DEV);
  EXPECT_EQ(event.waits, 0);
  const auto read = value_of(back->CopyTo(arrow::default_cpu_memory_manager()));
  EXPECT_TRUE(read->Equals(*cpu));
  EXPECT_GT(event.waits, 0);  // libarrow uses the event that it received
}

// Tests libarrow alone: it returns an array of an unknown device type with an error message, and
// the array is released.
TEST(Libarrow, RejectsArrayOfUnknownDevice) {
  const auto batch = int32_batch({1});
  DeviceArray ours;
  Schema schema;
  ASSERT_TRUE(arrow::ExportDeviceRecordBatch(*batch, nullptr, ours.out(), schema.out()).ok());
  ours->device_type = ARROW_DEVICE_VPI;
  const auto result = arrow::ImportDeviceRecordBatch(ours.get(), schema.get());
  EXPECT_FALSE(result.ok());
  EXPECT_FALSE(result.status().message().empty());
}

TEST(Libarrow, OwnerReleasesArray) {
  const auto array = int32_array({1, 2, 3});
  const long before = array->data()->buffers[1].use_count();
  {
    Array ours;
    ASSERT_TRUE(arrow::ExportArray(*array, ours.out()).ok());
    EXPECT_GT(array->data().use_count() + array->data()->buffers[1].use_count(), before + 1);
  }
  EXPECT_EQ(array->data()->buffers[1].use_count(), before);
}

}  // namespace
}  // namespace fletching::peers
