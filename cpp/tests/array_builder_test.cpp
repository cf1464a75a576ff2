// Arrays built by the library: one allocation, children that outlive their parent, data of the
// reference producer.
#include "fletching/array_builder.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "alloc_failure.hpp"
#include "fletching/shared.hpp"

namespace fletching {
namespace {

using testing::code_of;
using testing::fail_each_allocation;
using testing::Injection;

constexpr int64_t kRows = 3;

// The columns of a batch. Counts destructions of objects that were not moved from.
struct Columns {
  explicit Columns(int* destroyed, size_t columns = 2)
      : destroyed(destroyed), values(columns, std::array<int64_t, kRows>{}) {
    for (size_t i = 0; i < columns; ++i) values[i].fill(static_cast<int64_t>(i));
  }
  Columns(Columns&& other) noexcept
      : destroyed(std::exchange(other.destroyed, nullptr)), values(std::move(other.values)) {}
  Columns(const Columns&) = delete;
  Columns& operator=(const Columns&) = delete;
  Columns& operator=(Columns&&) = delete;
  ~Columns() {
    if (destroyed != nullptr) ++*destroyed;
  }

  int* destroyed;
  std::vector<std::array<int64_t, kRows>> values;
  void* event = nullptr;  // an event handle
};

Result<DeviceArray> make_batch(Columns columns, ArrowDeviceType type = ARROW_DEVICE_CUDA) noexcept {
  const auto n = static_cast<int64_t>(columns.values.size());
  auto builder = build_array({.arrays = n, .buffers = 1 + (2 * n)}, std::move(columns));
  if (!builder) return std::move(builder).error();
  builder->set(builder->root(), {.length = kRows}, {nullptr});
  auto values = builder->object().values.begin();
  for (ArrowArray& column : builder->add_children(builder->root(), n)) {
    builder->set(column, {.length = kRows}, {nullptr, values++->data()});
  }
  return builder->finish(type, type == ARROW_DEVICE_CPU ? -1 : 1,
                         type == ARROW_DEVICE_CPU ? nullptr : &builder->object().event);
}

int64_t value_of(const ArrowArray& array) { return *static_cast<const int64_t*>(array.buffers[1]); }

TEST(ArrayBuilder, BatchHasGivenValues) {
  int destroyed = 0;
  {
    const DeviceArray batch = make_batch(Columns(&destroyed)).value();
    EXPECT_EQ(batch.length(), kRows);
    EXPECT_EQ(batch->array.n_buffers, 1);
    EXPECT_EQ(batch->array.buffers[0], nullptr);
    EXPECT_EQ(batch.device_type(), ARROW_DEVICE_CUDA);
    EXPECT_EQ(batch.device_id(), 1);
    ASSERT_EQ(batch.children().size(), 2U);
    EXPECT_EQ(value_of(*batch.children()[0]), 0);
    EXPECT_EQ(value_of(*batch.children()[1]), 1);
    EXPECT_EQ(batch.children()[1]->buffers[0], nullptr);
    EXPECT_EQ(destroyed, 0);
  }
  EXPECT_EQ(destroyed, 1);
}

TEST(ArrayBuilder, AllocatesOnceForThousandColumns) {
  int destroyed = 0;
  Columns columns(&destroyed, 1000);
  const int64_t before = testing::allocations();
  const DeviceArray batch = make_batch(std::move(columns)).value();
  EXPECT_EQ(testing::allocations(), before + 1);
}

TEST(ArrayBuilder, Child500OutlivesParent) {
  int destroyed = 0;
  DeviceArray batch = make_batch(Columns(&destroyed, 1000)).value();
  DeviceArray child = batch.take_child(500).value();
  void* const event = batch->sync_event;
  batch.release();
  EXPECT_EQ(destroyed, 0);
  EXPECT_EQ(value_of(child->array), 500);
  EXPECT_EQ(child->sync_event, event);
  EXPECT_EQ(*static_cast<void**>(child->sync_event), nullptr);  // the stored handle
  child.release();
  EXPECT_EQ(destroyed, 1);
}

// Moves a child like a consumer without the library.
TEST(ArrayBuilder, BitwiseMovedChildOutlivesParent) {
  int destroyed = 0;
  ArrowDeviceArray batch;
  make_batch(Columns(&destroyed, 1000)).value().move_to(&batch);
  ArrowArray child = *batch.array.children[500];
  batch.array.children[500]->release = nullptr;
  batch.array.release(&batch.array);
  EXPECT_EQ(batch.array.release, nullptr);
  EXPECT_EQ(value_of(child), 500);
  child.release(&child);
  EXPECT_EQ(destroyed, 1);
}

TEST(ArrayBuilder, TakeChildDoesNotAllocate) {
  int destroyed = 0;
  DeviceArray batch = make_batch(Columns(&destroyed)).value();
  const int64_t before = testing::allocations();
  const DeviceArray child = batch.take_child(0).value();
  EXPECT_EQ(testing::allocations(), before);
}

TEST(ArrayBuilder, ReleasesChildrenOnManyThreads) {
  int destroyed = 0;
  DeviceArray batch = make_batch(Columns(&destroyed, 16)).value();
  std::vector<std::thread> threads;
  for (int64_t i = 0; i < 16; i += 2) {
    threads.emplace_back([child = batch.take_child(i).value(), i]() mutable {
      EXPECT_EQ(value_of(child->array), i);
      child.release();
    });
  }
  batch.release();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(destroyed, 1);
}

// A list of dictionary-encoded values: nested, with a dictionary at the bottom.
Result<Array> make_nested(std::unique_ptr<int64_t> object) noexcept {
  const void* values = object.get();
  auto builder = build_array({.arrays = 3, .buffers = 8}, std::move(object));
  if (!builder) return std::move(builder).error();
  builder->set(builder->root(), {.length = 1}, {nullptr});
  for (ArrowArray& lists : builder->add_children(builder->root(), 1)) {
    builder->set(lists, {.length = 1}, {nullptr, values});
    for (ArrowArray& items : builder->add_children(lists, 1)) {
      builder->set(items, {.length = 1, .null_count = -1, .offset = 2}, {values, values});
      builder->set(builder->add_dictionary(items), {.length = 1}, {nullptr, values, values});
    }
  }
  return builder->finish();
}

TEST(ArrayBuilder, BuildsNestedArrayWithDictionary) {
  const int64_t live = testing::live_allocations();
  Array array = make_nested(std::make_unique<int64_t>(7)).value();
  EXPECT_EQ(testing::live_allocations(), live + 2);  // the object and the block
  Array lists = array.take_child(0).value();
  array.release();
  Array items = lists.take_child(0).value();
  lists.release();
  EXPECT_EQ(items.null_count(), -1);
  EXPECT_EQ(items->offset, 2);
  Array dictionary = items.take_dictionary().value();
  items.release();
  EXPECT_EQ(value_of(*dictionary.get()), 7);
  EXPECT_EQ(dictionary->n_buffers, 3);
  dictionary.release();
  EXPECT_EQ(testing::live_allocations(), live);
}

TEST(ArrayBuilder, ParentReleasesAllStructs) {
  const int64_t live = testing::live_allocations();
  make_nested(std::make_unique<int64_t>(7)).value().release();
  EXPECT_EQ(testing::live_allocations(), live);
}

// A consumer may install a hook in a child without moving the child out.
TEST(ArrayBuilder, ParentReleaseRunsChildHook) {
  static ArrowArray original;
  static int hooked = 0;
  hooked = 0;
  int destroyed = 0;
  DeviceArray batch = make_batch(Columns(&destroyed)).value();
  ArrowArray* child = batch->array.children[1];
  original = *child;
  child->release = [](ArrowArray* self) {
    ++hooked;
    self->release = original.release;
    self->release(self);
  };
  batch.release();
  EXPECT_EQ(hooked, 1);
  EXPECT_EQ(destroyed, 1);
}

TEST(ArrayBuilder, DroppedBuilderDestroysObject) {
  int destroyed = 0;
  {
    auto builder = build_array({.arrays = 1, .buffers = 1}, Columns(&destroyed)).value();
    builder.set(builder.root(), {.length = 1}, {nullptr});
    const auto moved = std::move(builder);
    EXPECT_EQ(destroyed, 0);
  }
  EXPECT_EQ(destroyed, 1);
}

TEST(ArrayBuilder, ContinuesAfterMove) {
  int destroyed = 0;
  auto builder = build_array({.arrays = 1, .buffers = 2}, Columns(&destroyed)).value();
  builder.set(builder.root(), {.length = 1}, {nullptr});
  auto moved = std::move(builder);
  for (ArrowArray& child : moved.add_children(moved.root(), 1)) moved.set(child, {}, {nullptr});
  moved.finish().value().release();
  EXPECT_EQ(destroyed, 1);
}

// Returns the error of `requests` for a builder with capacity for two arrays and three buffers,
// whose root is set.
template <class Requests>
std::string refusal(Requests requests) {
  auto builder = build_array({.arrays = 2, .buffers = 3}, std::make_unique<int>(0)).value();
  builder.set(builder.root(), {.length = 1}, {nullptr});
  requests(builder, builder.root());
  const Result<Array> array = builder.finish();
  if (array) return "";
  EXPECT_EQ(array.error().code(), EINVAL);
  const std::string prefix = "ArrayBuilder: ";
  EXPECT_EQ(array.error().message().substr(0, prefix.size()), prefix);
  return array.error().message().substr(prefix.size());
}

TEST(ArrayBuilder, RejectsExceededCapacity) {
  EXPECT_EQ(refusal([](auto&, ArrowArray&) {}), "");
  EXPECT_EQ(refusal([](auto& builder, ArrowArray& root) {
              EXPECT_TRUE(builder.add_children(root, 3).empty());
            }),
            "capacity.arrays is too small: expected at least 3, got 2");
  EXPECT_EQ(refusal([](auto& builder, ArrowArray& root) {
              builder.set(builder.add_children(root, 1)[0], {}, {nullptr, nullptr, nullptr});
            }),
            "capacity.buffers is too small: expected at least 4, got 3");
  EXPECT_EQ(refusal([](auto& builder, ArrowArray& root) {
              for (ArrowArray& child : builder.add_children(root, 2)) builder.set(child, {}, {});
              builder.set(builder.add_dictionary(root), {}, {});
            }),
            "capacity.arrays is too small: expected at least 3, got 2");
  EXPECT_EQ(refusal([](auto& builder, ArrowArray& root) {
              builder.add_children(root, std::numeric_limits<int64_t>::max());
            }),
            "capacity.arrays is too small: expected at least 9223372036854775807, got 2");
}

// After a rejected add_children its result may be used: setting a child, or adding children or a
// dictionary to it, has no effect.
TEST(ArrayBuilder, SetsRejectedChildrenWithoutEffect) {
  EXPECT_EQ(refusal([](auto& builder, ArrowArray& root) {
              const AddedChildren children = builder.add_children(root, 3);
              for (const size_t i : {0U, 1U, 2U}) {
                builder.set(children[i], {.length = 7}, {nullptr, nullptr});
                builder.set(builder.add_children(children[i], 1)[0], {}, {});
                builder.set(builder.add_dictionary(children[i]), {}, {});
              }
              EXPECT_EQ(root.length, 1);
              EXPECT_EQ(root.n_children, 0);
              EXPECT_EQ(root.dictionary, nullptr);
            }),
            "capacity.arrays is too small: expected at least 3, got 2");
}

TEST(ArrayBuilder, RejectsMissingChild) {
  const char* const kNotThere =
      "no such child or dictionary: expected an index in range, of a request that succeeded";
  EXPECT_EQ(refusal([](auto& builder, ArrowArray& root) {
              const AddedChildren children = builder.add_children(root, 2);
              for (const size_t i : {0U, 1U, 2U}) builder.set(children[i], {}, {});
            }),
            kNotThere);
  EXPECT_EQ(refusal([](auto& builder, ArrowArray& root) {
              const AddedChildren children = builder.add_children(root, 1);
              builder.set(children[0], {}, {});
              builder.set(builder.add_dictionary(children[1]), {}, {});
              EXPECT_EQ(root.dictionary, nullptr);
            }),
            kNotThere);
  EXPECT_EQ(refusal([](auto& builder, ArrowArray& root) {
              const AddedChildren children = builder.add_children(root, 1);
              builder.set(children[0], {}, {});
              EXPECT_TRUE(builder.add_children(children[1], 1).empty());
            }),
            kNotThere);
}

TEST(ArrayBuilder, RejectsCallsInWrongOrder) {
  EXPECT_EQ(refusal([](auto& builder, ArrowArray& root) { builder.set(root, {}, {}); }),
            "array set twice, or not added: expected one call for each added array");
  EXPECT_EQ(refusal([](auto& builder, ArrowArray& root) {
              ArrowArray& child = builder.add_children(root, 1)[0];
              EXPECT_TRUE(builder.add_children(child, 1).empty());
            }),
            "children or dictionary added too early: expected the array to be set before");
  EXPECT_EQ(refusal([](auto& builder, ArrowArray& root) {
              builder.add_dictionary(builder.add_children(root, 1)[0]);
              EXPECT_EQ(root.children[0]->release, nullptr);
            }),
            "children or dictionary added too early: expected the array to be set before");
  EXPECT_EQ(refusal([](auto& builder, ArrowArray& root) {
              builder.set(builder.add_children(root, 1)[0], {}, {});
              EXPECT_TRUE(builder.add_children(root, 1).empty());
            }),
            "children added twice: expected one call");
  EXPECT_EQ(refusal([](auto& builder, ArrowArray& root) {
              builder.set(builder.add_dictionary(root), {}, {});
              const ArrowArray* first = root.dictionary;
              builder.add_dictionary(root);
              EXPECT_EQ(root.dictionary, first);
            }),
            "dictionary added twice: expected one call");
  EXPECT_EQ(refusal([](auto& builder, ArrowArray& root) { builder.add_children(root, -1); }),
            "number of children is negative: expected 0 or more");
  EXPECT_EQ(refusal([](auto& builder, ArrowArray& root) { builder.add_children(root, 1); }),
            "array added and not set: expected every array to be set");
}

TEST(ArrayBuilder, ReportsFirstErrorAndIgnoresLaterCalls) {
  EXPECT_EQ(refusal([](auto& builder, ArrowArray& root) {
              builder.add_children(root, -1);
              EXPECT_TRUE(builder.add_children(root, 1).empty());
              builder.add_dictionary(root);
              EXPECT_EQ(root.dictionary, nullptr);
              EXPECT_EQ(root.n_children, 0);
            }),
            "number of children is negative: expected 0 or more");
}

TEST(ArrayBuilder, FailedFinishKeepsObject) {
  int destroyed = 0;
  {
    auto builder = build_array({}, Columns(&destroyed)).value();
    EXPECT_EQ(builder.finish_cpu().error().message(),
              "ArrayBuilder: array added and not set: expected every array to be set");
    EXPECT_EQ(destroyed, 0);
    builder.set(builder.root(), {}, {});
    const DeviceArray array = builder.finish_cpu().value();
    EXPECT_EQ(array.device_type(), ARROW_DEVICE_CPU);
    EXPECT_EQ(array.device_id(), -1);
    EXPECT_EQ(destroyed, 0);
  }
  EXPECT_EQ(destroyed, 1);
}

// --- Without children ---

TEST(MakeDeviceArray, AllocatesOnceForArrayAndObject) {
  int destroyed = 0;
  const int64_t value = 7;
  Columns columns(&destroyed, 0);
  int event = 0;
  const int64_t before = testing::allocations();
  DeviceArray array =
      make_device_array({.length = 1, .null_count = -1, .offset = 2}, {nullptr, &value},
                        std::move(columns), ARROW_DEVICE_CUDA, 1, &event)
          .value();
  EXPECT_EQ(testing::allocations(), before + 1);
  EXPECT_EQ(array.length(), 1);
  EXPECT_EQ(array.null_count(), -1);
  EXPECT_EQ(array->array.offset, 2);
  EXPECT_EQ(array->array.n_buffers, 2);
  EXPECT_EQ(array->array.buffers[0], nullptr);
  EXPECT_EQ(value_of(array->array), 7);
  EXPECT_EQ(array.device_type(), ARROW_DEVICE_CUDA);
  EXPECT_EQ(array.device_id(), 1);
  EXPECT_EQ(array->sync_event, &event);
  EXPECT_EQ(destroyed, 0);
  array.release();
  EXPECT_EQ(destroyed, 1);
}

TEST(MakeDeviceArray, SecondReleaseHasNoEffect) {
  const auto object = std::make_shared<int>(1);
  DeviceArray array = make_cpu_array({}, {nullptr}, std::shared_ptr<int>(object)).value();
  ArrowDeviceArray raw;
  array.move_to(&raw);
  const auto release = raw.array.release;
  release(&raw.array);
  EXPECT_EQ(raw.array.release, nullptr);
  EXPECT_EQ(object.use_count(), 1);
  release(&raw.array);
  EXPECT_EQ(object.use_count(), 1);
}

TEST(MakeDeviceArray, MakesCpuArray) {
  const int64_t value = 7;
  const DeviceArray array =
      make_cpu_array({.length = 1}, {nullptr, &value}, std::make_unique<int>(0)).value();
  EXPECT_EQ(array.device_type(), ARROW_DEVICE_CPU);
  EXPECT_EQ(array.device_id(), -1);
  EXPECT_EQ(array->sync_event, nullptr);
  EXPECT_EQ(value_of(array->array), 7);
  EXPECT_EQ(code_of(make_cpu_array({.length = -1}, {}, std::make_unique<int>(0))), EINVAL);
}

TEST(MakeDeviceArray, RejectsBadArguments) {
  int event = 0;
  const auto message = [](ArrayValues values, void* sync_event) {
    return make_device_array(values, {}, std::make_unique<int>(0), ARROW_DEVICE_CPU, -1, sync_event)
        .error()
        .message();
  };
  EXPECT_EQ(message({.length = -1}, nullptr),
            "ArrayBuilder: length, offset or null_count out of range: expected 0 or more, "
            "null_count -1 to length");
  EXPECT_EQ(
      message({}, &event),
      "ArrayBuilder: sync_event not NULL: expected NULL, because the device type has no event");
}

TEST(MakeDeviceArray, AllocationFailureReturnsEnomem) {
  const int64_t failed = fail_each_allocation([](Injection& inject) {
    int destroyed = 0;
    {
      Columns columns(&destroyed, 0);
      const auto array = inject([&] {
        return make_device_array({}, {nullptr}, std::move(columns), ARROW_DEVICE_CPU, -1);
      });
      EXPECT_EQ(code_of(array), inject.fired() ? ENOMEM : 0);
      EXPECT_EQ(columns.destroyed != nullptr, inject.fired());  // still owned by the caller
    }
    EXPECT_EQ(destroyed, 1);
  });
  EXPECT_EQ(failed, 1);
}

// Strings, binary values, lists and maps: the second buffer has length + 1 offsets.
TEST(ArrayBuilder, EmptyArrayHasOneZeroOffset) {
  const auto make = [](ArrayValues values) {
    auto builder = build_array({.arrays = 1, .buffers = 4}, 0).value();
    builder.set(builder.root(), values, {nullptr});
    builder.set(builder.add_children(builder.root(), 1)[0], values, {nullptr, nullptr, nullptr});
    return builder;
  };
  const Array array = make({}).finish().value();
  const void* offsets = array.children()[0]->buffers[1];
  ASSERT_NE(offsets, nullptr);
  EXPECT_EQ(*static_cast<const std::int64_t*>(offsets), 0);
  EXPECT_EQ(array.children()[0]->buffers[0], nullptr);
  EXPECT_EQ(array.children()[0]->buffers[2], nullptr);
  const DeviceArray device = make({}).finish_cpu().value();
  EXPECT_NE(device.children()[0]->buffers[1], nullptr);
  // A host address would be wrong on a GPU, and one zero is too short with an array offset.
  const DeviceArray cuda = make({}).finish(ARROW_DEVICE_CUDA, 0).value();
  EXPECT_EQ(cuda.children()[0]->buffers[1], nullptr);
  const Array later = make({.offset = 1}).finish().value();
  EXPECT_EQ(later.children()[0]->buffers[1], nullptr);

  const DeviceArray flat = make_cpu_array({}, {nullptr, nullptr, nullptr}, 0).value();
  ASSERT_NE(flat->array.buffers[1], nullptr);
  EXPECT_EQ(*static_cast<const std::int64_t*>(flat->array.buffers[1]), 0);
  const DeviceArray flat_cuda =
      make_device_array({}, {nullptr, nullptr}, 0, ARROW_DEVICE_CUDA, 0).value();
  EXPECT_EQ(flat_cuda->array.buffers[1], nullptr);
}

TEST(ArrayBuilder, RejectsImpossibleCapacities) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const auto code = [](int64_t arrays, int64_t buffers) {
    return code_of(build_array({arrays, buffers}, std::make_unique<int>(0)));
  };
  EXPECT_EQ(code(-1, 0), EINVAL);
  EXPECT_EQ(code(0, -1), EINVAL);
  EXPECT_EQ(code(kMost, 0), ENOMEM);
  EXPECT_EQ(code(0, kMost), ENOMEM);
  EXPECT_EQ(code(kMost / 400, kMost / 40), ENOMEM);
}

TEST(ArrayBuilder, AllocationFailureReturnsEnomem) {
  const int64_t failed = fail_each_allocation([](Injection& inject) {
    int destroyed = 0;
    {
      auto object = std::make_unique<Columns>(&destroyed);
      const auto builder =
          inject([&] { return build_array({.arrays = 1, .buffers = 1}, std::move(*object)); });
      EXPECT_EQ(code_of(builder), inject.fired() ? ENOMEM : 0);
      EXPECT_EQ(object->destroyed != nullptr, inject.fired());  // still owned by the caller
    }
    EXPECT_EQ(destroyed, 1);
  });
  EXPECT_EQ(failed, 1);
}

TEST(ArrayBuilder, AllocationFailureInErrorTextReturnsEnomem) {
  const int64_t failed = fail_each_allocation([](Injection& inject) {
    auto builder = build_array({}, std::make_unique<int>(0)).value();
    builder.set(builder.root(), {}, {nullptr});
    const Result<Array> array = inject([&] { return builder.finish(); });
    EXPECT_EQ(code_of(array), inject.fired() ? ENOMEM : EINVAL);
  });
  EXPECT_GT(failed, 0);
}

// --- Rules ---

int set_root(const ArrayValues& values) {
  auto builder = build_array({}, std::make_unique<int>(0)).value();
  builder.set(builder.root(), values, {});
  return code_of(builder.finish());
}

TEST(Rules, ArrayLengthSet) {
  EXPECT_EQ(set_root({.length = 0}), 0);
  EXPECT_EQ(set_root({.length = -1}), EINVAL);
}

TEST(Rules, ArrayNullCountRange) {
  EXPECT_EQ(set_root({.length = 1, .null_count = -2}), EINVAL);
  EXPECT_EQ(set_root({.length = 1, .null_count = 2}), EINVAL);
  for (const int64_t nulls : {-1, 0, 1}) EXPECT_EQ(set_root({.length = 1, .null_count = nulls}), 0);
}

TEST(Rules, ArrayOffsetNotNegative) {
  EXPECT_EQ(set_root({.length = 1, .offset = -1}), EINVAL);
  EXPECT_EQ(set_root({.length = 1, .offset = 1}), 0);
}

TEST(Rules, ReleaseAddressIndependent) {
  int destroyed = 0;
  DeviceArray batch = make_batch(Columns(&destroyed)).value();
  auto elsewhere = std::make_unique<ArrowDeviceArray>();
  batch.move_to(elsewhere.get());
  std::memset(batch.get(), 0xff, sizeof(ArrowDeviceArray));
  batch->array.release = nullptr;
  elsewhere->array.release(&elsewhere->array);
  EXPECT_EQ(destroyed, 1);
}

TEST(Rules, ReleaseWalksChildren) {
  int destroyed = 0;
  DeviceArray batch = make_batch(Columns(&destroyed)).value();
  DeviceArray kept = batch.take_child(0).value();  // keeps the block with the other child alive
  const ArrowArray* other = batch.children()[1];
  batch.release();
  EXPECT_EQ(other->release, nullptr);
}

TEST(ArrayBuilder, ReleaseMarksStruct) {
  int destroyed = 0;
  DeviceArray batch = make_batch(Columns(&destroyed)).value();
  ArrowDeviceArray raw;
  batch.move_to(&raw);
  raw.array.release(&raw.array);
  EXPECT_EQ(raw.array.release, nullptr);
}

// All bytes outside of the fields, including padding, are zero.
TEST(Rules, DeviceArrayReservedZero) {
  int destroyed = 0;
  const DeviceArray batch = make_batch(Columns(&destroyed)).value();
  alignas(ArrowDeviceArray) unsigned char expected[sizeof(ArrowDeviceArray)] = {};
  const ArrowDeviceArray& raw = *batch.get();
  std::memcpy(expected, &raw.array, sizeof raw.array);
  std::memcpy(expected + offsetof(ArrowDeviceArray, device_id), &raw.device_id,
              sizeof raw.device_id);
  std::memcpy(expected + offsetof(ArrowDeviceArray, device_type), &raw.device_type,
              sizeof raw.device_type);
  std::memcpy(expected + offsetof(ArrowDeviceArray, sync_event), &raw.sync_event,
              sizeof raw.sync_event);
  // The test compares padding. NOLINTNEXTLINE(bugprone-suspicious-memory-comparison)
  EXPECT_EQ(std::memcmp(batch.get(), expected, sizeof expected), 0);
}

TEST(Rules, SyncEventDestroyedByRelease) {
  struct Event {
    explicit Event(bool* alive) : alive(alive) { *alive = true; }
    Event(Event&& other) noexcept : alive(std::exchange(other.alive, nullptr)) {}
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;
    Event& operator=(Event&&) = delete;
    ~Event() {
      if (alive != nullptr) *alive = false;
    }
    bool* alive;
  };
  bool alive = false;
  auto builder = build_array({}, Event(&alive)).value();
  builder.set(builder.root(), {}, {});
  Event* const event = &builder.object();
  DeviceArray array = builder.finish(ARROW_DEVICE_CUDA, 0, event).value();
  EXPECT_EQ(array->sync_event, event);
  DeviceArray moved = std::move(array);
  EXPECT_EQ(moved->sync_event, event);
  EXPECT_TRUE(alive);
  moved.release();
  EXPECT_FALSE(alive);
}

TEST(Rules, SyncEventNullWhereNone) {
  auto builder = build_array({}, std::make_unique<int>(0)).value();
  builder.set(builder.root(), {}, {});
  EXPECT_EQ(
      builder.finish(ARROW_DEVICE_CPU, -1, &builder.object()).error().message(),
      "ArrayBuilder: sync_event not NULL: expected NULL, because the device type has no event");
  EXPECT_TRUE(builder.finish(ARROW_DEVICE_EXT_DEV, 0, &builder.object()));
}

}  // namespace
}  // namespace fletching
