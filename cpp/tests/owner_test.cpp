// SPDX-License-Identifier: Apache-2.0
//
// The owners: moves, releases, attached objects.
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
#include <type_traits>
#include <utility>

#include "alloc_failure.hpp"
#include "fletching/extension.hpp"
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

// Logs its name when it is destroyed.
struct DestructionLogger {
  Log* log;
  std::string name;
  DestructionLogger(Log* log, std::string name) : log(log), name(std::move(name)) {}
  DestructionLogger(DestructionLogger&& other) noexcept
      : log(std::exchange(other.log, nullptr)), name(std::move(other.name)) {}
  DestructionLogger(const DestructionLogger&) = delete;
  DestructionLogger& operator=(const DestructionLogger&) = delete;
  DestructionLogger& operator=(DestructionLogger&&) = delete;
  ~DestructionLogger() {
    if (log != nullptr) log->push_back(name);
  }
};

bool is_all_zero(const ArrowDeviceArray& array) {
  const auto bytes = std::as_bytes(std::span(&array, 1));
  return std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

DeviceArray own(ArrowDeviceArray raw) { return DeviceArray(&raw); }
Array own(ArrowArray raw) { return Array(&raw); }

TEST(Owner, NewOwnerIsReleasedAndZero) {
  const DeviceArray array;
  EXPECT_TRUE(array.is_released());
  EXPECT_FALSE(array);
  EXPECT_TRUE(is_all_zero(*array.get()));
}

TEST(Owner, OutReleasesOldStructAndReturnsZeroedSlot) {
  Log log;
  DeviceArray array = own(foreign_device_array(&log, "a", 0));
  array->reserved[1] = 7;
  const ArrowDeviceArray* slot = array.out();
  EXPECT_EQ(log, (Log{"a", "event"}));
  EXPECT_TRUE(is_all_zero(*slot));
}

TEST(Owner, AssignmentReleasesOldStruct) {
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

TEST(Owner, MoveToOwnAddressHasNoEffect) {
  Log log;
  DeviceArray array = own(foreign_device_array(&log, "a", 0));
  array.move_to(array.get());
  EXPECT_FALSE(array.is_released());
  array.release();
  EXPECT_EQ(log, (Log{"a", "event"}));
}

TEST(Owner, ReleasedOwnerReadsAsEmpty) {
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
}

// The metadata pointer of the released struct is dangling.
TEST(Owner, RejectsMetadataOfReleasedSchema) {
  ArrowSchema raw{};
  raw.metadata = new char[4]{};  // no pairs
  raw.private_data = const_cast<char*>(raw.metadata);
  raw.release = [](ArrowSchema* self) {
    self->release = nullptr;
    delete[] static_cast<char*>(self->private_data);
  };
  Schema schema(&raw);
  EXPECT_TRUE(schema.metadata().ok());
  EXPECT_TRUE(find_extension(*schema).ok());
  schema.release();
  EXPECT_EQ(code_of(find_extension(*schema)), EINVAL);
  EXPECT_EQ(code_of(schema.metadata()), EINVAL);
}

TEST(Owner, MalformedChildListsReadAsEmpty) {
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

TEST(Owner, AccessorsReadFields) {
  Log log;
  DeviceArray array = own(foreign_device_array(&log, "a", 2));
  EXPECT_EQ(array.length(), 1);
  EXPECT_EQ(array.null_count(), 0);
  EXPECT_EQ(array.device_type(), ARROW_DEVICE_CUDA);
  EXPECT_EQ(array.device_id(), 3);
  EXPECT_EQ(array.children()[1], array->array.children[1]);
}

TEST(Owner, NullTextsReadAsEmpty) {
  ArrowSchema raw{};
  raw.release = [](ArrowSchema* self) { self->release = nullptr; };
  const Schema schema(&raw);
  EXPECT_EQ(schema.format(), "");
  EXPECT_EQ(schema.name(), "");
  EXPECT_TRUE(schema.metadata().value().empty());
}

// --- Attaching ---

TEST(Attach, DestroysObjectAfterOldRelease) {
  Log log;
  DeviceArray array = own(foreign_device_array(&log, "a", 1));
  void* const private_data = array->array.private_data;
  ASSERT_TRUE(attach(array, DestructionLogger(&log, "first")));
  ASSERT_TRUE(attach(array, DestructionLogger(&log, "second")));
  EXPECT_NE(array->array.private_data, private_data);
  DeviceArray moved = std::move(array);
  moved.release();
  EXPECT_EQ(log, (Log{"a0", "a", "event", "first", "second"}));
}

TEST(Attach, AttachesCopyToSchema) {
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

TEST(Attach, DestroysManyObjectsWithoutRecursion) {
  constexpr int kObjects = 1 << 18;
  const auto object = std::make_shared<int>(1);
  ArrowSchema raw{};
  raw.release = [](ArrowSchema* self) { self->release = nullptr; };
  Schema schema(&raw);
  for (int i = 0; i < kObjects; ++i) ASSERT_TRUE(attach(schema, object));
  EXPECT_EQ(object.use_count(), 1 + kObjects);
  schema.release();
  EXPECT_EQ(object.use_count(), 1);
}

TEST(Attach, RejectsReleasedOwner) {
  Log log;
  Array array;
  DestructionLogger note(&log, "note");
  const Status attached = attach(array, std::move(note));
  EXPECT_EQ(code_of(attached), EINVAL);
  EXPECT_EQ(attached.error().message(), "attach: target is released: expected a live struct");
  EXPECT_EQ(note.log, &log);  // NOLINT(bugprone-use-after-move): it must not be moved from
}

TEST(Attach, MarksStructAfterReleaseWithoutMark) {
  ArrowArray raw{};
  raw.release = [](ArrowArray*) {};
  Array array(&raw);
  ASSERT_TRUE(attach(array, std::make_unique<int>(1)));
  array->release(array.get());
  EXPECT_TRUE(array.is_released());
}

TEST(Attach, AllocationFailureReturnsEnomem) {
  const int64_t failed = fail_each_allocation([](Injection& inject) {
    Log log;
    Array array = own(foreign_array(&log, "a"));
    DestructionLogger note(&log, "note");
    const Status attached = inject([&] { return attach(array, std::move(note)); });
    EXPECT_EQ(code_of(attached), inject.fired() ? ENOMEM : 0);
    EXPECT_EQ(note.log == nullptr, attached.ok());
    array.release();
    EXPECT_EQ(log, attached ? (Log{"a", "note"}) : Log{"a"});
  });
  EXPECT_EQ(failed, 1);
}

// --- Rules ---

TEST(Rules, ReleaseOnce) {
  Log log;
  Array array = own(foreign_array(&log, "a"));
  array.release();
  array.release();
  EXPECT_EQ(log, Log{"a"});
}

// A producer that does not mark the struct is not called again.
TEST(Rules, ReleaseMarksReleased) {
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

TEST(Rules, MoveMarksSource) {
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

// The destructor releases in place; release() moves the array out first.
TEST(Rules, DeviceArrayReleaseThroughArray) {
  static const void* called_with = nullptr;
  static int64_t length = 0;
  ArrowDeviceArray raw{};
  const auto alive = [&raw] {
    raw.array.length = 7;
    raw.array.release = [](ArrowArray* self) {
      called_with = self;
      length = self->length;
      self->release = nullptr;
    };
    return DeviceArray(&raw);
  };
  const void* place = nullptr;
  {
    const DeviceArray array = alive();
    place = &array->array;
  }
  EXPECT_EQ(called_with, place);
  DeviceArray array = alive();
  length = 0;
  array.release();
  EXPECT_EQ(length, 7);
}

}  // namespace
}  // namespace fletching
