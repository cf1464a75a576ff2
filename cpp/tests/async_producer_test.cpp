// The rules of the async interface that a producer has to keep, each by its id, and memory that
// runs out in a producer.
#include "fletching/async_producer.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "alloc_failure.hpp"
#include "async_support.hpp"

namespace fletching::testing {
namespace {

TEST(Rules, async_handlers_serialized) {
  ProducerBench bench;
  bool running = false;
  bench.peer.inside = [&](const std::string& name) {
    EXPECT_FALSE(std::exchange(running, true)) << name;
    // Everything that could make a producer call is done, here and on another thread.
    if (name == "task") bench.peer.request(1);
    std::thread([&] { bench.queue.run_ready(); }).join();
    running = false;
  };
  bench.deliver(3, 3);
  EXPECT_TRUE(bench.producer.end().ok());
  bench.queue.run_ready();
  bench.drop_all();
  EXPECT_EQ(bench.peer.log, (Log{"on_schema", "task", "task", "task", "end", "release"}));
}

TEST(Rules, async_next_not_concurrent) {
  ProducerBench bench;
  int depth = 0;
  bench.peer.inside = [&](const std::string&) {
    EXPECT_EQ(++depth, 1);
    bench.queue.run_ready();
    --depth;
  };
  bench.deliver(2, 2);
  bench.peer.cancel();
  bench.drop_all();
}

TEST(Rules, async_error_ends_stream) {
  ProducerBench bench;
  bench.deliver(1, 0);
  bench.producer.fail(Error(EIO, "gone"));
  bench.queue.run_ready();
  EXPECT_EQ(bench.peer.log, (Log{"on_schema", "on_error 5", "release"}));
}

TEST(Rules, async_error_then_release_only) {
  ProducerBench bench;
  bench.deliver(5, 0);
  bench.producer.fail(Error(EIO, "gone"));
  EXPECT_EQ(code_of(bench.producer.push(a_batch(bench.ledger))), ECANCELED);
  bench.producer.fail(Error(EPERM, "again"));
  bench.queue.run_ready();
  EXPECT_EQ(bench.peer.log, (Log{"on_schema", "on_error 5", "release"}));
  EXPECT_EQ(bench.ledger.live(), 1) << "the schema, which is the consumer's";
}

TEST(Rules, async_handler_failure_ends_stream) {
  for (const std::string refused : {"on_schema", "task", "end"}) {
    ProducerBench bench;
    bench.peer.refuse = refused;
    bench.deliver(3, refused == "on_schema" ? 0 : 1);
    (void)bench.producer.end();
    bench.queue.run_ready();
    bench.drop_all();
    EXPECT_EQ(bench.peer.log.back(), "release") << refused;
    for (const std::string& call : bench.peer.log) EXPECT_FALSE(call.starts_with("on_error"));
  }
}

TEST(Rules, async_schema_only_release_after_failure) {
  ProducerBench bench;
  bench.peer.refuse = "on_schema";
  bench.deliver(0, 0);
  EXPECT_EQ(bench.peer.log, (Log{"on_schema", "release"}));
  EXPECT_EQ(bench.ledger.live(), 0) << "a refused schema is the producer's";
}

TEST(Rules, async_next_only_release_after_failure) {
  ProducerBench bench;
  bench.peer.refuse = "task";
  bench.deliver(5, 3);
  EXPECT_EQ(bench.peer.log, (Log{"on_schema", "task", "release"}));
  EXPECT_EQ(bench.ledger.live(), 1) << "a refused task is the producer's";
}

TEST(Rules, async_schema_first_and_once) {
  ProducerBench bench;
  EXPECT_EQ(code_of(bench.producer.push(a_batch(bench.ledger))), EINVAL);
  EXPECT_EQ(code_of(bench.producer.end()), EINVAL);
  bench.deliver(1, 1);
  EXPECT_EQ(code_of(bench.producer.schema(a_schema(bench.ledger))), EINVAL);
  bench.queue.run_ready();
  EXPECT_EQ(bench.peer.log, (Log{"on_schema", "task"}));
  bench.peer.cancel();
  bench.drop_all();
}

TEST(Rules, async_schema_set) {
  PeerHandler peer;
  RunQueue queue;
  peer.raw.on_schema = nullptr;
  const Result<AsyncProducer> started = AsyncProducer::start(&peer.raw, queue);
  EXPECT_EQ(code_of(started), EINVAL);
  EXPECT_NE(started.error().message().find("on_schema"), std::string::npos);
  EXPECT_EQ(peer.raw.producer, nullptr);
}

TEST(Rules, async_next_set) {
  PeerHandler peer;
  RunQueue queue;
  peer.raw.on_next_task = nullptr;
  EXPECT_EQ(code_of(AsyncProducer::start(&peer.raw, queue)), EINVAL);
}

TEST(Rules, async_error_set) {
  PeerHandler peer;
  RunQueue queue;
  peer.raw.on_error = nullptr;
  EXPECT_EQ(code_of(AsyncProducer::start(&peer.raw, queue)), EINVAL);
}

TEST(Rules, async_release_set) {
  PeerHandler peer;
  RunQueue queue;
  peer.raw.release = nullptr;
  EXPECT_EQ(code_of(AsyncProducer::start(&peer.raw, queue)), EINVAL);
}

// It would reach the consumer as the type of every batch.
TEST(AsyncProducerTest, RefusesADeviceTypeThatIsNotSet) {
  RunQueue queue;
  PeerHandler peer;
  EXPECT_EQ(code_of(AsyncProducer::start(&peer.raw, queue, {0, {}, nullptr})), EINVAL);
  EXPECT_EQ(peer.raw.producer, nullptr);
}

TEST(Rules, async_next_null_task_is_end) {
  ProducerBench bench;
  bench.deliver(0, 0);
  EXPECT_TRUE(bench.producer.end().ok());
  EXPECT_EQ(code_of(bench.producer.push(a_batch(bench.ledger))), EINVAL);
  EXPECT_EQ(code_of(bench.producer.end()), EINVAL);
  bench.queue.run_ready();
  EXPECT_EQ(bench.peer.log, (Log{"on_schema", "end", "release"}));
}

TEST(Rules, async_next_task_lives_during_call) {
  ProducerBench bench;
  EXPECT_TRUE(bench.producer.schema(a_schema(bench.ledger)).ok());
  bench.queue.run_ready();
  bench.peer.request(1);
  bench.peer.raw.on_next_task = [](ArrowAsyncDeviceStreamHandler*, ArrowAsyncTask* task,
                                   const char* metadata) {
    EXPECT_EQ(task->extract_data(task, nullptr), 0);
    EXPECT_EQ(block_of(metadata), a_block()) << "also after the extraction";
    return 0;
  };
  EXPECT_TRUE(bench.producer.push(a_batch(bench.ledger), a_block()).ok());
  bench.queue.run_ready();
  bench.peer.cancel();
  bench.queue.run_ready();
  EXPECT_EQ(bench.peer.log.back(), "release");
}

TEST(Rules, async_error_errno_codes) {
  for (const int code : {0, -1, ENOSPC}) {
    ProducerBench bench;
    bench.producer.fail(Error(code, "gone"));
    bench.queue.run_ready();
    EXPECT_EQ(bench.peer.log.front(), code > 0 ? "on_error 28" : "on_error 5");
  }
}

TEST(Rules, async_error_texts_live_during_call) {
  ProducerBench bench;
  bench.producer.fail(Error(EIO, ""), a_block());
  bench.queue.run_ready();
  EXPECT_FALSE(bench.peer.message.empty());
  EXPECT_EQ(bench.peer.error_metadata, a_block());
}

TEST(Rules, async_release_always_called) {
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

TEST(Rules, async_release_last) {
  ProducerBench bench;
  bench.deliver(1, 1);
  (void)bench.producer.end();
  bench.queue.run_ready();
  EXPECT_EQ(bench.peer.log.back(), "end") << "held back: a task is open";
  bench.drop_all();
  bench.peer.request(1);
  bench.peer.request(-1);
  bench.peer.cancel();
  bench.producer.fail(Error(EIO, "late"));
  EXPECT_FALSE(bench.queue.run_ready());
  EXPECT_EQ(bench.peer.log, (Log{"on_schema", "task", "end", "release"}));
}

TEST(Rules, async_release_like_array) {
  ProducerBench bench;
  bench.peer.raw.release = [](ArrowAsyncDeviceStreamHandler* self) {
    PeerHandler::of(self).log.emplace_back("release");
    *self = {};  // freed
  };
  bench.producer.fail(Error(EIO, "gone"));
  bench.queue.run_ready();
  EXPECT_EQ(bench.peer.log, (Log{"on_error 5", "release"}));
}

TEST(Rules, async_handler_producer_set_first) {
  ProducerBench bench;
  ASSERT_NE(bench.peer.raw.producer, nullptr);
  EXPECT_EQ(bench.peer.log, Log{});
}

TEST(Rules, async_request_set) { EXPECT_NE(ProducerBench().peer.raw.producer->request, nullptr); }

TEST(Rules, async_cancel_set) { EXPECT_NE(ProducerBench().peer.raw.producer->cancel, nullptr); }

TEST(Rules, async_producer_device_type_set) {
  ProducerBench bench({ARROW_DEVICE_CUDA, {}, nullptr});
  EXPECT_EQ(bench.peer.raw.producer->device_type, ARROW_DEVICE_CUDA);
}

TEST(Rules, async_producer_one_device_type) {
  ProducerBench bench({ARROW_DEVICE_CUDA, {}, nullptr});
  (void)bench.producer.schema(a_schema(bench.ledger));
  EXPECT_EQ(code_of(bench.producer.push(a_batch(bench.ledger))), EINVAL);
  EXPECT_EQ(bench.ledger.live(), 1) << "the batch is released, the schema waits";
}

TEST(Rules, async_producer_metadata_lives) {
  ProducerBench bench({ARROW_DEVICE_CPU, a_block(), nullptr});
  bench.deliver(0, 0);
  bench.peer.cancel();
  bench.peer.inside = [&](const std::string&) {
    EXPECT_EQ(block_of(bench.peer.raw.producer->additional_metadata), a_block());
  };
  bench.queue.run_ready();
  EXPECT_EQ(ProducerBench().peer.raw.producer->additional_metadata, nullptr);
}

TEST(Rules, async_producer_outlives_handler) {
  PeerHandler peer;
  RunQueue queue;
  {
    const AsyncProducer producer = AsyncProducer::start(&peer.raw, queue).value();
  }
  peer.inside = [&](const std::string&) { peer.cancel(); };  // reads freed memory if it were gone
  queue.run_ready();
  EXPECT_EQ(peer.log, (Log{"on_error 125", "release"}));
}

TEST(Rules, async_producer_freed_by_producer) {
  const std::int64_t before = live_allocations();
  {
    PeerHandler peer;
    RunQueue queue;
    AsyncProducer::start(&peer.raw, queue).value().fail(Error(EIO, "gone"));
    queue.run_ready();
  }
  EXPECT_EQ(live_allocations(), before);
}

TEST(Rules, async_task_extract_set) {
  ProducerBench bench;
  bench.deliver(1, 1);
  EXPECT_NE(bench.peer.tasks.at(0).extract_data, nullptr);
  bench.peer.cancel();
  bench.drop_all();
}

TEST(Rules, async_task_null_accepted) {
  ProducerBench bench;
  bench.deliver(1, 1);
  EXPECT_EQ(bench.peer.extract(0, nullptr), 0);
  EXPECT_EQ(bench.ledger.live(), 1) << "the schema";
  bench.peer.cancel();
  bench.queue.run_ready();
}

TEST(Rules, async_task_cleans_up) {
  ProducerBench bench;
  bench.deliver(1, 1);
  DeviceArray array;
  EXPECT_EQ(bench.peer.extract(0, array.out()), 0);
  EXPECT_EQ(bench.peer.tasks.at(0).private_data, nullptr);
  EXPECT_EQ(bench.peer.extract(0, array.get()), EINVAL) << "the second time";
  EXPECT_FALSE(array.is_released()) << "and the array is left alone";
  bench.peer.cancel();
  bench.queue.run_ready();
}

TEST(Rules, async_task_failure_then_on_error) {
  ProducerBench bench;
  bench.deliver(5, 0);
  (void)bench.producer.push_made([](ArrowDeviceArray*) -> Status { return Error(ENXIO, "lost"); });
  (void)bench.producer.push(a_batch(bench.ledger));
  bench.queue.run_ready();
  DeviceArray array;
  EXPECT_EQ(bench.peer.extract(0, array.out()), ENXIO);
  EXPECT_TRUE(array.is_released());
  (void)bench.producer.push(a_batch(bench.ledger));
  bench.queue.run_ready();
  EXPECT_EQ(bench.peer.log.back(), "on_error 6");
  EXPECT_EQ(bench.peer.message, "lost");
  bench.drop_all();
  EXPECT_EQ(bench.peer.log.back(), "release");
}

TEST(AsyncProducer, demand_is_never_below_zero) {
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

TEST(AsyncProducer, there_is_no_demand_behind_the_end) {
  ProducerBench bench;
  bench.deliver(2, 0);
  EXPECT_EQ(bench.producer.demand(), 2);
  EXPECT_TRUE(bench.producer.end().ok());
  EXPECT_EQ(bench.producer.demand(), 0) << "and the consumer does not know of the end";
  bench.queue.run_ready();
}

// Inside of on_next_task the task itself is not gone yet.
TEST(AsyncProducer, what_makes_a_batch_is_gone_when_it_is_extracted) {
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

TEST(AsyncProducer, a_batch_has_the_children_of_the_schema) {
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

TEST(Rules, async_task_returns_errno) {
  ProducerBench bench;
  bench.deliver(1, 0);
  (void)bench.producer.push_made([](ArrowDeviceArray*) -> Status { throw 1; });
  bench.queue.run_ready();
  DeviceArray array;
  EXPECT_EQ(bench.peer.extract(0, array.out()), EIO) << "what is thrown stays inside";
  bench.queue.run_ready();
}

TEST(Rules, async_task_in_order) {
  ProducerBench bench;
  bench.deliver(10, 10);
  for (std::size_t i = 0; i < 10; ++i) {
    DeviceArray array;
    EXPECT_EQ(bench.peer.extract(i, array.out()), 0);
    EXPECT_EQ(array->array.length, static_cast<std::int64_t>(i));
  }
  bench.peer.cancel();
  bench.queue.run_ready();
}

TEST(Rules, async_request_inside_handlers) {
  ProducerBench bench;
  bench.peer.inside = [&](const std::string& name) {
    if (name == "on_schema" || name == "task") bench.peer.request(1);
  };
  bench.deliver(0, 4);
  EXPECT_EQ(bench.peer.tasks.size(), 4);
  bench.peer.inside = nullptr;
  bench.peer.cancel();
  bench.drop_all();
}

TEST(Rules, async_request_not_synchronous) {
  ProducerBench bench;
  bench.deliver(0, 2);
  bench.peer.request(2);
  bench.peer.request(0);
  EXPECT_EQ(bench.peer.log, Log{"on_schema"});
  bench.queue.run_ready();
  EXPECT_EQ(bench.peer.log, (Log{"on_schema", "on_error 22", "release"}));
}

TEST(Rules, async_request_scheduled) {
  ProducerBench bench;
  bench.deliver(0, 1);
  bench.peer.request(1);
  EXPECT_TRUE(bench.queue.run_ready()) << "a job was submitted, not run";
  EXPECT_EQ(bench.peer.log.back(), "task");
  bench.peer.cancel();
  bench.drop_all();
}

TEST(Rules, async_request_adds_up) {
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

TEST(Rules, async_request_not_exceeded) {
  ProducerBench bench;
  bench.deliver(3, 10);
  EXPECT_EQ(bench.peer.tasks.size(), 3);
  bench.peer.cancel();
  bench.drop_all();
  EXPECT_EQ(bench.ledger.live(), 1) << "the schema";
}

TEST(Rules, async_request_refused_when_not_positive) {
  for (const std::int64_t n :
       {std::int64_t{0}, std::int64_t{-1}, std::numeric_limits<std::int64_t>::min()}) {
    ProducerBench bench;
    bench.deliver(0, 0);
    bench.peer.request(n);
    bench.queue.run_ready();
    EXPECT_EQ(bench.peer.log, (Log{"on_schema", "on_error 22", "release"}));
  }
}

TEST(Rules, async_request_errors_through_on_error) {
  ProducerBench bench;
  bench.deliver(0, 0);
  bench.peer.request(0);
  bench.queue.run_ready();
  EXPECT_NE(bench.peer.message.find("request"), std::string::npos);
}

TEST(Rules, async_request_nothing_after_cancel) {
  ProducerBench bench;
  bench.deliver(0, 2);
  bench.peer.cancel();
  bench.peer.request(2);
  bench.peer.request(-2);
  bench.queue.run_ready();
  EXPECT_EQ(bench.peer.log, (Log{"on_schema", "release"}));
}

TEST(Rules, async_cancel_stops) {
  ProducerBench bench;
  bench.deliver(9, 2);
  bench.peer.cancel();
  EXPECT_EQ(code_of(bench.producer.push(a_batch(bench.ledger))), ECANCELED);
  bench.drop_all();
  EXPECT_EQ(bench.peer.log, (Log{"on_schema", "task", "task", "release"}));
}

TEST(Rules, async_cancel_idempotent) {
  ProducerBench bench;
  bench.deliver(1, 0);
  for (int i = 0; i < 100; ++i) bench.peer.cancel();
  bench.queue.run_ready();
  EXPECT_EQ(bench.peer.log, (Log{"on_schema", "release"}));
}

TEST(Rules, async_cancel_thread_safe) {
  ProducerBench bench;
  bench.deliver(1, 0);
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { bench.peer.cancel(); });
  (void)bench.producer.push(a_batch(bench.ledger));
  for (std::thread& thread : threads) thread.join();
  bench.queue.run_ready();
  EXPECT_EQ(bench.peer.log, (Log{"on_schema", "release"}));
}

TEST(Rules, async_cancel_calls_no_handler) {
  ProducerBench bench;
  bench.deliver(1, 0);
  bench.peer.cancel();
  EXPECT_EQ(bench.peer.log, Log{"on_schema"});
  bench.queue.run_ready();
}

TEST(Rules, async_cancel_no_on_error) {
  ProducerBench bench;
  bench.deliver(1, 0);
  bench.peer.cancel();
  bench.producer.fail(Error(EIO, "torn down"));
  bench.queue.run_ready();
  EXPECT_EQ(bench.peer.log, (Log{"on_schema", "release"}));
}

TEST(AsyncProducer, notifies_its_source) {
  struct Source final : AsyncSource {
    // NOLINTBEGIN(bugprone-exception-escape): a test that has no memory may end
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

TEST(AsyncProducer, every_allocation_fails_once) {
  Ledger ledger;
  const std::int64_t failed = fail_each_allocation([&](Injection& inject) {
    PeerHandler peer;
    peer.log.reserve(9);  // so that no allocation is the peer's
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

TEST(AsyncProducer, that_was_moved_from_is_an_error_and_leaks_nothing) {
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
