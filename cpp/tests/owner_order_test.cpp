// SPDX-License-Identifier: Apache-2.0
//
// Release callbacks that free the memory of their struct, or of the struct being assigned: the code
// after the callback must access neither.
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <functional>
#include <memory>
#include <utility>

#include "fletching/array_builder.hpp"
#include "fletching/owner.hpp"
#include "fletching/stream.hpp"
#include "foreign.hpp"

namespace fletching {
namespace {

using testing::foreign_device_array;
using testing::Log;

/// A struct of any kind whose release runs `on_release`. `marks`: whether the callback sets release
/// to NULL, as the contract requires.
template <class Raw>
Owner<Raw> calling(std::function<void()> on_release, bool marks = true) {
  struct State {
    std::function<void()> on_release;
    bool marks;
  };
  using Base = typename Owner<Raw>::base_type;
  Owner<Raw> owner;
  Base& base = detail::base(*owner.out());
  base.private_data = new State{std::move(on_release), marks};
  base.release = [](Base* self) {
    // If release is called twice, the state leaks instead of being used after free; the test's
    // counts report that.
    const std::unique_ptr<State> state(
        static_cast<State*>(std::exchange(self->private_data, nullptr)));
    if (state == nullptr) {
      ADD_FAILURE() << "released twice";
      return;
    }
    if (state->marks) self->release = nullptr;
    state->on_release();
  };
  return owner;
}

template <class Raw>
class OwnerOrder : public ::testing::Test {};
using Raws = ::testing::Types<ArrowSchema, ArrowArray, ArrowDeviceArray, ArrowArrayStream,
                              ArrowDeviceArrayStream>;
TYPED_TEST_SUITE(OwnerOrder, Raws);

// Like std::unique_ptr: head = std::move(head->next).
TYPED_TEST(OwnerOrder, AssignmentMovesBeforeRelease) {
  Log log;
  auto next = std::make_unique<Owner<TypeParam>>(
      calling<TypeParam>([&log] { log.emplace_back("second"); }));
  Owner<TypeParam>& source = *next;
  Owner<TypeParam> head = calling<TypeParam>([&] {
    log.emplace_back("first");
    next.reset();
  });
  head = std::move(source);
  EXPECT_EQ(log, Log{"first"});
  EXPECT_FALSE(head.is_released());
  head.release();
  EXPECT_EQ(log, (Log{"first", "second"}));
}

// As above, for a Result that changes from a value to an error.
TYPED_TEST(OwnerOrder, ResultAssignmentMovesBeforeRelease) {
  auto next = std::make_unique<Result<Owner<TypeParam>>>(
      Error(EIO, "an error with a text that is too long to be inside the string"));
  Result<Owner<TypeParam>>& source = *next;
  Result<Owner<TypeParam>> head = calling<TypeParam>([&] { next.reset(); });
  head = std::move(source);
  EXPECT_EQ(next, nullptr);
  ASSERT_FALSE(head.ok());
  EXPECT_EQ(head.error().code(), EIO);
}

TYPED_TEST(OwnerOrder, SelfAssignmentKeepsStruct) {
  int released = 0;
  Owner<TypeParam> owner = calling<TypeParam>([&] { ++released; });
  Owner<TypeParam>* const same = &owner;
  owner = std::move(*same);
  EXPECT_EQ(released, 0);
  EXPECT_FALSE(owner.is_released());
}

TYPED_TEST(OwnerOrder, ReleaseCallbackErasesEntry) {
  for (const bool marks : {true, false}) {
    int released = 0;
    std::unique_ptr<Owner<TypeParam>> entry;
    const auto erase = [&] {
      ++released;
      EXPECT_TRUE(entry->is_released());
      entry.reset();
    };
    entry = std::make_unique<Owner<TypeParam>>(calling<TypeParam>(erase, marks));
    entry->release();
    EXPECT_EQ(released, 1);
    EXPECT_EQ(entry, nullptr);
  }
}

TYPED_TEST(OwnerOrder, OutCallbackErasesEntry) {
  int released = 0;
  std::unique_ptr<Owner<TypeParam>> entry;
  const auto erase = [&] {
    ++released;
    EXPECT_TRUE(entry->is_released());
    entry.reset();
  };
  entry = std::make_unique<Owner<TypeParam>>(calling<TypeParam>(erase));
  (void)entry->out();
  EXPECT_EQ(released, 1);
  EXPECT_EQ(entry, nullptr);
}

TYPED_TEST(OwnerOrder, AssignmentCallbackErasesEntry) {
  for (const bool marks : {true, false}) {
    Log log;
    std::unique_ptr<Owner<TypeParam>> entry;
    const auto erase = [&] {
      log.emplace_back("old");
      entry.reset();
    };
    entry = std::make_unique<Owner<TypeParam>>(calling<TypeParam>(erase, marks));
    *entry = calling<TypeParam>([&] { log.emplace_back("new"); }, marks);
    EXPECT_EQ(log, (Log{"old", "new"}));
  }
}

TYPED_TEST(OwnerOrder, KeepsStructMovedInByRelease) {
  int released = 0;
  Owner<TypeParam> owner;
  owner = calling<TypeParam>([&] { owner = calling<TypeParam>([&] { ++released; }); });
  owner.release();
  EXPECT_FALSE(owner.is_released());
  EXPECT_EQ(released, 0);
}

TYPED_TEST(OwnerOrder, CallsReleaseOnceWithoutMark) {
  int released = 0;
  const auto forgetful = [&] { return calling<TypeParam>([&] { ++released; }, false); };
  {
    Owner<TypeParam> owner = forgetful();
    owner.release();
    owner = forgetful();
    owner = forgetful();
    (void)owner.out();
    owner = forgetful();
  }
  EXPECT_EQ(released, 4);
}

TEST(StreamReaderOrder, ReleaseDestroysReader) {
  std::unique_ptr<DeviceArrayStreamReader> reader;
  reader = std::make_unique<DeviceArrayStreamReader>(
      calling<ArrowDeviceArrayStream>([&] { reader.reset(); }));
  reader->release();
  EXPECT_EQ(reader, nullptr);
}

// --- A struct owned by a C consumer, which calls release in place ---

/// Moves `owner` to memory that `release_now` frees from within a callback.
template <class Raw>
struct HeapStruct {
  std::unique_ptr<Raw> struct_;

