// The consumer rules of the async interface, each by its id, and allocation failures in a consumer.
#include "fletching/async_consumer.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <future>
#include <limits>
#include <string>
#include <thread>
#include <utility>

#include "alloc_failure.hpp"
#include "async_support.hpp"

namespace fletching::testing {
namespace {

TEST(Rules, AsyncTaskNullDrops) {
  ConsumerBench bench;
  bench.receive(2, 2);
  EXPECT_TRUE(bench.consumer.drop());
  bench.consumer.cancel();
  for (const auto& task : bench.peer.tasks) EXPECT_TRUE(task->with_null);
  bench.peer.release();
}

TEST(AsyncConsumer, DropsTasksKeptAfterRelease) {
  ConsumerBench bench;
  bench.receive(2, 2);
  bench.peer.end();
  bench.peer.release();
  EXPECT_EQ(bench.peer.ledger.live(), 3) << "the schema and two batches";
  EXPECT_TRUE(bench.consumer.drop());
  EXPECT_TRUE(bench.consumer.drop());
  EXPECT_FALSE(bench.consumer.drop());
  EXPECT_EQ(bench.peer.ledger.live(), 1);
}

TEST(AsyncConsumer, CancelDropsTasksKeptAfterRelease) {
  ConsumerBench bench;
  bench.receive(2, 2);
  bench.peer.end();
  bench.peer.release();
  bench.consumer.cancel();
  EXPECT_EQ(bench.peer.ledger.live(), 1) << "the schema";
  EXPECT_FALSE(bench.consumer.drop());
}

// These are not errno values, but the producer's codes must stay readable.
TEST(AsyncConsumer, ReportsNonErrnoCodeInMessage) {
  for (const int code : {0, -1, -4711, std::numeric_limits<int>::min()}) {
    const std::string said = "(code " + std::to_string(code) + ")";
    ConsumerBench bench;
    bench.peer.fail(code, "it broke");
    EXPECT_EQ(bench.listener->log, Log{"error 5"});
    EXPECT_EQ(bench.listener->message, "it broke " + said);
    bench.peer.release();
    ConsumerBench without_text;
    without_text.peer.fail(code, nullptr);
    EXPECT_EQ(without_text.listener->message, said);
    without_text.peer.release();
    if (code == 0) continue;
    ConsumerBench extracted;
    extracted.receive(1, 0);
    extracted.peer.give_task(code);
    const Result<AsyncBatch> batch = extracted.consumer.take().value();
    EXPECT_EQ(code_of(batch), EIO);
    EXPECT_NE(batch.error().message().find(said), std::string::npos) << batch.error().message();
    extracted.peer.release();
  }
  ConsumerBench positive;
  positive.peer.fail(4711, "it broke");
  EXPECT_EQ(positive.listener->log, Log{"error 4711"});
  EXPECT_EQ(positive.listener->message, "it broke") << "code() has it";
  positive.peer.release();
}

TEST(AsyncConsumer, DoesNotReleaseFailedPartialExtraction) {
  ConsumerBench bench;
  bench.receive(1, 0);
  ArrowAsyncTask task{[](ArrowAsyncTask*, ArrowDeviceArray* out) {
                        out->array.release = [](ArrowArray*) { ADD_FAILURE() << "released"; };
                        return EIO;
                      },
                      nullptr};
  bench.peer.handler->on_next_task(bench.peer.handler, &task, nullptr);
  EXPECT_EQ(code_of(*bench.consumer.take()), EIO);
  bench.peer.release();
}

TEST(AsyncConsumer, TakesNothingAfterFailedExtraction) {
  ConsumerBench bench;
  bench.receive(3, 0);
  for (const int result : {EIO, 0, 0}) bench.peer.give_task(result);
  bench.peer.in_drop = [&] { EXPECT_FALSE(bench.consumer.drop()) << "while others are dropped"; };
  EXPECT_EQ(code_of(*bench.consumer.take()), EIO);
  EXPECT_EQ(bench.peer.log, (Log{"request 3", "extract 0", "extract 1", "extract 2"}));
  bench.peer.release();
}

TEST(AsyncConsumer, DeliversAllBatchesBeforeImmediateRelease) {
  for (int round = 0; round < 300; ++round) {
    ConsumerBench bench;
    bench.receive(8, 8);
    std::thread producer([&] {
      bench.peer.end();
      bench.peer.release();
    });
    for (std::int64_t i = 0; i < 8; ++i) {
      const std::optional<Result<AsyncBatch>> batch = bench.consumer.wait_and_take();
      ASSERT_TRUE(batch && batch->ok()) << "batch " << i;
      EXPECT_EQ((*batch)->array->array.length, i);
    }
    EXPECT_FALSE(bench.consumer.wait_and_take().has_value());
    producer.join();
  }
}

// A producer may be destroyed with its last task, as libarrow's is.
TEST(AsyncConsumer, RequestsBeforeExtracting) {
  ConsumerBench bench;
  bench.receive(2, 2);
  bench.peer.log.clear();
  EXPECT_EQ(code_of(*bench.consumer.take(-1)), EINVAL);
  EXPECT_EQ(bench.peer.log, Log{}) << "nothing is taken";
  EXPECT_TRUE(bench.consumer.take(2)->ok());
  EXPECT_TRUE(bench.consumer.take()->ok());
  EXPECT_FALSE(bench.consumer.take(1).has_value());
  EXPECT_EQ(bench.peer.log, (Log{"request 2", "extract 0", "extract 1"}));
  EXPECT_EQ(bench.peer.give_task(), 0);
  bench.peer.end();
  EXPECT_TRUE(bench.consumer.take(1)->ok());
  EXPECT_EQ(bench.peer.log.back(), "extract 2") << "not asked for any more after the end";
  bench.peer.release();
}

// A producer may send all requested tasks, the end and release inside request.
TEST(AsyncConsumer, ExtractsBeforeReleaseInsideRequest) {
  ConsumerBench bench;
  bench.receive(1, 1);
  bench.peer.log.clear();
  bench.peer.in_request = [&] {
    bench.peer.give_task();
    bench.peer.end();
    bench.peer.release();
    bench.peer.note("released");
  };
  EXPECT_EQ(bench.consumer.take(1)->value().array->array.length, 0);
  EXPECT_EQ(bench.consumer.take(1)->value().array->array.length, 1);
  EXPECT_EQ(bench.peer.log, (Log{"request 1", "extract 0", "extract 1", "released"}));
}

// A producer may be destroyed with its last task, as libarrow's is.
TEST(AsyncConsumer, DoesNotExtractInReleaseDuringRequest) {
  ConsumerBench bench;
  bench.receive(1, 1);
  bench.peer.log.clear();
  std::promise<void> asked;
  std::promise<void> released;
  bench.peer.in_request = [&] {
    asked.set_value();
    released.get_future().wait();
    bench.peer.note("request returns");
  };
  bench.listener->inside = [&](const std::string& what) {
    if (what == "release waits") released.set_value();
  };
  std::thread application([&] { EXPECT_TRUE(bench.consumer.request(1).ok()); });
  asked.get_future().wait();
  bench.peer.end();
  bench.peer.release();
  application.join();
  EXPECT_EQ(bench.peer.log, (Log{"request 1", "request returns", "extract 0"}));
  EXPECT_TRUE(bench.consumer.take()->ok());
}

TEST(AsyncConsumer, SurvivesAllocationFailures) {
  PeerProducer peer;
  peer.log.reserve(99);
  const std::string block = a_block();
  const std::int64_t failed = fail_each_allocation([&](Injection& inject) {
    auto listener = std::make_shared<LoggingListener>();
    listener->log.reserve(9);
    peer.log.clear();
    PeerProducer::Task task{&peer};
    const int code = inject([&]() -> int {
      Result<AsyncConsumer> consumer = AsyncConsumer::create(listener);
      if (!consumer.ok()) return consumer.error().code();
      ArrowAsyncDeviceStreamHandler* handler = consumer->handler();
      handler->producer = &peer.raw;
      ArrowSchema schema{};
      a_schema(peer.ledger).move_to(&schema);
      int result = handler->on_schema(handler, &schema);
      (void)consumer->request(1);
      ArrowAsyncTask c_task{PeerProducer::extract, &task};
      if (result == 0) result = handler->on_next_task(handler, &c_task, block.data());
      if (result == 0) handler->on_next_task(handler, nullptr, nullptr);
      handler->release(handler);
      const std::optional<Result<AsyncBatch>> batch = consumer->take();
      return result != 0 || !batch ? result : code_of(*batch);
    });
    EXPECT_EQ(code, inject.fired() ? ENOMEM : 0);
    listener->schema.release();
    EXPECT_EQ(peer.ledger.live(), 0);
  });
  EXPECT_GE(failed, 4) << "stream, metadata, queue, what is kept";
}

TEST(AsyncConsumer, MovedFromConsumerReturnsError) {
  ConsumerBench bench;
  AsyncConsumer moved = std::move(bench.consumer);
  AsyncConsumer& gone = bench.consumer;  // NOLINT(bugprone-use-after-move): what is tested
  EXPECT_EQ(gone.handler(), nullptr);
  EXPECT_EQ(code_of(gone.request(1)), EINVAL);
  EXPECT_EQ(code_of(*gone.take()), EINVAL);
  EXPECT_EQ(code_of(*gone.wait_and_take()), EINVAL);
  EXPECT_FALSE(gone.drop());
  gone.cancel();
  EXPECT_EQ(gone.state(), AsyncConsumerState::kReleased);
  bench.consumer = std::move(moved);
  EXPECT_EQ(bench.consumer.state(), AsyncConsumerState::kCreated);
  bench.peer.release();
}

}  // namespace
}  // namespace fletching::testing
