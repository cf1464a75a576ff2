// SPDX-License-Identifier: Apache-2.0
//
// Events and strict streams of the hostile peer. The conformance suite runs the other cases.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>

#include "fletching/owner.hpp"
#include "fletching/stream.hpp"
#include "fletching/sync_event.hpp"
#include "hostile.hpp"

namespace fletching::testing {
namespace {

// Every operation returns an error for an event that cannot be waited on, and for the event of a
// released array. It is never skipped.
TEST(Hostile, UnwaitableEventsReturnErrors) {
  int refused = 0;
  for (const HostileCase& played : hostile_cases(kFletchingHostileArray)) {
    ArrowSchema raw_schema;
    ArrowDeviceArray raw;
    ASSERT_EQ(FletchingHostileExportArray(played.c_str(), &raw_schema, &raw, nullptr), 0);
    const Schema schema(&raw_schema);
    const DeviceArray array(&raw);
    const SyncEvent event(array);
    const bool expected = event.is_null();
    EXPECT_EQ(event.synchronize().ok(), expected) << played.name;
    EXPECT_EQ(event.wait_on({event.device_type(), nullptr}).ok(), expected) << played.name;
    EXPECT_EQ(event.ready().ok(), expected) << played.name;
    refused += expected ? 0 : 1;
  }
  EXPECT_EQ(refused, 3);
  finish({"array.*", 0, 0});
}

/// Reads to the end. Returns the error message, or an empty string.
std::string error_of(const HostileCase& played, Options options) {
  ArrowDeviceArrayStream raw;
  EXPECT_EQ(FletchingHostileExportDeviceStream(played.c_str(), &raw, nullptr), 0);
  DeviceArrayStreamReader reader(DeviceArrayStream(&raw), std::move(options));
  if (const Result<Schema> schema = reader.schema(); !schema) return schema.error().message();
  for (const Result<DeviceArray>& batch : reader) {
    if (!batch) return batch.error().message();
  }
  return {};
}

// A strict reader rejects the tolerated cases and names the rule.
TEST(Hostile, StrictStreamsRejectToleratedCases) {
  for (const HostileCase& played : hostile_cases(kFletchingHostileDeviceStream)) {
    if (played.outcome != kFletchingHostileTolerated) continue;
    const std::string message = error_of(played, {.strict = true});
    EXPECT_NE(message.find("rule"), std::string::npos) << played.name << ": " << message;
    finish(played);
  }
}

}  // namespace
}  // namespace fletching::testing
