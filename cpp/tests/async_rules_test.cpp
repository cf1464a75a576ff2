// The rules of the async interface about the exchanged data: schema, batches and metadata.
#include <gtest/gtest.h>

#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "alloc_failure.hpp"
#include "async_support.hpp"
#include "fletching/async_consumer.hpp"
#include "fletching/async_producer.hpp"
#include "fletching/executor.hpp"

namespace fletching::testing {
namespace {

// --- Schema and batches ---

/// A batch with a child that the schema "i" does not have. The child is not a separate allocation.
DeviceArray other_batch(Ledger& ledger) {
  static ArrowArray child{};
  static ArrowArray* children[] = {&child};
  DeviceArray batch = a_batch(ledger);
  batch->array.n_children = 1;
  batch->array.children = children;
  return batch;
}

/// A batch of indices into a dictionary that the schema "i" does not have.
DeviceArray encoded_batch(Ledger& ledger) {
  static ArrowArray dictionary{};
  DeviceArray batch = a_batch(ledger);
  batch->array.dictionary = &dictionary;
  return batch;
}

constexpr DeviceArray (*kOtherBatches[])(Ledger&) = {other_batch, encoded_batch};

void expect_names_the_rule(const std::string& message) {
  EXPECT_NE(message.find("async-next.same-schema"), std::string::npos) << message;
}

TEST(Rules, AsyncNextSameSchema) {
  for (const auto make : kOtherBatches) {
    ProducerBench bench;
    bench.deliver(2, 0);
    const Status pushed = bench.producer.push(make(bench.ledger));
    ASSERT_EQ(code_of(pushed), EINVAL);
    expect_names_the_rule(pushed.error().message());
    EXPECT_EQ(bench.ledger.live(), 1) << "the schema";
    EXPECT_TRUE(bench.producer.push(a_batch(bench.ledger)).ok()) << "and the stream goes on";
  }
}

TEST(SameSchema, RejectsOtherSchemaFromFactory) {
  for (const auto make : kOtherBatches) {
    ProducerBench bench;
    bench.deliver(1, 0);
    (void)bench.producer.push_made([&](ArrowDeviceArray* out) -> Status {
      make(bench.ledger).move_to(out);
      return {};
    });
    bench.queue.run_ready();
    DeviceArray array;
    EXPECT_EQ(bench.peer.extract(0, array.out()), EINVAL);
    EXPECT_TRUE(array.is_released());
    EXPECT_EQ(bench.ledger.live(), 1) << "the schema";
    bench.queue.run_ready();
    expect_names_the_rule(bench.peer.message);
  }
}

TEST(SameSchema, RejectsOtherSchemaFromPeer) {
  for (const auto make : kOtherBatches) {
    for (const bool released : {false, true}) {
      static DeviceArray (*made)(Ledger&);
      made = make;
      ConsumerBench bench;
      bench.receive(1, 0);
      ArrowAsyncTask task{[](ArrowAsyncTask* self, ArrowDeviceArray* out) {
                            if (out != nullptr) {
                              made(*static_cast<Ledger*>(self->private_data)).move_to(out);
                            }
                            return 0;
                          },
                          &bench.peer.ledger};
      EXPECT_EQ(bench.peer.handler->on_next_task(bench.peer.handler, &task, nullptr), 0);
      bench.peer.end();
      if (released) bench.peer.release();
      const Result<AsyncBatch> batch = bench.consumer.take().value();
      ASSERT_EQ(code_of(batch), EINVAL);
      expect_names_the_rule(batch.error().message());
      EXPECT_EQ(bench.peer.ledger.live(), 1) << "the schema";
      if (!released) bench.peer.release();
    }
  }
}

/// A batch whose only fault is its number of buffers; only strict mode rejects it.
TEST(SameSchema, StrictComparesWholeTree) {
  for (const bool strict : {false, true}) {
    PeerProducer peer;
    auto listener = std::make_shared<LoggingListener>();
    auto consumer = AsyncConsumer::create(listener, {.strict = strict}).value();
    peer.handler = consumer.handler();
    peer.handler->producer = &peer.raw;
    ASSERT_EQ(peer.give_schema(), 0);
    ASSERT_TRUE(consumer.request(1));
    ASSERT_EQ(peer.give_task(), 0);
    const Result<AsyncBatch> batch = consumer.take().value();
    EXPECT_EQ(code_of(batch), strict ? EINVAL : 0);
    if (strict) {
      EXPECT_EQ(batch.error().message(),
                "batch: differs from the stream's schema (rule async-next.same-schema): "
                "array: n_buffers is wrong: expected 2, got 0 (rule array.n-buffers-of-type)");
    }
    peer.end();
    peer.release();
  }
}

TEST(SameSchema, StrictAcceptsMatchingBatch) {
  PeerProducer peer;
  auto listener = std::make_shared<LoggingListener>();
  auto consumer = AsyncConsumer::create(listener, {.strict = true}).value();
  peer.handler = consumer.handler();
  peer.handler->producer = &peer.raw;
  ASSERT_EQ(peer.give_schema(), 0);
  ASSERT_TRUE(consumer.request(1));
  ArrowAsyncTask task{[](ArrowAsyncTask* self, ArrowDeviceArray* out) {
                        static const void* buffers[2] = {};
                        if (out == nullptr) return 0;
                        a_batch(*static_cast<Ledger*>(self->private_data)).move_to(out);
                        out->array.n_buffers = 2;
                        out->array.buffers = buffers;
                        return 0;
                      },
                      &peer.ledger};
  ASSERT_EQ(peer.handler->on_next_task(peer.handler, &task, nullptr), 0);
  EXPECT_EQ(code_of(*consumer.take()), 0);
  peer.end();
  peer.release();
}

TEST(SameSchema, StrictRejectsMalformedSchema) {
  for (const bool strict : {false, true}) {
    Ledger ledger;
    PeerProducer peer;
    auto listener = std::make_shared<LoggingListener>();
    auto consumer = AsyncConsumer::create(listener, {.strict = strict}).value();
    peer.handler = consumer.handler();
    peer.handler->producer = &peer.raw;
    Schema schema = a_schema(ledger);
    schema->format = nullptr;
    EXPECT_EQ(peer.handler->on_schema(peer.handler, schema.get()), strict ? EINVAL : 0);
    EXPECT_EQ(schema.is_released(), !strict) << "a refused schema stays the producer's";
    if (!strict) peer.end();
    peer.release();
  }
}

// --- Metadata ---

/// Malformed blocks: too short, with a negative count, with a length past the end, and with
/// trailing bytes.
std::vector<std::string> bad_blocks() {
  return {"ab", std::string(4, '\xff'), std::string("\1\0\0\0\x7f\0\0\0", 8), a_block() + "more"};
}

TEST(Rules, AsyncNextMetadataEncoding) {
  for (const std::string& block : bad_blocks()) {
    ProducerBench bench;
    bench.deliver(9, 0);
    EXPECT_EQ(code_of(bench.producer.push(a_batch(bench.ledger), block)), EINVAL);
    EXPECT_EQ(code_of(bench.producer.push_made(
                  [](ArrowDeviceArray*) -> Status { return Error(EIO, "made"); }, block)),
              EINVAL);
    EXPECT_TRUE(bench.producer.push(a_batch(bench.ledger), a_block()).ok());
    EXPECT_TRUE(bench.producer.push(a_batch(bench.ledger)).ok());
    bench.queue.run_ready();
    EXPECT_EQ(bench.peer.task_metadata, (Log{a_block(), "NULL"}));
  }
  // Metadata from a peer: the task is rejected, and the peer still owns it.
  ConsumerBench bench;
  bench.receive(1, 0);
  EXPECT_EQ(bench.peer.give_task(0, "\xff\xff\xff\xff"), EINVAL);
  EXPECT_EQ(bench.peer.tasks.at(0)->extracted, 0);
  EXPECT_NE(bench.listener->message.find("metadata"), std::string::npos);
  bench.peer.release();
}

TEST(Rules, AsyncErrorMetadataEncoding) {
  for (const std::string& block : bad_blocks()) {
    ProducerBench bench;
    bench.producer.fail(Error(EACCES, "closed"), block);
    bench.queue.run_ready();
    EXPECT_EQ(bench.peer.log.front(), "on_error " + std::to_string(EACCES))
        << "reported nevertheless";
    EXPECT_EQ(bench.peer.error_metadata, "NULL");
  }
  ConsumerBench bench;
  bench.peer.fail(EACCES, "closed", "\xff\xff\xff\xff");
  EXPECT_EQ(bench.listener->message, "closed") << "reported nevertheless";
  EXPECT_EQ(bench.listener->error_metadata, "");
  bench.peer.release();
}

TEST(Rules, AsyncProducerMetadataEncoding) {
  for (const std::string& block : bad_blocks()) {
    PeerHandler peer;
    RunQueue queue;
    const auto producer =
        AsyncProducer::start(&peer.raw, queue, {ARROW_DEVICE_CPU, block, nullptr});
    EXPECT_EQ(code_of(producer), EINVAL);
    EXPECT_EQ(peer.raw.producer, nullptr);
  }
  ConsumerBench bench;
  bench.peer.raw.additional_metadata = "\xff\xff\xff\xff";
  EXPECT_EQ(bench.peer.give_schema(), EINVAL);
  EXPECT_NE(bench.listener->message.find("metadata"), std::string::npos);
  bench.peer.release();
}

// --- The cost of a task ---

/// A consumer that blocks in on_next_task for its second task until the test releases it.
struct BusyHandler : PeerHandler {
  BusyHandler() {
    inside = [this](const std::string& name) {
      if (name != "task" || tasks.size() != 2) return;
      std::unique_lock lock(mutex);
      busy = true;
      changed.notify_all();
      changed.wait(lock, [this] { return !busy; });
    };
  }
  void wait_until_busy() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return busy; });
  }
  void let_go() {
    const std::lock_guard lock(mutex);
    busy = false;
    changed.notify_all();
  }

  std::mutex mutex;
  std::condition_variable changed;
  bool busy = false;
};

