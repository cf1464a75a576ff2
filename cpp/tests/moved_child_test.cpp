// Children moved out of an array made by the library: device memory and the event are freed once,
// with the last struct, in any order of release.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <set>
#include <utility>
#include <vector>

#include "fletching/array_builder.hpp"

namespace fletching {
namespace {

/// Handles of a fake driver, for memory and events: each handle is valid until it is freed, once.
class FakeDriver {
 public:
  void* make() {
    void* handle = &handles_.emplace_back(0);
    live_.insert(handle);
    return handle;
  }
  void free(const void* handle) {
    EXPECT_EQ(live_.erase(handle), 1U) << "freed twice, or never made";
  }
  [[nodiscard]] bool has(const void* handle) const { return live_.contains(handle); }
  [[nodiscard]] size_t live() const { return live_.size(); }

 private:
  std::deque<int> handles_;
  std::set<const void*> live_;
};

/// The memory of three columns, and the event for the end of its writes.
struct DeviceColumns {
  explicit DeviceColumns(FakeDriver& from) : driver(&from), event(from.make()) {
    for (int i = 0; i < 3; ++i) memory.push_back(from.make());
  }
  DeviceColumns(DeviceColumns&& other) noexcept
      : driver(std::exchange(other.driver, nullptr)),
        event(other.event),
        memory(std::move(other.memory)) {}
  DeviceColumns(const DeviceColumns&) = delete;
  DeviceColumns& operator=(const DeviceColumns&) = delete;
  DeviceColumns& operator=(DeviceColumns&&) = delete;
  ~DeviceColumns() {
    if (driver == nullptr) return;
    driver->free(event);
    for (const void* column : memory) driver->free(column);
  }

  FakeDriver* driver;
  void* event;
  std::vector<const void*> memory;
};

constexpr size_t kHandles = 4;

/// Two columns; the second has a dictionary.
DeviceArray make_batch(FakeDriver& driver) {
  auto builder = build_array({.arrays = 3, .buffers = 7}, DeviceColumns(driver)).value();
  const std::vector<const void*>& memory = builder.object().memory;
  builder.set(builder.root(), {.length = 1}, {nullptr});
  const AddedChildren columns = builder.add_children(builder.root(), 2);
  builder.set(columns[0], {.length = 1}, {nullptr, memory[0]});
  builder.set(columns[1], {.length = 1}, {nullptr, memory[1]});
  builder.set(builder.add_dictionary(columns[1]), {.length = 1}, {nullptr, memory[2]});
  return builder.finish(ARROW_DEVICE_CUDA, 0, &builder.object().event).value();
}

/// Moves a child out like a consumer without the library.
DeviceArray take_by_hand(DeviceArray& parent, ArrowArray* child) {
  DeviceArray taken;
  *taken.get() = *parent.get();
  taken->array = *child;
  child->release = nullptr;
  return taken;
}

void expect_usable(const FakeDriver& driver, const DeviceArray& part) {
  if (part.is_released()) return;
  EXPECT_TRUE(driver.has(*static_cast<void* const*>(part->sync_event)))
      << "the event was destroyed";
  if (part->array.n_buffers < 2) return;
  EXPECT_TRUE(driver.has(part->array.buffers[1])) << "the memory was freed";
}

/// Releases the parts in the given order and checks the remaining ones each time.
void expect_freed_with_the_last(FakeDriver& driver, std::vector<DeviceArray> parts,
                                const std::vector<size_t>& order) {
  for (const size_t index : order) {
    ASSERT_EQ(driver.live(), kHandles) << "freed before the last release";
    for (const DeviceArray& part : parts) expect_usable(driver, part);
    parts[index].release();
  }
  EXPECT_EQ(driver.live(), 0U) << "not freed by the last release";
}

TEST(MovedChild, LastReleaseFreesMemoryAndEvent) {
  for (const bool by_hand : {false, true}) {
    std::vector<size_t> order{0, 1, 2, 3};
    do {
      FakeDriver driver;
      std::vector<DeviceArray> parts;
      parts.push_back(make_batch(driver));
      ArrowArray** const columns = parts[0]->array.children;
      for (int64_t i = 0; i < 2; ++i) {
        parts.push_back(by_hand ? take_by_hand(parts[0], columns[i])
                                : parts[0].take_child(i).value());
      }
      parts.push_back(by_hand ? take_by_hand(parts[2], parts[2]->array.dictionary)
                              : parts[2].take_dictionary().value());
      expect_freed_with_the_last(driver, std::move(parts), order);
    } while (std::ranges::next_permutation(order).found);
  }
}

TEST(MovedChild, LastReleaseFreesWithOneMovedChild) {
  for (const bool parent_first : {false, true}) {
    for (const int64_t index : {0, 1}) {
      FakeDriver driver;
      std::vector<DeviceArray> parts;
      parts.push_back(make_batch(driver));
      parts.push_back(parts[0].take_child(index).value());
      const size_t first = parent_first ? 0 : 1;
      expect_freed_with_the_last(driver, std::move(parts), {first, 1 - first});
    }
  }
}

// A producer may have inserted a column of another array: its memory outlives the event.
TEST(MovedChild, ColumnOfOtherArrayKeepsEvent) {
  FakeDriver driver;
  FakeDriver other;
  DeviceArray batch = make_batch(driver);
  DeviceArray donor = make_batch(other);
  ArrowArray& column = *batch->array.children[0];
  column.release(&column);
  column = std::exchange(*donor->array.children[0], {});
  donor.release();
  DeviceArray taken = batch.take_child(0).value();
  batch.release();
  EXPECT_TRUE(driver.has(*static_cast<void* const*>(taken->sync_event)));
  EXPECT_TRUE(other.has(taken->array.buffers[1]));
  taken.release();
  EXPECT_EQ(driver.live() + other.live(), 0U);
}

TEST(MovedChild, ParentReleaseFreesAllWithoutMoves) {
  FakeDriver driver;
  DeviceArray batch = make_batch(driver);
  EXPECT_EQ(driver.live(), kHandles);
  batch.release();
  EXPECT_EQ(driver.live(), 0U);
}

}  // namespace
}  // namespace fletching
