// SPDX-License-Identifier: Apache-2.0
//
// Children moved out of their parent, and the lifetime of the events.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "alloc_failure.hpp"
#include "fletching/array_builder.hpp"
#include "fletching/owner.hpp"
#include "foreign.hpp"

namespace fletching {
namespace {

using testing::code_of;
using testing::fail_each_allocation;
using testing::foreign_array;
using testing::foreign_device_array;
using testing::Injection;
using testing::Log;

DeviceArray own(ArrowDeviceArray raw) { return DeviceArray(&raw); }
Array own(ArrowArray raw) { return Array(&raw); }

TEST(TakeChild, RejectsMissingChildWithMessage) {
  Log log;
  DeviceArray array = own(foreign_device_array(&log, "a", 3));
  const auto message = [&](int64_t index) { return array.take_child(index).error().message(); };
  EXPECT_EQ(message(3), "take_child: child 3: no such child: expected an index below 3");
  EXPECT_EQ(message(-1), "take_child: child -1: no such child: expected an index below 3");
  DeviceArray child = array.take_child(1).value();
  EXPECT_EQ(message(1), "take_child: child 1: released or moved out: expected a live child");
  ArrowArray* const second = std::exchange(array->array.children[2], nullptr);
  EXPECT_EQ(message(2), "take_child: child 2: NULL: expected a struct");
  array->array.children[2] = second;
  EXPECT_EQ(array.take_dictionary().error().message(),
            "take_dictionary: NULL: expected a dictionary");
  array.release();
  EXPECT_EQ(message(0), "take_child: parent is released: expected a live parent");
  EXPECT_EQ(code_of(array.take_dictionary()), EINVAL);
}

TEST(TakeChild, TakesDictionary) {
  Log log;
  DeviceArray array = own(foreign_device_array(&log, "a", 0, true));
  DeviceArray dictionary = array.take_dictionary().value();
  EXPECT_EQ(array.take_dictionary().error().message(),
            "take_dictionary: released or moved out: expected a live dictionary");
  array.release();
  EXPECT_EQ(log, Log{});
  dictionary.release();
  EXPECT_EQ(log, (Log{"ad", "a", "event"}));
}

TEST(TakeChild, DeviceChildHasDeviceAndEvent) {
  Log log;
  DeviceArray array = own(foreign_device_array(&log, "a", 2));
  array->reserved[0] = 5;
  const DeviceArray child = array.take_child(0).value();
  EXPECT_EQ(child.device_type(), ARROW_DEVICE_CUDA);
  EXPECT_EQ(child.device_id(), 3);
  EXPECT_EQ(child->sync_event, array->sync_event);
  EXPECT_EQ(child->reserved[0], 0);
}

TEST(TakeChild, LastChildReleaseDestroysEvent) {
  Log log;
  DeviceArray array = own(foreign_device_array(&log, "a", 3));
  DeviceArray first = array.take_child(0).value();
  DeviceArray last = array.take_child(2).value();
  array.release();
  EXPECT_EQ(log, Log{"a1"});  // the data of a child that was not taken is released immediately
  first.release();
  EXPECT_EQ(log, (Log{"a1", "a0"}));
  last.release();
  EXPECT_EQ(log, (Log{"a1", "a0", "a2", "a", "event"}));
}

TEST(TakeChild, ParentReleaseDestroysEvent) {
  Log log;
  DeviceArray array = own(foreign_device_array(&log, "a", 2));
  EXPECT_TRUE(array.take_child(0).ok());
  EXPECT_EQ(log, Log{"a0"});
  DeviceArray moved = std::move(array);
  moved.release();
  EXPECT_EQ(log, (Log{"a0", "a1", "a", "event"}));
}

TEST(TakeChild, TakesGrandchildFromTakenChild) {
  Log log;
  ArrowDeviceArray raw = foreign_device_array(&log, "a", 1);
  auto* node = static_cast<testing::ForeignArray*>(raw.array.private_data);
  node->children[0].release(node->children.data());
  node->children[0] = foreign_array(&log, "b", 2);
  log.clear();
  DeviceArray array(&raw);
  DeviceArray child = array.take_child(0).value();
  DeviceArray grandchild = child.take_child(1).value();
  array.release();
  child.release();
  EXPECT_EQ(log, (Log{"b0", "b"}));  // only structs with the event are deferred
  EXPECT_EQ(grandchild->sync_event, node->event.get());
  grandchild.release();
  EXPECT_EQ(log, (Log{"b0", "b", "b1", "a", "event"}));
}

/// Logs "own event" when it is destroyed.
std::shared_ptr<void> own_event(Log* log) {
  return {log, [](Log* log) { log->emplace_back("own event"); }};
}

/// Adds a hook to an array that holds the only reference to an event owned by `owner`.
void hook_event(std::shared_ptr<void> owner, ArrowArray* array) {
  auto* const event = new detail::SharedObject<std::shared_ptr<void>>(std::move(owner));
  detail::EventHook::set(new detail::EventHook{{}, {detail::Share(event)}}, array);
}

/// Gives child `index` of a foreign array a separate event, with the hook of export_with_event.
void hook_own_event(Log* log, ArrowArray& parent, size_t index) {
  hook_event(own_event(log), parent.children[index]);
}

// The hook of the child's event does not keep the parent's event alive, in either order.
TEST(TakeChild, ChildWithOwnEventKeepsParentEvent) {
  for (const int64_t first : {0, 1}) {
    Log log;
    ArrowDeviceArray raw = foreign_device_array(&log, "a", 2);
    hook_own_event(&log, raw.array, 1);
    DeviceArray array(&raw);
    DeviceArray one = array.take_child(first).value();
    DeviceArray other = array.take_child(1 - first).value();
    DeviceArray& hooked = first == 1 ? one : other;
    DeviceArray& plain = first == 1 ? other : one;
    EXPECT_EQ(hooked->sync_event, array->sync_event);
    array.release();
    plain.release();
    EXPECT_EQ(log, Log{"a0"}) << "the parent's event is destroyed under the child " << first;
    hooked.release();
    EXPECT_EQ(log, (Log{"a0", "a1", "own event", "a", "event"}));
  }
}

TEST(TakeChild, ChildWithOwnEventSharesExportedParentEvent) {
  Log log;
  ArrowDeviceArray raw = foreign_device_array(&log, "a", 2);
  hook_own_event(&log, raw.array, 1);
  const auto exported = std::make_shared<int>(1);
  hook_event(exported, &raw.array);
  raw.sync_event = exported.get();
  DeviceArray array(&raw);
  DeviceArray child = array.take_child(1).value();
  array.release();
  EXPECT_EQ(exported.use_count(), 2) << "the child has no share of the parent's event";
  child.release();
  EXPECT_EQ(exported.use_count(), 1);
}

// An array made by the library may have a foreign child, which holds no reference to the block.
TEST(TakeChild, ForeignChildOfBuiltParentKeepsEvent) {
  Log log;
  int event = 0;
  auto builder = build_array({.arrays = 1, .buffers = 0}, own_event(&log)).value();
  builder.set(builder.root(), {}, {});
  builder.set(builder.add_children(builder.root(), 1)[0], {}, {});
  DeviceArray array = builder.finish(ARROW_DEVICE_CUDA, 0, &event).value();
  ArrowArray* const below = array->array.children[0];
  below->release(below);
  *below = foreign_array(&log, "a");
  DeviceArray child = array.take_child(0).value();
  array.release();
  EXPECT_EQ(log, Log{}) << "the event is destroyed, and the child has it";
  child.release();
  EXPECT_EQ(log, (Log{"a", "own event"}));
}

TEST(TakeChild, WithoutEventDoesNotAllocate) {
  Log log;
  DeviceArray array = own(foreign_device_array(&log, "a", 2));
  void* const event = std::exchange(array->sync_event, nullptr);
  const int64_t before = testing::allocations();
  DeviceArray child = array.take_child(0).value();
  EXPECT_EQ(testing::allocations(), before);
  array.release();
  EXPECT_EQ(log, (Log{"a1", "a", "event"}));
  EXPECT_NE(event, nullptr);
}

TEST(TakeChild, AllocationFailureReturnsEnomem) {
  const int64_t failed = fail_each_allocation([](Injection& inject) {
    Log log;
    {
      DeviceArray array = own(foreign_device_array(&log, "a", 2));
      Result<DeviceArray> child = inject([&] { return array.take_child(0); });
      EXPECT_EQ(code_of(child), inject.fired() ? ENOMEM : 0);
      if (!child) {
        EXPECT_EQ(array->array.release, &testing::ForeignArray::release);
        EXPECT_NE(array->array.children[0]->release, nullptr);
      }
    }
    EXPECT_EQ(log.size(), 4U);
    EXPECT_EQ(log.back(), "event");
  });
  EXPECT_EQ(failed, 3);
}

TEST(TakeChild, RejectsInvalidChildCount) {
  for (const int64_t count : {INT64_MAX, int64_t{INT32_MAX}, int64_t{-1}}) {
    Log log;
    DeviceArray array = own(foreign_device_array(&log, "a", 1));
    int64_t& n_children = array->array.n_children;
    const int64_t before = std::exchange(n_children, count);
    EXPECT_TRUE(array.children().empty());
    EXPECT_EQ(array.take_child(0).error().message(),
              "take_child: child 0: no such child: expected an index below 0");
    n_children = before;
    EXPECT_TRUE(array.take_child(0).ok());
    n_children = count;  // its release is already deferred: the remaining children are not searched
    array.release();
    EXPECT_EQ(log, (Log{"a0", "a", "event"}));
  }
}

TEST(TakeChild, AllocationFailureInErrorTextReturnsEnomem) {
  const int64_t failed = fail_each_allocation([](Injection& inject) {
    Log log;
    Array array = own(foreign_array(&log, "a", 1));
    const Result<Array> child = inject([&] { return array.take_child(9); });
    EXPECT_EQ(code_of(child), inject.fired() ? ENOMEM : EINVAL);
  });
  EXPECT_GT(failed, 0);
}

TEST(TakeChild, ReleasesChildrenOnManyThreads) {
  constexpr size_t kChildren = 16;
  Log logs[kChildren + 1];
  ArrowDeviceArray raw = foreign_device_array(logs, "a", kChildren);
  auto* node = static_cast<testing::ForeignArray*>(raw.array.private_data);
  for (size_t i = 0; i < kChildren; ++i) {
    static_cast<testing::ForeignArray*>(node->children[i].private_data)->log = &logs[i + 1];
  }
  DeviceArray array(&raw);
  std::vector<std::thread> threads;
  threads.reserve(kChildren);
  for (size_t i = 0; i < kChildren; ++i) {
    threads.emplace_back(
        [child = array.take_child(static_cast<int64_t>(i)).value()]() mutable { child.release(); });
  }
  array.release();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(logs[0], (Log{"a", "event"}));
  for (size_t i = 0; i < kChildren; ++i) EXPECT_EQ(logs[i + 1], Log{"a" + std::to_string(i)});
}

// The event is kept even if another object was attached to the parent last; a linker may have
// folded the two release callbacks into one.
TEST(TakeChild, ParentWithAttachedObjectKeepsEvent) {
  Log log;
  DeviceArray array = own(foreign_device_array(&log, "a", 2));
  const auto attached = std::make_shared<int>(0);
  ASSERT_TRUE(attach(array, std::shared_ptr<void>(attached)).ok());
  DeviceArray child = array.take_child(0).value();
  array.release();
  EXPECT_EQ(log, Log{"a1"});
  EXPECT_EQ(attached.use_count(), 2)
      << "it is destroyed with the parent, whose release is deferred";
  child.release();
  EXPECT_EQ(log, (Log{"a1", "a0", "a", "event"}));
  EXPECT_EQ(attached.use_count(), 1);
}

// The array is deferred once, with any number of attached objects between two children.
TEST(TakeChild, AlternatesWithAttachedObjects) {
  constexpr int kObjects = 1 << 17;
  Log log;
  DeviceArray array = own(foreign_device_array(&log, "a", 2, true));
  const auto object = std::make_shared<int>(0);
  std::vector<DeviceArray> children;
  for (int64_t i = 0; i < 2; ++i) {
    children.push_back(array.take_child(i).value());
    for (int j = 0; j < kObjects; ++j) ASSERT_TRUE(attach(array, object));
  }
  children.push_back(array.take_dictionary().value());
  array.release();
  EXPECT_EQ(object.use_count(), 1)
      << "no child prolongs the life of what is attached to the parent";
  EXPECT_EQ(log, Log{});
  for (DeviceArray& child : children) child.release();
  EXPECT_EQ(log, (Log{"a0", "a1", "ad", "a", "event"}));
}

TEST(TakeChild, ReleasesDictionaryBeforeTakenChild) {
  Log log;
  DeviceArray array = own(foreign_device_array(&log, "a", 1, true));
  DeviceArray child = array.take_child(0).value();
  array.release();
  EXPECT_EQ(log, Log{"ad"});
  child.release();
  EXPECT_EQ(log, (Log{"ad", "a0", "a", "event"}));
}

// When the parent's release is deferred, the other children are moved out before they are released.
TEST(TakeChild, MovesRemainingChildrenOutBeforeRelease) {
  static bool was_in_parent = false;
  static ArrowArray* in_parent = nullptr;
  Log log;
  DeviceArray array = own(foreign_device_array(&log, "a", 2));
  in_parent = array->array.children[1];
  static void (*original)(ArrowArray*) = in_parent->release;
  in_parent->release = [](ArrowArray* self) {
    was_in_parent = self == in_parent;
    original(self);
  };
  const DeviceArray child = array.take_child(0).value();
  array.release();
  EXPECT_EQ(log, Log{"a1"});
  EXPECT_FALSE(was_in_parent);
}

}  // namespace
}  // namespace fletching
