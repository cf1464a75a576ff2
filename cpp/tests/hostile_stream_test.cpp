// SPDX-License-Identifier: Apache-2.0
//
// Streams of the hostile peer through our readers and adapters, and streams of ours in its hands.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fletching/owner.hpp"
#include "fletching/stream.hpp"
#include "fletching/stream_adapters.hpp"
#include "fletching/stream_producer.hpp"
#include "hostile.hpp"

namespace fletching::testing {
namespace {

constexpr std::size_t kBatches = 3;

// The peer's int32 array of 1, 2, 3; its account has to be settled too.
DeviceArray good_array() {
  ArrowSchema schema;
  ArrowDeviceArray array;
  EXPECT_EQ(FletchingHostileExportArray("array.good-children", &schema, &array, nullptr), 0);
  const Schema unused(&schema);
  return DeviceArray(&array);
}

Schema good_schema() {
  ArrowSchema schema;
  EXPECT_EQ(FletchingHostileExportSchema("schema.good-children", &schema, nullptr), 0);
  return Schema(&schema);
}

struct Outcome {
  std::optional<Error> error;
  std::size_t batches = 0;
};

// Everything that the reader returns is kept until stream: released: expected a live stream.
template <class Raw>
Outcome read_all(Owner<Raw> stream, Options options = {}) {
  StreamReader<Raw> reader(std::move(stream), std::move(options));
  const Result<Schema> schema = reader.schema();
  if (!schema) return {schema.error()};
  std::vector<typename StreamReader<Raw>::batch_type> batches;
  for (auto& batch : reader) {
    if (!batch) {
      // Over from here on, whatever the stream would return.
      EXPECT_FALSE(reader.next().has_value());
      return {batch.error(), batches.size()};
    }
    batches.push_back(*std::move(batch));
  }
  EXPECT_FALSE(reader.next().has_value());
  reader.release();
  return {std::nullopt, batches.size()};
}

void check(const HostileCase& played, const Outcome& outcome) {
  check_outcome(played, outcome.error);
  if (!outcome.error) {
    EXPECT_EQ(outcome.batches, played.is("stream.empty") ? 0 : kBatches) << played.name;
  }
}

template <class Raw>
Owner<Raw> open(const HostileCase& played);
template <>
ArrayStream open(const HostileCase& played) {
  ArrowArrayStream raw;
  EXPECT_EQ(FletchingHostileExportStream(played.c_str(), &raw, nullptr), 0);
  return ArrayStream(&raw);
}
template <>
DeviceArrayStream open(const HostileCase& played) {
  ArrowDeviceArrayStream raw;
  EXPECT_EQ(FletchingHostileExportDeviceStream(played.c_str(), &raw, nullptr), 0);
  return DeviceArrayStream(&raw);
}

TEST(HostileStreams, AreReadAsTheCatalogueSays) {
  for (const HostileCase& played : hostile_cases(kFletchingHostileStream)) {
    check(played, read_all(open<ArrowArrayStream>(played)));
    finish(played);
    check(played, read_all(open<ArrowDeviceArrayStream>(played)));
    finish(played);
  }
}

TEST(HostileStreams, OfDevicesAreReadAsTheCatalogueSays) {
  for (const HostileCase& played : hostile_cases(kFletchingHostileDeviceStream)) {
    check(played, read_all(open<ArrowDeviceArrayStream>(played)));
    finish(played);
  }
}

// Strict is stricter: what was tolerated is refused, with its rule.
TEST(HostileStreams, StrictRefusesWhatIsTolerated) {
  for (const HostileCase& played : hostile_cases(kFletchingHostileDeviceStream)) {
    if (played.outcome != kFletchingHostileTolerated) continue;
    const Outcome outcome = read_all(open<ArrowDeviceArrayStream>(played), {.strict = true});
    const std::string message = outcome.error ? outcome.error->message() : "";
    EXPECT_NE(message.find("rule"), std::string::npos) << played.name << ": " << message;
    finish(played);
  }
}

Outcome read_through_adapters(ArrayStream stream) {
  Result<DeviceArrayStream> device = to_device_stream(std::move(stream));
  if (!device) return {device.error()};
  Result<ArrayStream> plain = to_array_stream(*std::move(device));
  if (!plain) return {plain.error()};
  return read_all(*std::move(plain));
}

// There and back: the same result.
TEST(HostileStreams, GoThroughTheAdapters) {
  for (const HostileCase& played : hostile_cases(kFletchingHostileStream)) {
    check(played, read_through_adapters(open<ArrowArrayStream>(played)));
    finish(played);
  }
}

TEST(HostileStreams, UnreadAreReleased) {
  for (const HostileCase& played : hostile_cases(kFletchingHostileStream)) {
    {
      const ArrayStreamReader reader(open<ArrowArrayStream>(played));
    }
    {
      const DeviceArrayStreamReader reader(open<ArrowDeviceArrayStream>(played));
    }
    finish(played);
  }
}

// Returns `left` arrays.
struct Arrays {
  std::size_t left = kBatches;
  Result<DeviceArray> operator()() {
    if (left == 0) return DeviceArray();
    --left;
    return good_array();
  }
};

TEST(HostileStreams, OfOursSurviveRudeConsumers) {
  for (const HostileCase& played : hostile_cases(kFletchingHostileStreamConsumer)) {
    FletchingMessage message;
    Result<DeviceArrayStream> device =
        make_device_stream(good_schema(), ARROW_DEVICE_CPU, Arrays());
    ASSERT_TRUE(device);
    EXPECT_EQ(
        FletchingHostileConsumeDeviceStream(played.c_str(), kBatches, device->get(), &message), 0)
        << message.text;
    finish(played);

    device = make_device_stream(good_schema(), ARROW_DEVICE_CPU, Arrays());
    ASSERT_TRUE(device);
    Result<ArrayStream> plain = to_array_stream(*std::move(device));
    ASSERT_TRUE(plain);
    EXPECT_EQ(FletchingHostileConsumeStream(played.c_str(), kBatches, plain->get(), &message), 0)
        << message.text;
    finish(played);
  }
}

}  // namespace
}  // namespace fletching::testing
