// SPDX-License-Identifier: Apache-2.0
//
// Exchanges streams and device streams between nanoarrow and the library.
#include "fletching/stream.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fletching/stream_adapters.hpp"
#include "fletching/stream_producer.hpp"
#include "support.hpp"

namespace fletching::peers {
namespace {

/// The batches that nanoarrow reads from one of Fletching's streams, which must end.
std::vector<Values> read_all(ArrayStream& stream) {
  std::vector<Values> batches;
  ArrowError error{};
  for (;;) {
    Array array;
    const int code = ArrowArrayStreamGetNext(stream.get(), array.out(), &error);
    EXPECT_EQ(code, NANOARROW_OK) << error.message;
    if (code != NANOARROW_OK || array.is_released()) return batches;
    batches.push_back(read_int32(array.get()));
  }
}

TEST(NanoarrowStream, ReadsNanoarrowStreamAsRange) {
  ArrayStream stream;
  basic_stream(stream, {{1, 2}, {3}});
  ArrayStreamReader reader(std::move(stream));
  EXPECT_STREQ(reader.schema().value()->name, "values");
  std::vector<Array> kept;
  for (auto& batch : reader) kept.push_back(std::move(batch).value());
  reader.release();
  ASSERT_EQ(kept.size(), 2U);
  EXPECT_EQ(read_int32(kept[0].get()), (Values{1, 2}));
  EXPECT_EQ(read_int32(kept[1].get()), (Values{3}));
}

TEST(NanoarrowStream, StrictReadsDeviceStream) {
  for (const ArrowDeviceType type : {ARROW_DEVICE_EXT_DEV, ARROW_DEVICE_CUDA}) {
    ArrayStream plain;
    DeviceArrayStream stream;
    ASSERT_EQ(ArrowDeviceBasicArrayStreamInit(stream.out(), basic_stream(plain, {{1, 2}, {3}}),
                                              fake_device(type, 2)),
              NANOARROW_OK);
    DeviceArrayStreamReader reader(std::move(stream), {.strict = true});
    EXPECT_EQ(reader.device_type(), type);
    int batches = 0;
    for (auto& batch : reader) {
      ASSERT_TRUE(batch.ok()) << batch.error().message();
      EXPECT_EQ((*batch)->device_type, type);
      EXPECT_EQ((*batch)->device_id, 2);
      ++batches;
    }
    EXPECT_EQ(batches, 2);
  }
}

TEST(NanoarrowStream, NanoarrowReadsFletchingStream) {
  std::vector<Array> arrays;
  arrays.push_back(int32_array({1, 2}));
  arrays.push_back(int32_array({3}));
  auto stream = make_array_stream(int32_schema(), std::move(arrays)).value();
  Schema schema;
  ArrowError error{};
  ASSERT_EQ(ArrowArrayStreamGetSchema(stream.get(), schema.out(), &error), NANOARROW_OK);
  EXPECT_STREQ(schema->name, "values");
  EXPECT_EQ(read_all(stream), (std::vector<Values>{{1, 2}, {3}}));
}

TEST(NanoarrowStream, NanoarrowReportsFletchingError) {
  const auto fails = [] { return Result<Array>(Error(ENOSPC, "our disk is full")); };
  auto stream = make_array_stream(int32_schema(), fails).value();
  Array array;
  ArrowError error{};
  EXPECT_EQ(ArrowArrayStreamGetNext(stream.get(), array.out(), &error), ENOSPC);
  EXPECT_STREQ(error.message, "our disk is full");
}

// nanoarrow wraps a Fletching stream, passes it slots that are not zeroed, and Fletching reads the
// result.
TEST(NanoarrowStream, RoundTripsFletchingStream) {
  std::vector<Array> arrays;
  arrays.push_back(int32_array({1, 2}));
  auto ours = make_array_stream(int32_schema(), std::move(arrays)).value();
  DeviceArrayStream wrapped;
  ASSERT_EQ(ArrowDeviceBasicArrayStreamInit(wrapped.out(), ours.get(), ArrowDeviceCpu()),
            NANOARROW_OK);
  auto plain = to_array_stream(std::move(wrapped), {.strict = true}).value();
  EXPECT_EQ(read_all(plain), (std::vector<Values>{{1, 2}}));
}

TEST(NanoarrowStream, ForwardsErrors) {
  const auto fails = [] { return Result<Array>(Error(ENOSPC, "our disk is full")); };
  auto ours = make_array_stream(int32_schema(), fails).value();
  DeviceArrayStream wrapped;
  ASSERT_EQ(ArrowDeviceBasicArrayStreamInit(wrapped.out(), ours.get(), ArrowDeviceCpu()),
            NANOARROW_OK);
  DeviceArrayStreamReader reader(std::move(wrapped));
  const auto batch = reader.next().value();
  ASSERT_FALSE(batch.ok());
  EXPECT_EQ(batch.error().code(), ENOSPC);
  EXPECT_EQ(batch.error().message(), "our disk is full");
}

}  // namespace
}  // namespace fletching::peers
