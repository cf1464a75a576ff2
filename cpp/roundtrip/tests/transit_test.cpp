// The transit library, called as a peer calls it.
#include "transit.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "fake.hpp"
#include "owned.hpp"
#include "producer.h"

namespace fletching::roundtrip {
namespace {

TEST(Transit, CarriesACaseOfTheProducer) {
  FletchingProducerResetCounters();
  const std::int64_t exported = FletchingTransitExported();
  const std::int64_t released = FletchingTransitReleased();
  FletchingMessage message{};
  {
    Owned<ArrowSchema> schema;
    Owned<ArrowDeviceArray> array;
    ASSERT_EQ(
        FletchingProducerExportArray("cpu", "record_batch", &schema.value, &array.value, &message),
        0)
        << message.text;
    Owned<ArrowSchema> out_schema;
    Owned<ArrowDeviceArray> out_array;
    char text[64] = "not empty";
    EXPECT_EQ(FletchingTransitArray(&schema.value, &array.value, &out_schema.value,
                                    &out_array.value, text, sizeof(text)),
              0);
    EXPECT_STREQ(text, "");
    EXPECT_TRUE(is_released(schema.value));
    EXPECT_TRUE(is_released(array.value));
    EXPECT_EQ(FletchingProducerVerifyArray("cpu", "record_batch", &out_schema.value,
                                           &out_array.value, &message),
              0)
        << message.text;
    EXPECT_GT(FletchingTransitExported() - exported, 2);
    EXPECT_EQ(FletchingTransitReleased(), released);
  }
  EXPECT_EQ(FletchingTransitReleased() - released, FletchingTransitExported() - exported);
  FletchingProducerCounters counters{};
  FletchingProducerReadCounters(&counters);
  EXPECT_EQ(counters.live_arrays + counters.live_schemas, 0);
  EXPECT_EQ(counters.released, counters.exported);
  EXPECT_EQ(counters.double_released, 0);
}

TEST(Transit, RefusesNull) {
  FakeArray fake;
  ArrowSchema schema{};
  ArrowDeviceArray array{};
  const auto expect = [](const char* words, ArrowSchema* in, ArrowDeviceArray* in_array,
                         ArrowSchema* out, ArrowDeviceArray* out_array) {
    char text[64] = "";
    EXPECT_EQ(FletchingTransitArray(in, in_array, out, out_array, text, sizeof(text)), EINVAL);
    EXPECT_STREQ(text, words);
  };
  expect("schema is NULL", nullptr, &fake.array, &schema, &array);
  expect("array is NULL", &fake.schema, nullptr, &schema, &array);
  expect("out_schema is NULL", &fake.schema, &fake.array, nullptr, &array);
  expect("out_array is NULL", &fake.schema, &fake.array, &schema, nullptr);
  EXPECT_EQ(FletchingTransitArray(nullptr, nullptr, nullptr, nullptr, nullptr, 0), EINVAL);
  EXPECT_FALSE(is_released(fake.schema));
}

TEST(Transit, LeavesARefusedArrayToTheCaller) {
  FakeArray fake;
  fake.schema.format = nullptr;
  ArrowSchema schema{};
  ArrowDeviceArray array{};
  char text[16];
  EXPECT_EQ(FletchingTransitArray(&fake.schema, &fake.array, &schema, &array, text, sizeof(text)),
            EINVAL);
  EXPECT_STREQ(text, "/ schema.format") << "cut where the buffer ends";
  EXPECT_FALSE(is_released(fake.schema));
  EXPECT_FALSE(is_released(fake.array));
  EXPECT_TRUE(is_released(schema));
  EXPECT_TRUE(is_released(array));
}

}  // namespace
}  // namespace fletching::roundtrip
