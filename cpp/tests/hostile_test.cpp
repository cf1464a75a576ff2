// SPDX-License-Identifier: Apache-2.0
//
// Schemas and arrays of the hostile peer, and consumers of ours that it plays: each case ends in
// what the catalogue says, without a crash or a leak.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "fletching/c_api.h"
#include "fletching/format.hpp"
#include "fletching/metadata.hpp"
#include "fletching/owner.hpp"
#include "fletching/shared.hpp"
#include "fletching/sync_event.hpp"
#include "hostile.hpp"

namespace fletching::testing {
namespace {

// Reads what there is to read in a schema, children included.
Status read_schema(const ArrowSchema& schema) {
  const Result<Format> format = parse_format(schema.format);
  if (!format) return Error(format.error());
  if (schema.metadata != nullptr) {
    const Result<MetadataView> metadata = MetadataView::read(schema.metadata);
    if (!metadata) return Error(metadata.error());
  }
  for (std::int64_t i = 0; i < schema.n_children; ++i) {
    Status child = read_schema(*schema.children[i]);
    if (!child) return child;
  }
  return {};
}

// A view checks the shape, so that the rest can be walked.
std::optional<Error> share_and_read(Schema schema) {
  const Result<SharedSchema> shared = share(std::move(schema));
  if (!shared) return shared.error();
  const Result<Schema> view = shared->view();
  if (!view) return view.error();
  const Status read = read_schema(**view);
  if (!read) return read.error();
  return std::nullopt;
}

TEST(Hostile, SchemasAreReadOrRefused) {
  for (const HostileCase& played : hostile_cases(kFletchingHostileSchema)) {
    ArrowSchema raw;
    ASSERT_EQ(FletchingHostileExportSchema(played.c_str(), &raw, nullptr), 0);
    check_outcome(played, share_and_read(Schema(&raw)));
    finish(played);
  }
}

TEST(Hostile, SchemasAreMovedAndReleasedUnread) {
  for (const HostileCase& played : hostile_cases(kFletchingHostileSchema)) {
    ArrowSchema raw;
    ASSERT_EQ(FletchingHostileExportSchema(played.c_str(), &raw, nullptr), 0);
    Schema first(&raw);
    Schema second(std::move(first));
    second.release();
    second.release();
    EXPECT_TRUE(second.is_released());
    finish(played);
  }
}

TEST(Hostile, ArraysAreMovedAndReleasedUnread) {
  for (const HostileCase& played : hostile_cases(kFletchingHostileArray)) {
    ArrowSchema raw_schema;
    ArrowDeviceArray raw;
    ASSERT_EQ(FletchingHostileExportArray(played.c_str(), &raw_schema, &raw, nullptr), 0);
    Schema(&raw_schema).release();
    DeviceArray first(&raw);
    ArrowDeviceArray moved;
    first.move_to(&moved);
    FletchingDeviceArrayRelease(&moved);
    EXPECT_EQ(FletchingDeviceArrayIsReleased(&moved), 1);
    finish(played);
  }
}

// Columns and children: of a child that is wrong an error, and the parent stays whole. Only the two
// children that there are can be asked for, whatever the count says.
TEST(Hostile, ArraysAreSharedAndTakenApartOrRefused) {
  for (const HostileCase& played : hostile_cases(kFletchingHostileArray)) {
    for (const bool shares : {true, false}) {
      ArrowSchema raw_schema;
      ArrowDeviceArray raw;
      ASSERT_EQ(FletchingHostileExportArray(played.c_str(), &raw_schema, &raw, nullptr), 0);
      Schema(&raw_schema).release();
      DeviceArray array(&raw);
      std::vector<DeviceArray> parts;
      const auto keep = [&](Result<DeviceArray> part) {
        if (!part) return false;
        parts.push_back(*std::move(part));
        return true;
      };
      if (shares) {
        Result<Shared<ArrowDeviceArray>> shared = Shared<ArrowDeviceArray>::make(std::move(array));
        EXPECT_EQ(shared.ok(), !played.is("array.released"));
        for (const std::int64_t index : {-1, 0, 1}) {
          if (shared) keep(shared->column(index));
        }
      } else {
        for (const std::int64_t index : {-1, 1, 1, 0}) keep(array.take_child(index));
        array.release();
      }
      const bool expects_both = played.is("array.good-children");
      EXPECT_TRUE(!expects_both || parts.size() == 2) << played.name;
      parts.clear();
      finish(played);
    }
  }
}

DeviceArray two_columns() {
  ArrowSchema schema;
  ArrowDeviceArray array;
  EXPECT_EQ(FletchingHostileExportArray("array.good-children", &schema, &array, nullptr), 0);
  Schema(&schema).release();
  return DeviceArray(&array);
}

// Ours is a view, with and without an object, the last one or with a column of it elsewhere.
void consume(const HostileCase& played, bool is_attached, bool is_last) {
  Result<SharedDeviceArray> shared = share(two_columns());
  Result<DeviceArray> view = shared->view();
  ASSERT_TRUE(view);
  const Result<DeviceArray> column =
      is_last ? Result<DeviceArray>(DeviceArray()) : shared->column(1);
  ASSERT_TRUE(column);
  if (is_attached) {
    EXPECT_TRUE(attach(*view, std::make_shared<int>(1)));
  }
  if (is_last) shared = Error(EINVAL, "dropped");
  FletchingMessage message;
  ArrowDeviceArray raw;
  view->move_to(&raw);
  EXPECT_EQ(FletchingHostileConsumeArray(played.c_str(), &raw, &message), 0) << message.text;
}

TEST(Hostile, ConsumersOfArrays) {
  for (const HostileCase& played : hostile_cases(kFletchingHostileArrayConsumer)) {
    for (const bool is_attached : {false, true}) {
      for (const bool is_last : {false, true}) {
        consume(played, is_attached, is_last);
        finish(played);
      }
    }
  }
}

// An event without a way to wait is an error of every operation, never skipped. So is the event
// of an array that is released.
TEST(Hostile, EventsAreWaitedForOrRefused) {
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

}  // namespace
}  // namespace fletching::testing
