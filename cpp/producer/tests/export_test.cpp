// Ownership: moves, children moved out, double releases, bad arguments, threads.
#include <thread>

#include "support.hpp"

namespace {

using Export = ProducerTest;

TEST_F(Export, CountsEveryStruct) {
  {
    Exported exported("struct");  // a root, three children, two children of the last one
    const FletchingProducerCounters counters = counters_now();
    EXPECT_EQ(counters.live_schemas, 6);
    EXPECT_EQ(counters.live_arrays, 6);
    EXPECT_EQ(counters.exported, 12);
    EXPECT_EQ(counters.released, 0);
    EXPECT_GT(counters.live_allocations, 0);
  }
  EXPECT_EQ(counters_now().released, 12);
}

TEST_F(Export, CountsDictionary) {
  Exported exported("dictionary");
  EXPECT_EQ(counters_now().live_schemas, 2);
  EXPECT_EQ(counters_now().live_arrays, 2);
}

TEST_F(Export, ResetCountersKeepsLiveCounts) {
  Exported exported("struct");
  FletchingProducerResetCounters();
  EXPECT_EQ(counters_now().exported, 12);
  EXPECT_EQ(counters_now().live_arrays, 6);
}

TEST_F(Export, MovedChildOutlivesParent) {
  Exported exported("record_batch");
  ArrowArray child = move(*exported.array.array.children[0]);
  ArrowSchema field = move(*exported.schema.children[1]);
  release(exported.array.array);
  release(exported.schema);
  EXPECT_EQ(counters_now().live_arrays, 1);
  EXPECT_EQ(counters_now().live_schemas, 1);
  EXPECT_EQ(counters_now().live_allocations, 1);
  EXPECT_EQ(child.length, 5);
  EXPECT_EQ(static_cast<const int32_t*>(child.buffers[1])[4], 14);
  EXPECT_STREQ(field.name, "na\u00efve");
  EXPECT_NE(field.metadata, nullptr);
  release(child);
  release(field);
}

TEST_F(Export, ParentDoesNotReleaseReleasedChild) {
  Exported exported("struct");
  release(*exported.array.array.children[2]);
  release(*exported.schema.children[2]);
  EXPECT_EQ(counters_now().live_arrays, 3);
  EXPECT_EQ(counters_now().live_schemas, 3);
}

TEST_F(Export, MovedDictionaryOutlivesParent) {
  Exported exported("dictionary");
  ArrowArray dictionary = move(*exported.array.array.dictionary);
  ArrowSchema type = move(*exported.schema.dictionary);
  release(exported.array.array);
  release(exported.schema);
  EXPECT_EQ(std::string(static_cast<const char*>(dictionary.buffers[2]), 12), "redgreenblue");
  EXPECT_STREQ(type.format, "u");
  release(dictionary);
  release(type);
}

TEST_F(Export, MovedParentKeepsChildren) {
  Exported exported("struct");
  ArrowArray parent = move(exported.array.array);
  EXPECT_EQ(static_cast<const int32_t*>(parent.children[0]->buffers[1])[2], 3);
  release(parent);
}

TEST_F(Export, CountsDoubleRelease) {
  Exported exported("struct");
  ArrowArray array = exported.array.array;  // copied, not moved
  ArrowSchema schema = exported.schema;
  release(array);
  release(schema);
  EXPECT_EQ(counters_now().double_released, 0);
  release(exported.array.array);
  release(exported.schema);
  expected_double_released_ = 2;
}

TEST_F(Export, CountsDoubleChildRelease) {
  Exported exported("struct");
  ArrowArray child = *exported.array.array.children[2];  // has two children
  release(child);
  expected_double_released_ = 1;
}

TEST_F(Export, CountsReleaseThroughKeptPointer) {
  Exported exported("int32");
  auto* const release = exported.array.array.release;
  release(&exported.array.array);
  release(&exported.array.array);
  release(nullptr);
  expected_double_released_ = 1;
}

TEST_F(Export, CountsReleaseWithChangedPrivateData) {
  Exported exported("int32");
  ArrowArray broken = exported.array.array;
  broken.private_data = &broken;
  release(broken);
  ArrowArray confused = exported.array.array;
  confused.private_data = exported.schema.private_data;  // alive, but not an array
  release(confused);
  expected_double_released_ = 2;
}

TEST_F(Export, RejectsBadArguments) {
  ArrowSchema schema{};
  ArrowDeviceArray array{};
  FletchingMessage message{};
  const auto code = [&](const char* backend, const char* name, ArrowSchema* out_schema,
                        ArrowDeviceArray* out_array) {
    return FletchingProducerExportArray(backend, name, out_schema, out_array, &message);
  };
  EXPECT_EQ(code(nullptr, "int32", &schema, &array), EINVAL);
  EXPECT_STREQ(message.text, "backend: NULL: expected a name");
  EXPECT_EQ(code("tpu\n\xff", "int32", &schema, &array), EINVAL);
  EXPECT_TRUE(std::string_view(message.text).starts_with("backend: unknown: expected one of cpu, "))
      << message.text;
  EXPECT_EQ(code("cpu", nullptr, &schema, &array), EINVAL);
  EXPECT_STREQ(message.text, "case: NULL: expected a name");
  EXPECT_EQ(code("cpu", "", &schema, &array), EINVAL);
  EXPECT_EQ(std::string(message.text).find("case: unknown: expected one of int32, int64"), 0u)
      << message.text;
  EXPECT_EQ(code("cpu", "int32", nullptr, &array), EINVAL);
  EXPECT_STREQ(message.text, "schema: NULL: expected an address");
  EXPECT_EQ(code("cpu", "int32", &schema, nullptr), EINVAL);
  EXPECT_STREQ(message.text, "array: NULL: expected an address");
  EXPECT_EQ(FletchingProducerExportArray("cpu", "?", &schema, &array, nullptr), EINVAL);
  EXPECT_EQ(schema.release, nullptr);
  EXPECT_EQ(array.array.release, nullptr);
  FletchingProducerReadCounters(nullptr);
}

TEST_F(Export, RunsOnManyThreads) {
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      for (const std::string& name : case_names()) {
        Exported exported(name);
        EXPECT_EQ(exported.verify(), 0) << exported.message.text;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(Export, ReleasesOnAnotherThread) {
  Exported exported("record_batch");
  std::thread([&] { release(exported.array.array); }).join();
}

}  // namespace
