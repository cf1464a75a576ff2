// SPDX-License-Identifier: Apache-2.0
//
// Schema and device array members that break a rule while the shape is correct.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "../stream_support.hpp"
#include "findings.hpp"
#include "fletching/metadata.hpp"
#include "fletching/validate.h"

namespace fletching::testing {
namespace {

using Stream = ArrowDeviceArrayStream;
using Found = std::vector<std::string>;

/// A map schema and a batch, for the callbacks of a stream.
struct Members {
  Members() {
    for (ArrowSchema* node : {&map, &entries, &key, &value}) {
      node->release = [](ArrowSchema* self) { self->release = nullptr; };
    }
    map.format = "+m";
    map.n_children = 1;
    map.children = &maps[0];
    entries.format = "+s";
    entries.name = "entries";
    entries.n_children = 2;
    entries.children = &pairs[0];
    key.format = value.format = "i";
    key.name = "key";
    value.name = "value";
    batch.array.release = [](ArrowArray* self) { self->release = nullptr; };
    batch.device_type = ARROW_DEVICE_CPU;
    batch.device_id = -1;
  }

  Found findings(std::int32_t level = FLETCHING_VALIDATE_SHAPE) {
    Findings found;
    const FletchingValidateOptions options = found.options(level);
    Stream stream{batch.device_type == 0 ? ARROW_DEVICE_CPU : batch.device_type,
                  [](Stream* self, ArrowSchema* out) {
                    *out = static_cast<Members*>(self->private_data)->map;
                    return 0;
                  },
                  [](Stream* self, ArrowDeviceArray* out) {
                    *out = static_cast<Members*>(self->private_data)->batch;
                    return 0;
                  },
                  [](Stream*) -> const char* { return nullptr; },
                  [](Stream* self) { self->release = nullptr; },
                  this};
    EXPECT_EQ(FletchingValidateDeviceStream(&stream, &options, nullptr), 0);
    ArrowDeviceArray next{};
    stream.get_next(&stream, &next);
    next.array.release(&next.array);
    ArrowSchema schema{};
    stream.get_schema(&stream, &schema);
    schema.release(&schema);
    stream.release(&stream);
    return found.list;
  }

  ArrowSchema map{};
  ArrowSchema entries{};
  ArrowSchema key{};
  ArrowSchema value{};
  ArrowSchema* maps[1] = {&entries};
  ArrowSchema* pairs[2] = {&key, &value};
  ArrowDeviceArray batch{};
};

/// A change and its finding.
struct Change {
  std::string finding;
  void (*make)(Members& members);
};

const Change kChanges[] = {
    {"schema.format-utf8 error producer get_schema[0].schema.children[0].children[0]",
     [](Members& m) { m.key.format = "\xff"; }},
    {"schema.name-utf8 error producer get_schema[0].schema",
     [](Members& m) { m.map.name = "\xff"; }},
    {"schema.flags-known warning producer get_schema[0].schema",
     [](Members& m) { m.map.flags = 8; }},
    {"schema.flags-fit-type warning producer get_schema[0].schema",
     [](Members& m) { m.map.flags = ARROW_FLAG_DICTIONARY_ORDERED; }},
    {"schema.flags-fit-type warning producer get_schema[0].schema.children[0]",
     [](Members& m) { m.entries.flags = ARROW_FLAG_MAP_KEYS_SORTED; }},
    {"metadata.encoding error producer get_schema[0].schema",
     [](Members& m) { m.map.metadata = "\xff\xff\xff\xff"; }},
    {"schema.extension-keys error producer get_schema[0].schema",
     [](Members& m) {
       static const std::string block = encode_metadata({{"ARROW:extension:metadata", ""}}).value();
       m.map.metadata = block.c_str();
     }},
    {"format.map-names warning producer get_schema[0].schema",
     [](Members& m) { m.value.name = "item"; }},
    {"device-array.device-id-convention warning producer get_next[0].array",
     [](Members& m) { m.batch.device_id = 0; }},
    {"device-array.reserved-zero error producer get_next[0].array",
     [](Members& m) { m.batch.reserved[2] = 1; }},
    {"sync-event.null-where-none error producer get_next[0].array",
     [](Members& m) { m.batch.sync_event = &m; }},
};

TEST(MembersTest, ReportsEachChange) {
  EXPECT_EQ(Members().findings(), Found{});
  for (const Change& change : kChanges) {
    Members members;
    change.make(members);
    EXPECT_EQ(members.findings(), Found{change.finding});
    EXPECT_EQ(members.findings(FLETCHING_VALIDATE_PROTOCOL), Found{}) << change.finding;
  }
}

TEST(MembersTest, ReportsUnsetDeviceType) {
  Members members;
  members.batch.device_type = 0;
  EXPECT_EQ(members.findings(),
            (Found{"device-array.device-type-set error producer get_next[0].array",
                   "device-stream.one-device-type warning producer get_next[0].array"}));
}

TEST(MembersTest, DoesNotReadReleasedChild) {
  Members members;
  members.entries.release = nullptr;
  members.entries.children = reinterpret_cast<ArrowSchema**>(1);
  EXPECT_EQ(members.findings(), Found{});
}

TEST(MembersTest, DoesNotReadChildrenOfImpossibleCount) {
  Members members;
  members.entries.n_children = INT64_MAX;
  members.entries.children = reinterpret_cast<ArrowSchema**>(1);
  EXPECT_EQ(members.findings(), Found{});
}

TEST(MembersTest, AcceptsExtensionAndSortedMap) {
  Members members;
  const std::string block =
      encode_metadata({{"ARROW:extension:metadata", ""}, {"ARROW:extension:name", "a"}}).value();
  members.map.metadata = block.c_str();
  members.map.flags = ARROW_FLAG_NULLABLE | ARROW_FLAG_MAP_KEYS_SORTED;
  EXPECT_EQ(members.findings(), Found{});
}

}  // namespace
}  // namespace fletching::testing
