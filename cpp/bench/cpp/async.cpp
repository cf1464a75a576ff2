// SPDX-License-Identifier: Apache-2.0
//
// Async streams: nanoseconds per batch, or with FLETCHING_COUNT allocations and locks per batch,
// for the library, a hand-written producer and consumer, and libarrow on both ends.
//
//     async CASE BATCHES [STREAMS]     one line of JSON
//
// Single-threaded cases report CPU time, which a busy machine does not distort, and so do several
// streams at once. The other cases report elapsed time.
//
// inline: one thread; the consumer reads the batch within the handler call. hop: the producer's
// thread makes the handler calls, the consumer's thread extracts and releases. pairs: the same with
// several streams at once, which share BATCHES. The window is 64 batches in each case.

#include <arrow/api.h>
#include <arrow/c/bridge.h>
#include <arrow/util/async_generator.h>
#include <arrow/util/thread_pool.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <future>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "async_ring.hpp"
#include "counters.hpp"
#include "fletching/async_adapters.hpp"
#include "fletching/async_consumer.hpp"
#include "fletching/async_producer.hpp"

namespace {

constexpr std::int64_t kWindow = 64;

std::atomic<std::int64_t> released{0};

/// A batch without data: the benchmark measures the stream, not the payload.
ArrowDeviceArray batch() {
  ArrowDeviceArray array{};
  array.array.length = 1;
  array.array.release = [](ArrowArray* self) {
    released.fetch_add(1, std::memory_order_relaxed);
    self->release = nullptr;
  };
  array.device_type = ARROW_DEVICE_CPU;
  array.device_id = -1;
  return array;
}

ArrowSchema schema() {
  ArrowSchema schema{};
  schema.format = "i";
  schema.release = [](ArrowSchema* self) { self->release = nullptr; };
  return schema;
}

// Hand-written.

void ring_inline(std::int64_t batches) {
  ring::Consumer consumer(kWindow, true);
  ring::Producer producer(consumer.handler());
  ArrowSchema c_schema = schema();
  producer.schema(&c_schema);
  for (std::int64_t given = 0; given < batches && producer.demand() > 0; ++given) {
    ArrowDeviceArray array = batch();
    producer.give(&array);
  }
  producer.finish();
}

void ring_hop(std::int64_t batches) {
  ring::Consumer consumer(kWindow, false);
  ring::Producer producer(consumer.handler());
  std::thread thread([&] {
    ArrowSchema c_schema = schema();
    producer.schema(&c_schema);
    for (std::int64_t given = 0; given < batches && producer.wait_for_demand() > 0; ++given) {
      ArrowDeviceArray array = batch();
      producer.give(&array);
    }
    producer.finish();
  });
  ArrowDeviceArray out;
  while (consumer.next(&out)) out.array.release(&out.array);
  thread.join();
}

// The library.

class Reading final : public fletching::AsyncListener {
 public:
  void on_schema(fletching::Schema, fletching::AsyncStreamInfo) noexcept override {}
  void on_task() noexcept override {
    (void)consumer->take();  // and release it
    if (++read_ < kWindow / 2) return;
    (void)consumer->request(read_);
    read_ = 0;
  }
  void on_end() noexcept override {}
  void on_error(const fletching::Error&, std::string_view) noexcept override {}

  fletching::AsyncConsumer* consumer = nullptr;

 private:
  std::int64_t read_ = 0;
};

/// Pushes the requested batches on the producer's thread.
class Giving final : public fletching::AsyncSource {
 public:
  explicit Giving(std::int64_t batches) : left_(batches) {}
  void on_demand(std::int64_t n) noexcept override {
    for (; n > 0 && left_ > 0; --n, --left_) {
      ArrowDeviceArray array = batch();
      (void)producer->push(fletching::DeviceArray(&array));
    }
    if (left_ == 0) (void)producer->end();
  }

  fletching::AsyncProducer* producer = nullptr;

