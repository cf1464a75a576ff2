// Structs that an async stream rejects: released schemas and batches, and batches on a different
// device type than the stream. For batches that do not match the schema see async_rules_test.cpp.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "alloc_failure.hpp"
#include "async_support.hpp"
#include "fletching/async_consumer.hpp"
#include "fletching/async_producer.hpp"
#include "fletching/metadata.hpp"

namespace fletching::testing {
namespace {

/// A batch that was moved from: every field except release is unchanged.
DeviceArray moved_from(Ledger& ledger) {
  DeviceArray batch = a_batch(ledger, 7);
  DeviceArray(batch.get()).release();
  EXPECT_EQ(batch->array.length, 7);
  return batch;
}

void expect_says(const std::string& message, const std::string& part) {
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

// --- The library's producer ---

TEST(AsyncBatches, RejectsReleasedSchemaAndAcceptsAnother) {
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

TEST(AsyncBatches, RejectsReleasedBatchAndContinues) {
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

// A `make` that reports success but has moved its batch away.
TEST(AsyncBatches, MadeReleasedBatchFailsExtraction) {
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

// A consumer need not zero the struct and checks only release.
TEST(AsyncBatches, FailedExtractionLeavesReleasedArray) {
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

TEST(AsyncBatches, RejectsPushAfterEnd) {
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

/// Pushes numbered batches, with the number also in the metadata, inside or outside of on_demand.
struct NumberSource final : AsyncSource {
  // NOLINTNEXTLINE(bugprone-exception-escape): the test may terminate if memory runs out
  void on_demand(std::int64_t n) noexcept override {
    if (inside) give(n);
  }
  void give(std::int64_t n) {
    for (; n > 0; --n, ++given) {
      const std::string number = encode_metadata({{"number", std::to_string(given)}}).value();
      EXPECT_TRUE(bench->producer.push(a_batch(bench->ledger, given), number).ok());
    }
  }

  ProducerBench* bench = nullptr;
  bool inside = false;
  std::int64_t given = 0;
};

// Reuses the memory of extracted tasks and does not touch the memory of the others.
TEST(AsyncBatches, ExtractsTasksInAnyOrder) {
  for (const bool inside : {false, true}) {
    auto source = std::make_shared<NumberSource>();
    ProducerBench bench({ARROW_DEVICE_CPU, {}, source});
    source->bench = &bench;
    source->inside = inside;
    bench.deliver(0, 0);
    const auto expect_extracted = [&](std::size_t number) {
      DeviceArray array;
      EXPECT_EQ(bench.peer.extract(number, array.out()), 0);
      EXPECT_EQ(array->array.length, static_cast<std::int64_t>(number));
    };
    for (std::size_t round = 0; round < 200; ++round) {
      bench.peer.request(3);
      if (!inside) source->give(3);
      bench.queue.run_ready();
      ASSERT_EQ(bench.peer.tasks.size(), 3 * (round + 1));
      expect_extracted((3 * round) + 2);
      if (round >= 100) expect_extracted(3 * (round - 100));
    }
    for (std::size_t number = 0; number < 600; ++number) {
      EXPECT_EQ(bench.peer.task_metadata[number],
                encode_metadata({{"number", std::to_string(number)}}).value());
      if (number % 3 == 1 || (number % 3 == 0 && number >= 300)) expect_extracted(number);
    }
    bench.peer.cancel();
  }
}

/// Makes another thread push one batch, then pushes one itself.
struct OtherThreadSource final : AsyncSource {
  // NOLINTNEXTLINE(bugprone-exception-escape): the test may terminate without a thread
  void on_demand(std::int64_t /*n*/) noexcept override {
    if (std::exchange(given, true)) return;
    std::thread other(
        [this] { EXPECT_TRUE(bench->producer.push(a_batch(bench->ledger, 0)).ok()); });
    other.join();
    EXPECT_TRUE(bench->producer.push(a_batch(bench->ledger, 1)).ok());
  }

  ProducerBench* bench = nullptr;
  bool given = false;
};

TEST(AsyncBatches, PushInOnDemandFollowsEarlierPushes) {
  auto source = std::make_shared<OtherThreadSource>();
  ProducerBench bench({ARROW_DEVICE_CPU, {}, source});
  source->bench = &bench;
  bench.deliver(2, 0);
  ASSERT_EQ(bench.peer.tasks.size(), 2);
  DeviceArray first;
  EXPECT_EQ(bench.peer.extract(0, first.out()), 0);
  EXPECT_EQ(first->array.length, 0);
  bench.peer.cancel();
}

struct OtherShapeSource final : AsyncSource {
  // NOLINTNEXTLINE(bugprone-exception-escape): the test may terminate if memory runs out
  void on_demand(std::int64_t /*n*/) noexcept override {
    static ArrowArray child{};
    static ArrowArray* children[] = {&child};
    DeviceArray batch = a_batch(bench->ledger, 0);
    batch->array.n_children = 1;
    batch->array.children = children;
    const Status pushed = bench->producer.push(std::move(batch));
    refusal = pushed.ok() ? "" : pushed.error().message();
  }

  ProducerBench* bench = nullptr;
  std::string refusal;
};

TEST(AsyncBatches, PushInOnDemandComparesSchema) {
  auto source = std::make_shared<OtherShapeSource>();
  ProducerBench bench({ARROW_DEVICE_CPU, {}, source});
  source->bench = &bench;
  bench.deliver(1, 0);
  EXPECT_NE(source->refusal.find("async-next.same-schema"), std::string::npos) << source->refusal;
  EXPECT_TRUE(bench.peer.tasks.empty());
  bench.peer.cancel();
}

// The job frees its undelivered batches before release, whatever the executor does in between.
TEST(AsyncBatches, FreesUndeliveredBatchesBeforeRelease) {
  for (const bool inside : {false, true}) {
    ProducerBench bench;
    bench.peer.inside = [&](const std::string& call) {
      if (call == "task" && inside) bench.peer.cancel();
      if (call == "release") {
        EXPECT_EQ(bench.ledger.live(), 1) << "the schema";
      }
    };
    bench.deliver(inside ? 3 : 1, 3);
    EXPECT_EQ(bench.ledger.live(), inside ? 2 : 4) << "the schema, and what was extracted not yet";
    if (!inside) bench.peer.cancel();
    EXPECT_EQ(bench.ledger.live(), 2);
    bench.drop_all();
    EXPECT_EQ(bench.peer.log.back(), "release");
    bench.peer.inside = nullptr;
  }
}

// --- The library's consumer ---

/// Writes the invalid batch that a foreign producer returns with result 0 in its CPU stream.
using Give = std::function<void(Ledger&, ArrowDeviceArray*)>;

/// A foreign producer whose first task returns an invalid array; its other tasks are valid.
struct WrongBench : ConsumerBench {
  explicit WrongBench(Give give) : give_(std::move(give)) {}

  void give_wrong_task() {
    ArrowAsyncTask task{[](ArrowAsyncTask* self, ArrowDeviceArray* out) {
                          auto& bench = *static_cast<WrongBench*>(self->private_data);
                          bench.peer.note("extract wrong");
                          if (out != nullptr) bench.give_(bench.peer.ledger, out);
                          return 0;
                        },
                        this};
    EXPECT_EQ(peer.handler->on_next_task(peer.handler, &task, nullptr), 0);
  }

 private:
  Give give_;
};

void give_on_cuda(Ledger& ledger, ArrowDeviceArray* out) {
  DeviceArray batch = a_batch(ledger);
  batch->device_type = ARROW_DEVICE_CUDA;
  batch.move_to(out);
}

void give_released(Ledger& ledger, ArrowDeviceArray* out) { moved_from(ledger).move_to(out); }

void give_other_child_count(Ledger& ledger, ArrowDeviceArray* out) {
  static ArrowArray child{};
  static ArrowArray* children[] = {&child};
  DeviceArray batch = a_batch(ledger);
  batch->array.n_children = 1;
  batch->array.children = children;
  batch.move_to(out);
}

struct WrongBatch {
  Give give;
  std::string says;
};

std::vector<WrongBatch> wrong_batches() {
  return {{give_on_cuda, "async-producer.one-device-type"},
          {give_released, "released"},
          {give_other_child_count, "async-next.same-schema"}};
}

// The producer cannot notice the error: without a cancel it would wait for requests forever.
TEST(Rules, AsyncProducerOneDeviceType) {
  for (const WrongBatch& wrong : wrong_batches()) {
    SCOPED_TRACE(wrong.says);
    WrongBench bench(wrong.give);
    bench.receive(4, 0);
    bench.give_wrong_task();
    EXPECT_EQ(bench.peer.give_task(), 0);
    EXPECT_EQ(bench.peer.give_task(), 0);
    const Result<AsyncBatch> batch = bench.consumer.take().value();
    ASSERT_EQ(code_of(batch), EINVAL);
    expect_says(batch.error().message(), wrong.says);
    EXPECT_EQ(bench.consumer.state(), AsyncConsumerState::kBroken);
    EXPECT_EQ(bench.peer.ledger.live(), 1) << "the schema";
    EXPECT_EQ(bench.peer.give_task(), 0) << "sent before the cancel arrived";
    bench.peer.fail(EIO);
    bench.peer.release();
    EXPECT_EQ(bench.peer.log,
              (Log{"request 4", "extract wrong", "cancel", "extract 0", "extract 1", "extract 2"}));
    EXPECT_EQ(bench.listener->log, (Log{"schema", "task", "task", "task"})) << "reported by take";
  }
}

// The first task allocates between the check of the state and the insertion into the queue.
TEST(AsyncBatches, DropsTaskQueuedDuringCancel) {
  ConsumerBench bench;
  bench.receive(2, 0);
  bool cancelled = false;
  {
    const WithinAllocation meanwhile([&] {
      std::thread([&] { bench.consumer.cancel(); }).join();
      cancelled = true;
    });
    ArrowAsyncTask task{[](ArrowAsyncTask* self, ArrowDeviceArray* out) {
                          EXPECT_EQ(out, nullptr);
                          static_cast<PeerProducer*>(self->private_data)->note("dropped");
                          return 0;
                        },
                        &bench.peer};
    EXPECT_EQ(bench.peer.handler->on_next_task(bench.peer.handler, &task, nullptr), 0);
  }
  EXPECT_TRUE(cancelled);
  EXPECT_EQ(bench.peer.log, (Log{"request 2", "cancel", "dropped"}));
  EXPECT_EQ(bench.listener->log, Log{"schema"});
  EXPECT_FALSE(bench.consumer.take().has_value());
  bench.peer.release();
}

// The end was reported, so there is no cancel, and the other tasks can still be extracted.
TEST(AsyncBatches, WrongBatchAfterEndKeepsOtherTasks) {
  for (const WrongBatch& wrong : wrong_batches()) {
    for (const bool released : {false, true}) {
      SCOPED_TRACE(wrong.says);
      WrongBench bench(wrong.give);
      bench.receive(2, 0);
      bench.give_wrong_task();
      EXPECT_EQ(bench.peer.give_task(), 0);
      bench.peer.end();
      if (released) bench.peer.release();
      EXPECT_EQ(code_of(*bench.consumer.take()), EINVAL);
      EXPECT_EQ(code_of(*bench.consumer.take()), 0);
      if (!released) bench.peer.release();
      EXPECT_EQ(bench.peer.log, (Log{"request 2", "extract wrong", "extract 0"}));
      EXPECT_EQ(bench.peer.ledger.live(), 1) << "the schema";
    }
  }
}

}  // namespace
}  // namespace fletching::testing
