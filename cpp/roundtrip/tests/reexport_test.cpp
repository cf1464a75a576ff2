// Handing on arrays: sources stay untouched by a refusal, and children live by themselves.
#include "reexport.hpp"

#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

#include "fake.hpp"
#include "owned.hpp"

namespace fletching::roundtrip {
namespace {

TEST(Reexport, ReleasesEverySourceOnce) {
  FakeStruct fake;
  const std::int64_t exported = exported_count();
  const std::int64_t released = released_count();
  {
    Owned<ArrowSchema> schema;
    Owned<ArrowDeviceArray> array;
    reexport(fake.schema, fake.array, schema.value, array.value);
    EXPECT_TRUE(is_released(fake.schema));
    EXPECT_TRUE(is_released(fake.array));
    EXPECT_TRUE(is_released(fake.b.array));
    EXPECT_EQ(fake.array_releases, 0);
    EXPECT_NE(array.value.array.children, fake.arrays);
    EXPECT_EQ(array.value.array.children[1]->buffers, fake.b.buffers);
  }
  EXPECT_EQ(exported_count() - exported, 6);
  EXPECT_EQ(released_count() - released, 6);
  for (const FakeArray* one : {static_cast<FakeArray*>(&fake), &fake.a, &fake.b}) {
    EXPECT_EQ(one->schema_releases, 1);
    EXPECT_EQ(one->array_releases, 1);
  }
}

TEST(Reexport, LetsAChildOutliveItsParent) {
  FakeStruct fake;
  Owned<ArrowArray> child;
  {
    Owned<ArrowSchema> schema;
    Owned<ArrowDeviceArray> array;
    reexport(fake.schema, fake.array, schema.value, array.value);
    child.value = moved_from(*array.value.array.children[1]);
  }
  EXPECT_EQ(fake.array_releases, 1);
  EXPECT_EQ(fake.a.array_releases, 1);
  EXPECT_EQ(fake.b.array_releases, 0);
  EXPECT_EQ(child.value.buffers[1], fake.b.values);
  release(child.value);
  EXPECT_EQ(fake.b.array_releases, 1);
}

TEST(Reexport, ReleasesADictionary) {
  FakeArray fake;
  FakeArray words;
  fake.schema.dictionary = &words.schema;
  fake.array.array.dictionary = &words.array.array;
  {
    Owned<ArrowSchema> schema;
    Owned<ArrowDeviceArray> array;
    reexport(fake.schema, fake.array, schema.value, array.value);
    EXPECT_NE(array.value.array.dictionary, &words.array.array);
    EXPECT_FALSE(is_released(*array.value.array.dictionary));
  }
  EXPECT_EQ(words.schema_releases, 1);
  EXPECT_EQ(words.array_releases, 1);
}

TEST(Reexport, KeepsTheDeviceAndZeroesReserved) {
  FakeArray fake;
  int event = 0;
  fake.array.device_type = 9999;
  fake.array.device_id = 3;
  fake.array.sync_event = &event;
  fake.array.reserved[2] = 1;
  Owned<ArrowSchema> schema;
  Owned<ArrowDeviceArray> array;
  std::memset(&array.value, 0xFF, sizeof(array.value));
  reexport(fake.schema, fake.array, schema.value, array.value);
  EXPECT_EQ(array.value.device_type, 9999);
  EXPECT_EQ(array.value.device_id, 3);
  EXPECT_EQ(array.value.sync_event, &event);
  EXPECT_EQ(array.value.reserved[2], 0);
}

TEST(Reexport, RunsOnManyThreadsAtOnce) {
  const std::int64_t exported = exported_count();
  const std::int64_t released = released_count();
  constexpr int kThreads = 4;
  constexpr int kRounds = 100;
  const auto work = [] {
    for (int round = 0; round < kRounds; ++round) {
      FakeStruct fake;
      Owned<ArrowSchema> schema;
      Owned<ArrowDeviceArray> array;
      reexport(fake.schema, fake.array, schema.value, array.value);
    }
  };
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(exported_count() - exported, 6 * kThreads * kRounds);
  EXPECT_EQ(released_count() - released, 6 * kThreads * kRounds);
}

TEST(Reexport, LeavesTheSourcesAloneWhenItRefuses) {
  FakeStruct fake;
  fake.b.array.array.release = nullptr;
  ArrowSchema schema{};
  ArrowDeviceArray array{};
  expect_error(EINVAL, "array.children[1] is released",
               [&] { reexport(fake.schema, fake.array, schema, array); });
  EXPECT_TRUE(is_released(schema));
  EXPECT_TRUE(is_released(array));
  EXPECT_FALSE(is_released(fake.schema));
  EXPECT_FALSE(is_released(fake.array));
  EXPECT_FALSE(is_released(fake.a.array));
}

}  // namespace
}  // namespace fletching::roundtrip