 private:
  std::int64_t left_;
};

void ours_inline(std::int64_t batches) {
  auto listener = std::make_shared<Reading>();
  auto consumer = fletching::AsyncConsumer::create(listener).value();
  listener->consumer = &consumer;
  (void)consumer.request(kWindow);
  fletching::RunQueue queue;
  auto source = std::make_shared<Giving>(batches);
  auto producer =
      fletching::AsyncProducer::start(consumer.handler(), queue, {ARROW_DEVICE_CPU, {}, source})
          .value();
  source->producer = &producer;
  ArrowSchema c_schema = schema();
  (void)producer.schema(fletching::Schema(&c_schema));
  queue.run_ready();
}

void ours_hop(std::int64_t batches) {
  auto worker = fletching::WorkerThread::start().value();
  auto reader = fletching::AsyncReader::create(kWindow).value();
  auto source = std::make_shared<Giving>(batches);
  auto producer =
      fletching::AsyncProducer::start(reader.handler(), *worker, {ARROW_DEVICE_CPU, {}, source})
          .value();
  source->producer = &producer;
  ArrowSchema c_schema = schema();
  (void)producer.schema(fletching::Schema(&c_schema));
  while (true) {
    const std::optional<fletching::Result<fletching::DeviceArray>> read = reader();
    if (!read || !read->ok()) break;
  }
  worker.reset();  // joins: the handler is released
}

// libarrow.

void libarrow_hop(std::int64_t batches) {
  arrow::Int32Builder builder;
  (void)builder.Append(1);
  const auto record = arrow::RecordBatch::Make(arrow::schema({arrow::field("", arrow::int32())}), 1,
                                               {builder.Finish().ValueOrDie()});
  ArrowAsyncDeviceStreamHandler handler{};
  auto opened =
      arrow::CreateAsyncDeviceStreamHandler(&handler, arrow::internal::GetCpuThreadPool(), kWindow);
  auto sent = std::async(std::launch::async, [&, left = batches]() mutable {
    using Next = arrow::Future<std::shared_ptr<arrow::RecordBatch>>;
    return arrow::ExportAsyncRecordBatchReader(
               record->schema(), [&] { return Next::MakeFinished(left-- > 0 ? record : nullptr); },
               arrow::DeviceAllocationType::kCPU, &handler)
        .status();
  });
  auto stream = opened.result().ValueOrDie();
  while (stream.generator().result().ValueOrDie().batch != nullptr) {
    released.fetch_add(1, std::memory_order_relaxed);
  }
  (void)sent.get();
}

struct Case {
  const char* name;
  void (*run)(std::int64_t batches);
  clockid_t clock = CLOCK_MONOTONIC;
};

constexpr Case kCases[] = {{"ring_inline", ring_inline, CLOCK_THREAD_CPUTIME_ID},
                           {"ring_hop", ring_hop},
                           {"fletching_inline", ours_inline, CLOCK_THREAD_CPUTIME_ID},
                           {"fletching_hop", ours_hop},
                           {"ring_pairs", ring_hop, CLOCK_PROCESS_CPUTIME_ID},
                           {"fletching_pairs", ours_hop, CLOCK_PROCESS_CPUTIME_ID},
                           {"libarrow_hop", libarrow_hop}};

double nanoseconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return (static_cast<double>(now.tv_sec) * 1e9) + static_cast<double>(now.tv_nsec);
}

}  // namespace

void run(const Case& one, std::int64_t batches, std::int64_t streams) {
  std::vector<std::jthread> others;
  for (std::int64_t i = 1; i < streams; ++i) {
    others.emplace_back([&] { one.run(batches / streams); });
  }
  one.run(batches / streams);
}

int main(int argc, char** argv) {
  const std::int64_t batches = argc >= 3 ? std::strtoll(argv[2], nullptr, 10) : 0;
  const std::int64_t streams = argc >= 4 ? std::strtoll(argv[3], nullptr, 10) : 1;
  for (const Case& one : kCases) {
    if (batches <= 0 || std::strcmp(argv[1], one.name) != 0) continue;
    one.run(kWindow);  // warms up
    released = 0;
    const Counters before = Counters::now();
    const double begin = nanoseconds(one.clock);
    run(one, batches, streams);
    const double took = nanoseconds(one.clock) - begin;
    const Counters after = Counters::now();
    const auto each = static_cast<double>(batches);
    if (released != batches) {
      std::fprintf(stderr, "%s: expected %lld batches, got %lld\n", one.name,
                   static_cast<long long>(batches), static_cast<long long>(released));
      return 1;
    }
    std::printf(R"({"case": "%s", "batches": %lld, "ns": %.1f)", one.name,
                static_cast<long long>(batches), took / each);
    if (Counters::kOn) {
      std::printf(R"(, "allocations": %.2f, "locks": %.2f)",
                  static_cast<double>(after.allocations - before.allocations) / each,
                  static_cast<double>(after.locks - before.locks) / each);
    }
    std::puts("}");
    return 0;
  }
  std::fprintf(stderr, "usage: %s CASE BATCHES [STREAMS]; the cases are", argv[0]);
  for (const Case& one : kCases) std::fprintf(stderr, " %s", one.name);
  std::fputs("\n", stderr);
  return 2;
}
