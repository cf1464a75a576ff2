// SPDX-License-Identifier: Apache-2.0
//
// Exchanges schemas, arrays and device arrays between nanoarrow and the owners.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include "fletching/stream_adapters.hpp"
#include "support.hpp"

namespace fletching::peers {
namespace {

TEST(Nanoarrow, OwnsAndReturnsSchemaAndArray) {
  Schema schema(int32_schema());
  Array array(int32_array({1, 2, 3}));
  EXPECT_STREQ(schema->format, "i");
  EXPECT_EQ(array->length, 3);

  ArrowSchemaView view;
  ArrowError error{};
  ASSERT_EQ(ArrowSchemaViewInit(&view, schema.get(), &error), NANOARROW_OK) << error.message;
  EXPECT_EQ(view.type, NANOARROW_TYPE_INT32);
  EXPECT_EQ(read_int32(array.get()), (Values{1, 2, 3}));

  // nanoarrow moves out of an owner as out of any struct.
  ArrowArray moved;
  ArrowArrayMove(array.get(), &moved);
  EXPECT_TRUE(array.is_released());
  EXPECT_EQ(read_int32(&moved), (Values{1, 2, 3}));
  ArrowArrayRelease(&moved);
}

TEST(Nanoarrow, ReadsCpuDeviceArray) {
  Array array(int32_array({4, 5}));
  DeviceArray device;
  ASSERT_EQ(ArrowDeviceArrayInit(ArrowDeviceCpu(), device.out(), array.get(), nullptr),
            NANOARROW_OK);
  EXPECT_TRUE(array.is_released());
  EXPECT_EQ(device->device_type, ARROW_DEVICE_CPU);
  EXPECT_EQ(device->device_id, -1);
  for (const std::int64_t word : device->reserved) EXPECT_EQ(word, 0);

  const Array back = to_array(std::move(device)).value();
  EXPECT_EQ(read_int32(back.get()), (Values{4, 5}));
}

TEST(Nanoarrow, NanoarrowReadsFletchingDeviceArray) {
  DeviceArray device = to_device_array(int32_array({6, 7}));
  ArrowDeviceArrayView view;
  ArrowDeviceArrayViewInit(&view);
  ArrowArrayViewInitFromType(&view.array_view, NANOARROW_TYPE_INT32);
  ArrowError error{};
  ASSERT_EQ(ArrowDeviceArrayViewSetArray(&view, device.get(), &error), NANOARROW_OK)
      << error.message;
  EXPECT_EQ(view.device, ArrowDeviceCpu());
  EXPECT_EQ(ArrowArrayViewGetIntUnsafe(&view.array_view, 1), 7);
  ArrowDeviceArrayViewReset(&view);

  ArrowDeviceArray moved;
  ArrowDeviceArrayMove(device.get(), &moved);
  EXPECT_TRUE(device.is_released());
  ArrowArrayRelease(&moved.array);
}

TEST(Nanoarrow, RejectsArrayOfOtherDevice) {
  Array array(int32_array({8}));
  DeviceArray device;
  ASSERT_EQ(ArrowDeviceArrayInit(fake_device(ARROW_DEVICE_EXT_DEV, 5), device.out(), array.get(),
                                 nullptr),
            NANOARROW_OK);
  EXPECT_EQ(device->device_type, ARROW_DEVICE_EXT_DEV);
  EXPECT_EQ(device->device_id, 5);
  EXPECT_EQ(to_array(std::move(device)).error().code(), EINVAL);
}

}  // namespace
}  // namespace fletching::peers
