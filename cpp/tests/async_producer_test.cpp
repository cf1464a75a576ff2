// The async interface's producer rules, one test per rule id, and allocation failures in a
// producer.
#include "fletching/async_producer.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "alloc_failure.hpp"
#include "async_support.hpp"

namespace fletching::testing {
namespace {

TEST(Rules, AsyncNextOnlyReleaseAfterFailure) {
  ProducerBench bench;
  bench.peer.refuse = "task";
  bench.deliver(5, 3);
  EXPECT_EQ(bench.peer.log, (Log{"on_schema", "task", "release"}));
  EXPECT_EQ(bench.ledger.live(), 1) << "a refused task is the producer's";
}

// The consumer would receive it as the type of every batch.
TEST(AsyncProducer, StartRejectsUnsetDeviceType) {
  RunQueue queue;
  PeerHandler peer;
  EXPECT_EQ(code_of(AsyncProducer::start(&peer.raw, queue, {0, {}, nullptr})), EINVAL);
  EXPECT_EQ(peer.raw.producer, nullptr);
}

TEST(Rules, AsyncErrorErrnoCodes) {
  for (const int code : {0, -1, ENOSPC}) {
    ProducerBench bench;
    bench.producer.fail(Error(code, "gone"));
    bench.queue.run_ready();
    EXPECT_EQ(bench.peer.log.front(), code > 0 ? "on_error 28" : "on_error 5");
  }
}

TEST(Rules, AsyncReleaseAlwaysCalled) {
  for (const std::string way : {"end", "fail", "cancel", "abandon"}) {
    Ledger ledger;
    PeerHandler peer;
    RunQueue queue;
    {
      AsyncProducer producer = AsyncProducer::start(&peer.raw, queue).value();
      (void)producer.schema(a_schema(ledger));
      queue.run_ready();
      if (way == "end") (void)producer.end();
      if (way == "fail") producer.fail(Error(EIO, "gone"));
      if (way == "cancel") peer.cancel();
    }
    queue.run_ready();
    EXPECT_EQ(peer.log.back(), "release") << way;
    if (way == "abandon") {
      EXPECT_EQ(peer.log.at(1), "on_error 125") << "ECANCELED";
    }
  }
}

TEST(Rules, AsyncProducerMetadataLives) {
  ProducerBench bench({ARROW_DEVICE_CPU, a_block(), nullptr});
  bench.deliver(0, 0);
  bench.peer.cancel();
  bench.peer.inside = [&](const std::string&) {
    EXPECT_EQ(block_of(bench.peer.raw.producer->additional_metadata), a_block());
  };
  bench.queue.run_ready();
  EXPECT_EQ(ProducerBench().peer.raw.producer->additional_metadata, nullptr);
}

TEST(Rules, AsyncProducerFreedByProducer) {
  const std::int64_t before = live_allocations();
  {
    PeerHandler peer;
    RunQueue queue;
    AsyncProducer::start(&peer.raw, queue).value().fail(Error(EIO, "gone"));
    queue.run_ready();
  }
  EXPECT_EQ(live_allocations(), before);
}

TEST(AsyncProducer, DemandIsNeverNegative) {
  ProducerBench bench;
  bench.deliver(1, 0);
  EXPECT_EQ(bench.producer.demand(), 1);
  for (int pushed = 1; pushed <= 2; ++pushed) {
    EXPECT_TRUE(bench.producer.push(a_batch(bench.ledger)).ok());
    EXPECT_EQ(bench.producer.demand(), 0) << pushed;
  }
  bench.peer.cancel();
  bench.queue.run_ready();
}

TEST(AsyncProducer, DemandIsZeroAfterEnd) {
  ProducerBench bench;
  bench.deliver(2, 0);
  EXPECT_EQ(bench.producer.demand(), 2);
  EXPECT_TRUE(bench.producer.end().ok());
  EXPECT_EQ(bench.producer.demand(), 0) << "and the consumer does not know of the end";
  bench.queue.run_ready();
}

TEST(AsyncProducer, ErrorTellsWrongOrderFromEndOfStream) {
  ProducerBench bench;
  EXPECT_EQ(code_of(bench.producer.push(a_batch(bench.ledger))), EINVAL) << "before the schema";
  EXPECT_EQ(code_of(bench.producer.end()), EINVAL);
  bench.deliver(2, 1);
  EXPECT_TRUE(bench.producer.end().ok());
  EXPECT_EQ(code_of(bench.producer.push(a_batch(bench.ledger))), EINVAL) << "after the end";
  EXPECT_EQ(code_of(bench.producer.end()), EINVAL);
  ProducerBench cancelled;
  cancelled.deliver(1, 0);
  cancelled.peer.cancel();
  EXPECT_EQ(code_of(cancelled.producer.push(a_batch(cancelled.ledger))), ECANCELED);
  EXPECT_EQ(code_of(cancelled.producer.end()), ECANCELED);
}

// Inside on_next_task the task itself still exists.
TEST(AsyncProducer, ExtractionDestroysBatchFactory) {
  ProducerBench bench;
  std::weak_ptr<int> held;
  bench.peer.inside = [&](const std::string& name) {
    if (name != "task") return;
    EXPECT_FALSE(held.expired());
    EXPECT_EQ(bench.peer.extract(0, nullptr), 0);
    EXPECT_TRUE(held.expired());
  };
  bench.deliver(1, 0);
  auto owned = std::make_shared<int>(7);
  held = owned;
  (void)bench.producer.push_made([kept = std::move(owned)](ArrowDeviceArray*) { return Status(); });
  bench.queue.run_ready();
  EXPECT_EQ(bench.peer.log, (Log{"on_schema", "task"}));
}

TEST(AsyncProducer, RejectsBatchWithOtherChildCount) {
  ProducerBench bench;
  ArrowSchema column{};
  ArrowSchema* columns[] = {&column};
  Schema schema = a_schema(bench.ledger);
  schema->n_children = 1;
  schema->children = columns;
  EXPECT_TRUE(bench.producer.schema(std::move(schema)).ok());
  bench.queue.run_ready();
  ArrowArray values{};
  ArrowArray* children[] = {&values};
  DeviceArray batch = a_batch(bench.ledger);
  EXPECT_EQ(code_of(bench.producer.push(a_batch(bench.ledger))), EINVAL);
  batch->array.n_children = 1;
  batch->array.children = children;
  EXPECT_TRUE(bench.producer.push(std::move(batch)).ok());
  bench.peer.cancel();
  bench.queue.run_ready();
}

TEST(Rules, AsyncTaskReturnsErrno) {
  ProducerBench bench;
  bench.deliver(1, 0);
  (void)bench.producer.push_made([](ArrowDeviceArray*) -> Status { throw 1; });
  bench.queue.run_ready();
  DeviceArray array;
  EXPECT_EQ(bench.peer.extract(0, array.out()), EIO) << "what is thrown stays inside";
  bench.queue.run_ready();
}

TEST(Rules, AsyncRequestAddsUp) {
  ProducerBench bench;
  bench.deliver(0, 6);
  bench.peer.request(2);
  bench.peer.request(3);
  bench.queue.run_ready();
  EXPECT_EQ(bench.peer.tasks.size(), 5);
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  bench.peer.request(kMost);
  bench.peer.request(kMost);
  EXPECT_EQ(bench.producer.demand(), kMost - 1) << "the sum stops there, and one batch waits";
  bench.peer.cancel();
  bench.drop_all();
}

TEST(Rules, AsyncRequestRefusedWhenNotPositive) {
  for (const std::int64_t n :
       {std::int64_t{0}, std::int64_t{-1}, std::numeric_limits<std::int64_t>::min()}) {
    ProducerBench bench;
    bench.deliver(0, 0);
    bench.peer.request(n);
    bench.queue.run_ready();
    EXPECT_EQ(bench.peer.log, (Log{"on_schema", "on_error 22", "release"}));
  }
}

TEST(AsyncProducer, NotifiesSource) {
  struct Source final : AsyncSource {
    // NOLINTBEGIN(bugprone-exception-escape): the test may terminate if memory runs out
    void on_demand(std::int64_t n) noexcept override {
      log.push_back("demand " + std::to_string(n));
    }
    void on_stop() noexcept override { log.emplace_back("stop"); }
    void on_release() noexcept override { log.emplace_back("release"); }
    // NOLINTEND(bugprone-exception-escape)
    Log log;
  };
  auto source = std::make_shared<Source>();
  ProducerBench bench({ARROW_DEVICE_CPU, {}, source});
  bench.deliver(3, 0);
  (void)bench.producer.push(a_batch(bench.ledger));
  bench.queue.run_ready();
  bench.peer.cancel();
  bench.drop_all();
  EXPECT_EQ(source->log, (Log{"demand 3", "demand 2", "stop", "release"}));
}

TEST(AsyncProducer, SurvivesAllocationFailures) {
  Ledger ledger;
  const std::int64_t failed = fail_each_allocation([&](Injection& inject) {
    PeerHandler peer;
    peer.log.reserve(9);  // so that the peer does not allocate
    peer.tasks.reserve(9);
    peer.task_metadata.reserve(9);
    const std::int64_t noted = inject([&] {
      RunQueue queue;
      Result<AsyncProducer> producer =
          AsyncProducer::start(&peer.raw, queue, {ARROW_DEVICE_CPU, {}, nullptr});
      if (!producer.ok()) return std::int64_t{producer.error().code()};
      (void)producer->schema(a_schema(ledger));
      const Status given = producer->push(a_batch(ledger));
      const Status made = producer->push_made([](ArrowDeviceArray*) { return Status(); });
      const std::int64_t code = code_of(given) + code_of(made);
      if (code != 0) producer->fail(Error(ENOMEM, "no memory"));
      peer.cancel();
      queue.run_ready();
      return code;
    });
    EXPECT_EQ(noted, inject.fired() ? ENOMEM : 0);
    EXPECT_EQ(ledger.live(), 0);
  });
  EXPECT_EQ(failed, 3) << "the stream, and one for each task";
}

TEST(AsyncProducer, MovedFromProducerReturnsErrorWithoutLeak) {
  ProducerBench bench;
  AsyncProducer moved = std::move(bench.producer);
  AsyncProducer& gone = bench.producer;  // NOLINT(bugprone-use-after-move): what is tested
  EXPECT_EQ(code_of(gone.schema(a_schema(bench.ledger))), EINVAL);
  EXPECT_EQ(code_of(gone.push(a_batch(bench.ledger))), EINVAL);
  EXPECT_EQ(code_of(gone.push_made([](ArrowDeviceArray*) { return Status(); })), EINVAL);
  EXPECT_EQ(code_of(gone.end()), EINVAL);
  gone.fail(Error(EIO, "nobody hears it"));
  EXPECT_EQ(gone.demand(), 0);
  EXPECT_EQ(gone.state(), AsyncProducerState::kReleased);
  EXPECT_EQ(bench.ledger.live(), 0);
  bench.producer = std::move(moved);
  EXPECT_EQ(bench.producer.state(), AsyncProducerState::kCreated);
}

}  // namespace
}  // namespace fletching::testing