  void take(Owner<Raw> owner) {
    struct_ = std::make_unique<Raw>();
    owner.move_to(struct_.get());
  }
  void release() {
    auto& base = detail::base(*struct_);
    base.release(&base);
  }
};

TEST(HookOrder, ReleaseFreesHookedStruct) {
  HeapStruct<ArrowArray> entry;
  Array array = calling<ArrowArray>([&] { entry.struct_.reset(); });
  const auto attached = std::make_shared<int>(1);
  ASSERT_TRUE(attach(array, attached).ok());
  entry.take(std::move(array));
  entry.release();
  EXPECT_EQ(entry.struct_, nullptr);
  EXPECT_EQ(attached.use_count(), 1);
}

TEST(HookOrder, AttachedObjectFreesHookedStruct) {
  HeapStruct<ArrowArray> entry;
  Array array = calling<ArrowArray>([] {});
  const auto erase = [&](int*) { entry.struct_.reset(); };
  int object = 0;
  ASSERT_TRUE(attach(array, std::unique_ptr<int, decltype(erase)>(&object, erase)).ok());
  entry.take(std::move(array));
  entry.release();
  EXPECT_EQ(entry.struct_, nullptr);
}

/// Releases child `index` of a foreign array and replaces it.
void replace_child(ArrowArray& parent, size_t index, Array by) {
  ArrowArray* child = parent.children[index];
  if (child->release != nullptr) child->release(child);
  by.move_to(child);
}

TEST(HookOrder, ChildReleaseFreesDeferredParent) {
  Log log;
  HeapStruct<ArrowDeviceArray> entry;
  ArrowDeviceArray raw = foreign_device_array(&log, "a", 3);
  replace_child(raw.array, 1, calling<ArrowArray>([&] { entry.struct_.reset(); }));
  log.clear();
  DeviceArray parent(&raw);
  const DeviceArray child = parent.take_child(0).value();
  entry.take(std::move(parent));
  entry.release();
  EXPECT_EQ(entry.struct_, nullptr);
  EXPECT_EQ(log, Log{"a2"});
}

TEST(BlockOrder, ForeignChildReleaseFreesParent) {
  for (const bool by_dictionary : {false, true}) {
    HeapStruct<ArrowArray> entry;
    const auto owned = std::make_shared<int>(1);
    auto builder = build_array({.arrays = 2, .buffers = 0}, std::shared_ptr<int>(owned)).value();
    builder.set(builder.root(), {}, {});
    builder.set(builder.add_children(builder.root(), 1)[0], {}, {});
    builder.set(builder.add_dictionary(builder.root()), {}, {});
    Array array = builder.finish().value();
    ArrowArray* const below = by_dictionary ? array->dictionary : array->children[0];
    below->release(below);
    calling<ArrowArray>([&] { entry.struct_.reset(); }).move_to(below);
    entry.take(std::move(array));
    entry.release();
    EXPECT_EQ(entry.struct_, nullptr);
    EXPECT_EQ(owned.use_count(), 1);
  }
}

}  // namespace
}  // namespace fletching