// Neither waits nor allocates, even while a handler call is blocked.
TEST(Rules, AsyncTaskNoBlocking) {
  Ledger ledger;
  BusyHandler peer;
  RunQueue queue;
  AsyncProducer producer = AsyncProducer::start(&peer.raw, queue).value();
  ASSERT_TRUE(producer.schema(a_schema(ledger)).ok());
  queue.run_ready();
  peer.request(2);
  ASSERT_TRUE(producer.push(a_batch(ledger)).ok());
  ASSERT_TRUE(producer.push(a_batch(ledger)).ok());
  ASSERT_TRUE(producer.end().ok());
  std::thread running([&] { queue.run_ready(); });
  peer.wait_until_busy();
  ArrowAsyncTask first = peer.tasks.at(0);
  ArrowDeviceArray out{};
  const std::int64_t before = allocations();
  EXPECT_EQ(first.extract_data(&first, &out), 0);
  EXPECT_EQ(allocations(), before);
  DeviceArray array(&out);
  EXPECT_FALSE(array.is_released());
  peer.let_go();
  running.join();
  EXPECT_EQ(peer.extract(1, nullptr), 0);
  queue.run_ready();
  EXPECT_EQ(peer.log.back(), "release");
}

}  // namespace
}  // namespace fletching::testing
