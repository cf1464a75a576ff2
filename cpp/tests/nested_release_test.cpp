// SPDX-License-Identifier: Apache-2.0
//
// Owners that own owners: released at any depth without recursion, in the order that recursion
// would have.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "fletching/array_builder.hpp"
#include "fletching/owner.hpp"
#include "fletching/schema_builder.hpp"
#include "fletching/shared.hpp"
#include "foreign.hpp"

namespace fletching {
namespace {

using testing::foreign_array;
using testing::foreign_device_array;
using testing::Log;

// Recursion would overflow any stack.
constexpr int kLevels = 1 << 18;

/// Logs a name when it is destroyed.
class DestructionLogger {
 public:
  DestructionLogger(Log* log, std::string name) : log_(log), name_(std::move(name)) {}
  DestructionLogger(DestructionLogger&& other) noexcept
      : log_(std::exchange(other.log_, nullptr)), name_(std::move(other.name_)) {}
  DestructionLogger(const DestructionLogger&) = delete;
  DestructionLogger& operator=(const DestructionLogger&) = delete;
  DestructionLogger& operator=(DestructionLogger&&) = delete;
  ~DestructionLogger() {
    if (log_ != nullptr) log_->push_back(name_);
  }

 private:
  Log* log_;
  std::string name_;
};

Array leaf(Log* log, const std::string& name) {
  ArrowArray raw = foreign_array(log, name);
  return Array(&raw);
}

TEST(NestedRelease, OwnersAttachedToOwners) {
  Log log;
  DeviceArray array = make_cpu_array({}, {nullptr}, leaf(&log, "innermost")).value();
  for (int i = 0; i < kLevels; ++i) {
    DeviceArray outer = make_cpu_array({}, {nullptr}, std::make_unique<int>(i)).value();
    ASSERT_TRUE(attach(outer, std::move(array)));
    array = std::move(outer);
  }
  array.release();
  EXPECT_EQ(log, Log{"innermost"});
}

TEST(NestedRelease, OwnersInArraysWithoutChildren) {
  Log log;
  DeviceArray array = make_cpu_array({}, {nullptr}, leaf(&log, "innermost")).value();
  for (int i = 0; i < kLevels; ++i) {
    array = make_cpu_array({}, {nullptr}, std::move(array)).value();
  }
  array.release();
  EXPECT_EQ(log, Log{"innermost"});
}

TEST(NestedRelease, OwnersInBuilderBlocks) {
  Log log;
  Array array = leaf(&log, "innermost");
  for (int i = 0; i < kLevels; ++i) {
    auto builder = build_array({.buffers = 1}, std::move(array)).value();
    builder.set(builder.root(), {}, {nullptr});
    array = builder.finish().value();
  }
  array.release();
  EXPECT_EQ(log, Log{"innermost"});
}

TEST(NestedRelease, ViewsOfViewsWithAttachedObjects) {
  Log log;
  const auto object = std::make_shared<int>(1);
  {
    ArrowDeviceArray raw = foreign_device_array(&log, "a", 1);
    DeviceArray array(&raw);
    for (int i = 0; i < kLevels; ++i) {
      ASSERT_TRUE(attach(array, object));
      array = share(std::move(array)).value().view().value();
    }
    EXPECT_EQ(object.use_count(), 1 + kLevels);
  }
  EXPECT_EQ(object.use_count(), 1);
  EXPECT_EQ(log, (Log{"a0", "a", "event"}));
}

TEST(NestedRelease, SecondHookCallHasNoEffect) {
  const auto object = std::make_shared<int>(1);
  Schema schema = make_schema({.format = "i"}).value();
  ASSERT_TRUE(attach(schema, object));
  ArrowSchema raw;
  schema.move_to(&raw);
  const auto release = raw.release;
  release(&raw);
  EXPECT_EQ(object.use_count(), 1);
  release(&raw);
  EXPECT_EQ(object.use_count(), 1);
}

TEST(NestedRelease, SharesAttachedToSchemaViews) {
  Schema schema = make_schema({.format = "i"}).value();
  for (int i = 0; i < kLevels; ++i) {
    const SharedSchema shared = share(std::move(schema)).value();
    schema = shared.view().value();
    ASSERT_TRUE(attach(schema, SharedSchema(shared)));
  }
  schema.release();
  EXPECT_TRUE(schema.is_released());
}

TEST(NestedRelease, GrandchildrenInBlock) {
  const auto object = std::make_shared<int>(1);
  auto builder =
      build_array({.arrays = kLevels, .buffers = kLevels + 1}, std::shared_ptr<int>(object))
          .value();
  ArrowArray* array = &builder.root();
  for (int i = 0; i < kLevels; ++i) {
    builder.set(*array, {}, {nullptr});
    array = builder.add_children(*array, 1).begin();
  }
  builder.set(*array, {}, {nullptr});
  builder.finish().value().release();
  EXPECT_EQ(object.use_count(), 1);
}

TEST(NestedRelease, KeepsOrderOfNestedCalls) {
  Log log;
  Array inner = leaf(&log, "inner");
  ASSERT_TRUE(attach(inner, DestructionLogger(&log, "of inner")));
  Array shared_leaf = leaf(&log, "shared");
  ASSERT_TRUE(attach(shared_leaf, DestructionLogger(&log, "of shared")));

  Array outer = leaf(&log, "outer");
  ASSERT_TRUE(attach(outer, DestructionLogger(&log, "first")));
  ASSERT_TRUE(attach(outer, std::move(inner)));
  ASSERT_TRUE(attach(outer, DestructionLogger(&log, "second")));
  ASSERT_TRUE(attach(outer, share(std::move(shared_leaf)).value()));
  ASSERT_TRUE(attach(outer, DestructionLogger(&log, "third")));
  outer.release();
  EXPECT_EQ(log,
            (Log{"outer", "first", "inner", "of inner", "second", "shared", "of shared", "third"}));
}

TEST(NestedRelease, ReleaseInDestructorCompletesBeforeReturn) {
  struct Holder {
    Log* log;
    Array array;
    Holder(Log* to, Array&& inner) noexcept : log(to), array(std::move(inner)) {}
    Holder(Holder&& other) noexcept
        : log(std::exchange(other.log, nullptr)), array(std::move(other.array)) {}
    Holder(const Holder&) = delete;
    Holder& operator=(const Holder&) = delete;
    Holder& operator=(Holder&&) = delete;
    ~Holder() {
      if (log == nullptr) return;
      array.release();
      log->emplace_back("unmapped");
    }
  };
  Log log;
  Array inner = leaf(&log, "inner");
  ASSERT_TRUE(attach(inner, leaf(&log, "below")));
  Array outer = leaf(&log, "outer");
  ASSERT_TRUE(attach(outer, Holder(&log, std::move(inner))));
  outer.release();
  EXPECT_EQ(log, (Log{"outer", "inner", "below", "unmapped"}));
}

}  // namespace
}  // namespace fletching
