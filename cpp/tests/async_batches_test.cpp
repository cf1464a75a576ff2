// What an async stream refuses to carry: released schemas and batches, and batches on another type
// of device than the stream's. async_rules_test.cpp has the batches of another schema.
#include <gtest/gtest.h>

#include <cerrno>
#include <functional>
#include <string>
#include <utility>

#include "alloc_failure.hpp"
#include "async_support.hpp"
#include "fletching/async_consumer.hpp"
#include "fletching/async_producer.hpp"

namespace fletching::testing {
namespace {

/// What a batch looks like after it was moved away: every field but release is still there.
DeviceArray moved_from(Ledger& ledger) {
  DeviceArray batch = a_batch(ledger, 7);
  DeviceArray(batch.get()).release();
  EXPECT_EQ(batch->array.length, 7);
  return batch;
}

void expect_says(const std::string& message, const std::string& part) {
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

// --- Our producer ---

TEST(AsyncBatches, a_released_schema_is_refused_and_may_be_given_again) {
  ProducerBench bench;
  Schema schema = a_schema(bench.ledger);
  Schema(schema.get()).release();
  const Status given = bench.producer.schema(std::move(schema));
  ASSERT_EQ(code_of(given), EINVAL);
  expect_says(given.error().message(), "released");
  bench.queue.run_ready();
  EXPECT_EQ(bench.peer.log, Log{});
  EXPECT_EQ(code_of(bench.producer.schema(Schema())), EINVAL);
  bench.deliver(1, 1);
  EXPECT_EQ(bench.peer.log, (Log{"on_schema", "task"}));
}

TEST(AsyncBatches, a_released_batch_is_refused_and_the_stream_goes_on) {
  ProducerBench bench;
  bench.deliver(2, 0);
  const Status pushed = bench.producer.push(moved_from(bench.ledger));
  ASSERT_EQ(code_of(pushed), EINVAL);
  expect_says(pushed.error().message(), "released");
  EXPECT_EQ(code_of(bench.producer.push(DeviceArray())), EINVAL);
  EXPECT_TRUE(bench.producer.push(a_batch(bench.ledger, 1)).ok());
  bench.queue.run_ready();
  ASSERT_EQ(bench.peer.log, (Log{"on_schema", "task"}));
  DeviceArray array;
  EXPECT_EQ(bench.peer.extract(0, array.out()), 0);
  EXPECT_EQ(array->array.length, 1);
}

// A `make` that reports success and has moved its batch elsewhere.
TEST(AsyncBatches, a_batch_that_is_made_released_fails_the_extraction) {
  ProducerBench bench;
  bench.deliver(1, 0);
  (void)bench.producer.push_made([&](ArrowDeviceArray* out) -> Status {
    moved_from(bench.ledger).move_to(out);
    return {};
  });
  bench.queue.run_ready();
  ArrowDeviceArray out{};
  EXPECT_EQ(bench.peer.extract(0, &out), EINVAL);
  EXPECT_EQ(out.array.length, 0) << "nothing stale";
  bench.queue.run_ready();
  EXPECT_EQ(bench.peer.log, (Log{"on_schema", "task", "on_error 22", "release"}));
  expect_says(bench.peer.message, "released");
}

// A consumer need not have zeroed the struct, and looks at release alone.
TEST(AsyncBatches, an_extraction_that_fails_leaves_a_released_array) {
  ProducerBench bench;
  bench.deliver(1, 0);
  (void)bench.producer.push_made([](ArrowDeviceArray*) -> Status { return Error(EIO, "gone"); });
  bench.queue.run_ready();
  ArrowDeviceArray out{};
  out.array.release = [](ArrowArray*) { ADD_FAILURE() << "released"; };
  out.array.length = 7;
  EXPECT_EQ(bench.peer.extract(0, &out), EIO);
  EXPECT_EQ(out.array.release, nullptr);
  EXPECT_EQ(out.array.length, 0);
  bench.queue.run_ready();
}

TEST(AsyncBatches, nothing_is_pushed_after_the_end) {
  ProducerBench bench;
  bench.deliver(2, 1);
  EXPECT_TRUE(bench.producer.end().ok());
  EXPECT_EQ(code_of(bench.producer.push(a_batch(bench.ledger))), EINVAL);
  EXPECT_EQ(code_of(bench.producer.push(moved_from(bench.ledger))), EINVAL);
  EXPECT_EQ(bench.ledger.live(), 2) << "the schema and the first batch";
  bench.queue.run_ready();
  bench.drop_all();
  EXPECT_EQ(bench.peer.log, (Log{"on_schema", "task", "end", "release"}));
}

}  // namespace
}  // namespace fletching::testing
