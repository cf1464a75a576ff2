// The owners: moves, releases, children that are moved out, objects that are attached.
#include "fletching/owner.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "alloc_failure.hpp"
#include "foreign.hpp"

namespace fletching {
namespace {

using testing::code_of;
using testing::fail_each_allocation;
using testing::foreign_array;
using testing::foreign_device_array;
using testing::Injection;
using testing::Log;

template <class T>
constexpr bool kIsOwner =
    std::is_nothrow_move_constructible_v<T> && std::is_nothrow_move_assignable_v<T> &&
    !std::is_copy_constructible_v<T> && !std::is_copy_assignable_v<T> &&
    std::is_nothrow_destructible_v<T> && sizeof(T) == sizeof(typename T::raw_type);
static_assert(kIsOwner<Schema> && kIsOwner<Array> && kIsOwner<DeviceArray> &&
              kIsOwner<ArrayStream> && kIsOwner<DeviceArrayStream>);

// Writes its name down when it is destroyed.
struct Note {
  Log* log;
  std::string name;
  Note(Log* log, std::string name) : log(log), name(std::move(name)) {}
  Note(Note&& other) noexcept
      : log(std::exchange(other.log, nullptr)), name(std::move(other.name)) {}
  Note(const Note&) = delete;
  Note& operator=(const Note&) = delete;
  Note& operator=(Note&&) = delete;
  ~Note() {
    if (log != nullptr) log->push_back(name);
  }
};

bool is_all_zero(const ArrowDeviceArray& array) {
  const auto bytes = std::as_bytes(std::span(&array, 1));
  return std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

DeviceArray own(ArrowDeviceArray raw) { return DeviceArray(&raw); }
Array own(ArrowArray raw) { return Array(&raw); }

TEST(Owner, ANewOneIsReleasedAndZero) {
  const DeviceArray array;
  EXPECT_TRUE(array.is_released());
  EXPECT_FALSE(array);
  EXPECT_TRUE(is_all_zero(*array.get()));
}

TEST(Owner, OutGivesAZeroedSlotAndReleasesWhatWasThere) {
  Log log;
  DeviceArray array = own(foreign_device_array(&log, "a", 0));
  array->reserved[1] = 7;
  const ArrowDeviceArray* slot = array.out();
  EXPECT_EQ(log, (Log{"a", "event"}));
  EXPECT_TRUE(is_all_zero(*slot));
}

TEST(Owner, AssignmentReleasesWhatWasThere) {
  Log log;
  Array array = own(foreign_array(&log, "a"));
  array = own(foreign_array(&log, "b"));
  EXPECT_EQ(log, Log{"a"});
  Array* same = &array;
  array = std::move(*same);
  EXPECT_FALSE(array.is_released());
  array = Array();
  EXPECT_EQ(log, (Log{"a", "b"}));
}

TEST(Owner, AReleasedOneReadsAsEmpty) {
  Log log;
  DeviceArray array = own(foreign_device_array(&log, "a", 2));
  array.release();
  EXPECT_EQ(array.length(), 0);
  EXPECT_EQ(array.null_count(), 0);
  EXPECT_EQ(array.device_type(), 0);
  EXPECT_EQ(array.device_id(), -1);
  EXPECT_TRUE(array.children().empty());
  Schema schema;
  EXPECT_EQ(schema.format(), "");
  EXPECT_EQ(schema.name(), "");
  EXPECT_TRUE(schema.metadata().value().empty());
}

TEST(Owner, MalformedListsOfChildrenReadAsEmpty) {
  Log log;
  Array array = own(foreign_array(&log, "a", 1));
  const int64_t n = std::exchange(array->n_children, -1);
  EXPECT_TRUE(array.children().empty());
  array->n_children = n;
  ArrowArray** const children = std::exchange(array->children, nullptr);
  EXPECT_TRUE(array.children().empty());
  EXPECT_EQ(code_of(array.take_child(0)), EINVAL);
  array->children = children;
  EXPECT_EQ(array.children().size(), 1U);
}

TEST(Owner, AccessorsReadTheFields) {
  Log log;
  DeviceArray array = own(foreign_device_array(&log, "a", 2));
  EXPECT_EQ(array.length(), 1);
  EXPECT_EQ(array.null_count(), 0);
  EXPECT_EQ(array.device_type(), ARROW_DEVICE_CUDA);
  EXPECT_EQ(array.device_id(), 3);
  EXPECT_EQ(array.children()[1], array->array.children[1]);
}

TEST(Owner, TextsThatAreNullReadAsEmpty) {
  ArrowSchema raw{};
  raw.release = [](ArrowSchema* self) { self->release = nullptr; };
  const Schema schema(&raw);
  EXPECT_EQ(schema.format(), "");
  EXPECT_EQ(schema.name(), "");
  EXPECT_TRUE(schema.metadata().value().empty());
}

// --- Moving children out ---

TEST(TakeChild, WhatIsNotThereIsRefusedWithWords) {
  Log log;
  DeviceArray array = own(foreign_device_array(&log, "a", 3));
  const auto message = [&](int64_t index) { return array.take_child(index).error().message(); };
  EXPECT_EQ(message(3), "take_child: child 3 does not exist: the parent lists 3");
  EXPECT_EQ(message(-1), "take_child: child -1 does not exist: the parent lists 3");
  DeviceArray child = array.take_child(1).value();
  EXPECT_EQ(message(1), "take_child: child 1 is released: it was moved out before");
  ArrowArray* const second = std::exchange(array->array.children[2], nullptr);
  EXPECT_EQ(message(2), "take_child: child 2 is NULL");
  array->array.children[2] = second;
  EXPECT_EQ(array.take_dictionary().error().message(), "take_dictionary: there is no dictionary");
  array.release();
  EXPECT_EQ(message(0), "take_child: the parent is released");
  EXPECT_EQ(code_of(array.take_dictionary()), EINVAL);
}

TEST(TakeChild, TheDictionaryToo) {
  Log log;
  DeviceArray array = own(foreign_device_array(&log, "a", 0, true));
  DeviceArray dictionary = array.take_dictionary().value();
  EXPECT_EQ(array.take_dictionary().error().message(),
            "take_dictionary: it is released: it was moved out before");
  array.release();
  EXPECT_EQ(log, Log{});
  dictionary.release();
  EXPECT_EQ(log, (Log{"ad", "a", "event"}));
}

TEST(TakeChild, ADeviceChildHasTheDeviceAndTheEvent) {
  Log log;
  DeviceArray array = own(foreign_device_array(&log, "a", 2));
  array->reserved[0] = 5;
  const DeviceArray child = array.take_child(0).value();
  EXPECT_EQ(child.device_type(), ARROW_DEVICE_CUDA);
  EXPECT_EQ(child.device_id(), 3);
  EXPECT_EQ(child->sync_event, array->sync_event);
  EXPECT_EQ(child->reserved[0], 0);
}

TEST(TakeChild, TheEventLivesUntilTheLastChildIsReleased) {
  Log log;
  DeviceArray array = own(foreign_device_array(&log, "a", 3));
  DeviceArray first = array.take_child(0).value();
  DeviceArray last = array.take_child(2).value();
  array.release();
  EXPECT_EQ(log, Log{"a1"});  // the data of a child that nobody wanted does not wait
  first.release();
  EXPECT_EQ(log, (Log{"a1", "a0"}));
  last.release();
  EXPECT_EQ(log, (Log{"a1", "a0", "a2", "a", "event"}));
}

TEST(TakeChild, TheEventLivesUntilTheParentIsReleased) {
  Log log;
  DeviceArray array = own(foreign_device_array(&log, "a", 2));
  EXPECT_TRUE(array.take_child(0).ok());
  EXPECT_EQ(log, Log{"a0"});
  DeviceArray moved = std::move(array);
  moved.release();
  EXPECT_EQ(log, (Log{"a0", "a1", "a", "event"}));
}

TEST(TakeChild, OfAChildThatWasTaken) {
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
  EXPECT_EQ(log, (Log{"b0", "b"}));  // only what has the event waits
  EXPECT_EQ(grandchild->sync_event, node->event.get());
  grandchild.release();
  EXPECT_EQ(log, (Log{"b0", "b", "b1", "a", "event"}));
}

TEST(TakeChild, WithoutAnEventNothingIsAllocated) {
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

TEST(TakeChild, MemoryRunsOut) {
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

TEST(TakeChild, OfACountThatIsNone) {
  for (const int64_t count : {INT64_MAX, int64_t{INT32_MAX}, int64_t{-1}}) {
    Log log;
    DeviceArray array = own(foreign_device_array(&log, "a", 1));
    int64_t& n_children = array->array.n_children;
    const int64_t before = std::exchange(n_children, count);
    EXPECT_TRUE(array.children().empty());
    EXPECT_EQ(array.take_child(0).error().message(),
              "take_child: child 0 does not exist: the parent lists 0");
    n_children = before;
    EXPECT_TRUE(array.take_child(0).ok());
    n_children = count;  // it is held back by now: what is still there is not looked for
    array.release();
    EXPECT_EQ(log, (Log{"a0", "a", "event"}));
  }
}

TEST(TakeChild, MemoryRunsOutForTheWords) {
  const int64_t failed = fail_each_allocation([](Injection& inject) {
    Log log;
    Array array = own(foreign_array(&log, "a", 1));
    const Result<Array> child = inject([&] { return array.take_child(9); });
    EXPECT_EQ(code_of(child), inject.fired() ? ENOMEM : EINVAL);
  });
  EXPECT_GT(failed, 0);
}

TEST(TakeChild, ChildrenAreReleasedOnManyThreads) {
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

// --- Attaching ---

TEST(Attach, TheObjectGoesAfterTheReleaseThatWasThere) {
  Log log;
  DeviceArray array = own(foreign_device_array(&log, "a", 1));
  void* const private_data = array->array.private_data;
  ASSERT_TRUE(attach(array, Note(&log, "first")));
  ASSERT_TRUE(attach(array, Note(&log, "second")));
  EXPECT_NE(array->array.private_data, private_data);
  DeviceArray moved = std::move(array);
  moved.release();
  EXPECT_EQ(log, (Log{"a0", "a", "event", "first", "second"}));
}

TEST(Attach, ToASchemaAndWithACopy) {
  ArrowSchema raw{};
  raw.release = [](ArrowSchema* self) { self->release = nullptr; };
  const auto object = std::make_shared<int>(1);
  {
    Schema schema(&raw);
    ASSERT_TRUE(attach(schema, object));
    EXPECT_EQ(object.use_count(), 2);
  }
  EXPECT_EQ(object.use_count(), 1);
}

TEST(Attach, ToAReleasedOneIsRefused) {
  Log log;
  Array array;
  Note note(&log, "note");
  const Status attached = attach(array, std::move(note));
  EXPECT_EQ(code_of(attached), EINVAL);
  EXPECT_EQ(attached.error().message(), "attach: the target is released");
  EXPECT_EQ(note.log, &log);  // NOLINT(bugprone-use-after-move): that it is not moved from
}

TEST(Attach, AReleaseThatForgetsToMarkIsMarked) {
  ArrowArray raw{};
  raw.release = [](ArrowArray*) {};
  Array array(&raw);
  ASSERT_TRUE(attach(array, std::make_unique<int>(1)));
  array->release(array.get());
  EXPECT_TRUE(array.is_released());
}

TEST(Attach, OneAllocationThatMayFail) {
  const int64_t failed = fail_each_allocation([](Injection& inject) {
    Log log;
    Array array = own(foreign_array(&log, "a"));
    Note note(&log, "note");
    const Status attached = inject([&] { return attach(array, std::move(note)); });
    EXPECT_EQ(code_of(attached), inject.fired() ? ENOMEM : 0);
    EXPECT_EQ(note.log == nullptr, attached.ok());
    array.release();
    EXPECT_EQ(log, attached ? (Log{"a", "note"}) : Log{"a"});
  });
  EXPECT_EQ(failed, 1);
}

// --- Rules ---

TEST(Rules, release_once) {
  Log log;
  Array array = own(foreign_array(&log, "a"));
  array.release();
  array.release();
  EXPECT_EQ(log, Log{"a"});
}

// A producer that does not mark the struct is not called again.
TEST(Rules, release_marks_released) {
  static int calls = 0;
  {
    ArrowArray raw{};
    raw.release = [](ArrowArray*) { ++calls; };
    Array array(&raw);
    array.release();
    EXPECT_TRUE(array.is_released());
  }
  EXPECT_EQ(calls, 1);
}

TEST(Rules, release_check_before_use) {
  ArrowArray raw{};
  raw.length = 5;
  raw.n_children = 1;  // and no list: not to be read
  const Array array(&raw);
  EXPECT_TRUE(array.is_released());
  EXPECT_EQ(array.length(), 0);
  EXPECT_TRUE(array.children().empty());
}

TEST(Rules, release_not_on_children) {
  Log log;
  Array array = own(foreign_array(&log, "a", 2));
  const Array child = array.take_child(0).value();
  EXPECT_EQ(log, Log{});
  EXPECT_EQ(array->children[0]->release, nullptr);
  EXPECT_NE(array->children[1]->release, nullptr);
}

// When we hold the parent's release back, the other children are moved out before they are
// released.
TEST(TakeChild, ChildrenThatStayAreMovedOutBeforeTheyAreReleased) {
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

TEST(Rules, move_marks_source) {
  Log log;
  ArrowArray raw = foreign_array(&log, "a");
  Array array(&raw);
  EXPECT_EQ(raw.release, nullptr);
  Array other = std::move(array);
  EXPECT_TRUE(array.is_released());  // NOLINT(bugprone-use-after-move)
  ArrowArray target;
  other.move_to(&target);
  EXPECT_TRUE(other.is_released());
  EXPECT_EQ(log, Log{});
  target.release(&target);
  EXPECT_EQ(log, Log{"a"});
}

TEST(Rules, device_array_move_marks_source) {
  Log log;
  ArrowDeviceArray raw = foreign_device_array(&log, "a", 0);
  const ArrowDeviceArray before = raw;
  DeviceArray array(&raw);
  EXPECT_EQ(raw.array.release, nullptr);
  EXPECT_EQ(array->sync_event, before.sync_event);
  EXPECT_EQ(log, Log{});
}

TEST(Rules, device_array_release_through_array) {
  static const void* called_with = nullptr;
  ArrowDeviceArray raw{};
  raw.array.release = [](ArrowArray* self) {
    called_with = self;
    self->release = nullptr;
  };
  DeviceArray array(&raw);
  array.release();
  EXPECT_EQ(called_with, &array->array);
}

TEST(Rules, device_array_released_like_array) {
  DeviceArray array;
  array->device_type = ARROW_DEVICE_CUDA;
  EXPECT_TRUE(array.is_released());
}

TEST(Rules, move_child_then_release_parent) {
  Log log;
  Array array = own(foreign_array(&log, "a", 2));
  Array child = array.take_child(1).value();
  array.release();
  EXPECT_EQ(log, (Log{"a0", "a"}));
  EXPECT_EQ(child.length(), 1);
  child.release();
  EXPECT_EQ(log, (Log{"a0", "a", "a1"}));
}

// private_data is the producer's own when its callback runs.
TEST(Rules, array_private_data_untouched) {
  static void* seen = nullptr;
  int state = 0;
  ArrowArray raw{};
  raw.private_data = &state;
  raw.release = [](ArrowArray* self) {
    seen = self->private_data;
    self->release = nullptr;
  };
  Array array(&raw);
  ASSERT_TRUE(attach(array, std::make_unique<int>(1)));
  array.release();
  EXPECT_EQ(seen, &state);
}

TEST(Rules, sync_event_null_accepted) {
  Log log;
  ArrowDeviceArray raw{};
  raw.array = foreign_array(&log, "a", 1);
  raw.device_type = ARROW_DEVICE_CUDA;
  DeviceArray array(&raw);
  const DeviceArray child = array.take_child(0).value();
  EXPECT_EQ(child->sync_event, nullptr);
}

TEST(Rules, schema_name_null_accepted) {
  ArrowSchema raw{};
  raw.format = "i";
  raw.release = [](ArrowSchema* self) { self->release = nullptr; };
  Schema schema(&raw);
  EXPECT_EQ(schema.name(), "");
  schema->name = "";
  EXPECT_EQ(schema.name(), "");
}

}  // namespace
}  // namespace fletching
