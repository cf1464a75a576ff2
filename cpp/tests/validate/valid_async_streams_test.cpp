// SPDX-License-Identifier: Apache-2.0
//
// Valid async streams have no findings; libarrow's known faults do.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <future>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../alloc_failure.hpp"
#include "async_bench.hpp"
#include "findings.hpp"
#include "fletching/async_adapters.hpp"
#include "fletching/async_consumer.hpp"
#include "fletching/async_producer.hpp"
#include "fletching/executor.hpp"
#include "fletching/validate.h"
#include "gate.h"
#include "producer.h"

namespace fletching::testing {
namespace {

void expect_no_findings(const Findings& findings) {
  for (std::size_t i = 0; i < findings.list.size(); ++i) {
    ADD_FAILURE() << findings.list[i] << ": " << findings.messages[i];
  }
}

ArrowAsyncDeviceStreamHandler* validated(ArrowAsyncDeviceStreamHandler* handler,
                                         Findings& findings) {
  const FletchingValidateOptions options = findings.options(FLETCHING_VALIDATE_DATA);
  EXPECT_EQ(FletchingValidateAsyncHandler(&handler, &options, nullptr), 0);
  return handler;
}

// --- The reference producer ---

void verify_catalogue_stream(const char* name, std::int64_t fail_at, std::uint32_t stress) {
  constexpr std::int64_t kBatches = 3;
  SCOPED_TRACE(std::string(name) + ", fails at " + std::to_string(fail_at) + ", stress " +
               std::to_string(stress));
  Findings findings;
  findings.stress = stress;
  FletchingMessage message{};
  // A failure drops unread batches, so the reader requests them one at a time.
  Result<AsyncReader> reader = AsyncReader::create(fail_at < 0 ? kBatches : 1);
  ASSERT_TRUE(reader.ok());
  ASSERT_EQ(FletchingProducerRunAsync("cpu", nullptr, name, kBatches, fail_at,
                                      validated(reader->handler(), findings), &message),
            0)
      << message.text;
  Result<DeviceArrayStream> stream = std::move(*reader).open();
  ASSERT_TRUE(stream.ok()) << stream.error().message();
  ArrowDeviceArrayStream raw{};
  stream->move_to(&raw);
  EXPECT_EQ(FletchingProducerVerifyStream("cpu", name, kBatches, fail_at, &raw, &message), 0)
      << message.text;
  FletchingProducerAwaitAsync();
  EXPECT_EQ(FletchingValidateLive(), 0);
  expect_no_findings(findings);
}

TEST(ValidAsyncStreamTest, AcceptsCatalogue) {
  for (std::int32_t i = 0; i < FletchingProducerCaseCount(); ++i) {
    for (const std::int64_t fail_at : {-1, 1}) {
      for (const std::uint32_t stress : {0U, kAllStress}) {
        verify_catalogue_stream(FletchingProducerCaseName(i), fail_at, stress);
      }
    }
  }
}

// --- Both sides of the library ---

/// A valid array of int32, with a null, for the layer to read.
DeviceArray int32_batch(Ledger& ledger) {
  static constexpr std::uint8_t kValidity = 0b101;
  static constexpr std::int32_t kValues[3] = {1, 0, 3};
  static const void* buffers[2] = {&kValidity, kValues};
  DeviceArray batch = a_batch(ledger, std::size(kValues));
  batch->array.null_count = 1;
  batch->array.n_buffers = 2;
  batch->array.buffers = buffers;
  return batch;
}

/// The parameters of one stream.
struct Plan {
  int batches = 0;
  std::int64_t window = 1;
  bool inside = true;
  int cancel_at = -1;
  int refuse_at = -1;
  int fail_at = -1;
};

/// Pushes batches as they are requested. The batch at `fail_at` fails when it is extracted.
struct CountingSource final : AsyncSource {
  CountingSource(Ledger& counted, const Plan& plan)
      : ledger(counted), batches(plan.batches), fail_at(plan.fail_at) {}

  void begin(AsyncProducer given) {
    producer.emplace(std::move(given));
    (void)producer->schema(a_schema(ledger));
    if (batches == 0) (void)producer->end();
  }
  // NOLINTNEXTLINE(bugprone-exception-escape): the test may terminate if memory runs out
  void on_demand(std::int64_t /*n*/) noexcept override {
    if (next == batches) return;
    if (next++ == fail_at) {
      (void)producer->push_made([](ArrowDeviceArray*) -> Status { return Error(EIO, "lost"); });
    } else {
      (void)producer->push(int32_batch(ledger), a_block());
    }
    if (next == batches) (void)producer->end();
  }

  void on_release() noexcept override { released.set_value(); }

  Ledger& ledger;
  const int batches;
  const int fail_at;
  int next = 0;
  std::optional<AsyncProducer> producer;
  std::promise<void> released;
};

struct Counts {
  std::atomic<int> taken = 0;
  std::atomic<int> ended = 0;
  std::atomic<int> failed = 0;
  std::atomic<int> refused = 0;
  std::atomic<int> cancelled = 0;
};

/// Takes each batch inside on_task, unless another thread takes it.
struct TakingListener final : AsyncListener {
  TakingListener(const Plan& given, Counts& of_all) : plan(given), counts(of_all) {}

  Status accept_task(std::string_view /*metadata*/) noexcept override {
    if (tasks == plan.refuse_at) return Error(EACCES, "refused");
    return {};
  }
  void on_schema(Schema given, AsyncStreamInfo /*info*/) noexcept override {
    schema = std::move(given);
    (void)consumer->request(plan.window);
  }
  void on_task() noexcept override {
    if (tasks++ == plan.cancel_at) {
      ++counts.cancelled;
      consumer->cancel();
    } else if (plan.inside) {
      count(consumer->take(1));
    }
  }
  void on_end() noexcept override { ++counts.ended; }
  void on_error(const Error& error, std::string_view /*metadata*/) noexcept override {
    ++(error.code() == EACCES ? counts.refused : counts.failed);
  }

  /// A failed extraction is the only report of the error.
  bool count(const std::optional<Result<AsyncBatch>>& batch) noexcept {
    if (batch.has_value()) ++(batch->ok() ? counts.taken : counts.failed);
    return batch.has_value();
  }

  const Plan plan;
  Counts& counts;
  AsyncConsumer* consumer = nullptr;
  Schema schema;
  int tasks = 0;
};

/// Every kind of end, with windows of 1 and 64, by number. No stream has both a cancel and an
/// error: the layer cannot know which came first.
Plan plan_of(int number) {
  Plan plan{.batches = number % 5 * 4, .window = number % 2 == 0 ? 1 : 64};
  plan.inside = number % 3 != 0;
  const int place = number % 7;
  if (number % 11 == 1) plan.cancel_at = place;
  if (number % 11 == 4) plan.refuse_at = place;
  if (number % 11 == 7) plan.fail_at = place;
  return plan;
}

/// Returns when the handler is released.
void run_stream(const Plan& plan, Executor& executor, Findings& findings, Counts& counts) {
  Ledger ledger;
  {
    auto listener = std::make_shared<TakingListener>(plan, counts);
    AsyncConsumer consumer = AsyncConsumer::create(listener).value();
    listener->consumer = &consumer;
    auto source = std::make_shared<CountingSource>(ledger, plan);
    auto producer = AsyncProducer::start(validated(consumer.handler(), findings), executor,
                                         {ARROW_DEVICE_CPU, {}, source});
    ASSERT_TRUE(producer.ok());
    std::future<void> released = source->released.get_future();
    source->begin(*std::move(producer));
    while (!plan.inside && listener->count(consumer.wait_and_take(1))) {
    }
    released.wait();
    source->producer.reset();
  }
  EXPECT_EQ(ledger.live(), 0);
}

int streams_wanted() {
  const char* const text = std::getenv("FLETCHING_ASYNC_STREAMS");
  return text == nullptr ? 1000 : std::atoi(text);
}

TEST(ValidAsyncStreamTest, AcceptsStreamsInThreads) {
  constexpr int kThreads = 4;
  const int of_each = streams_wanted() / kThreads;
  std::vector<std::thread> threads;
  std::vector<std::vector<Findings>> findings(kThreads);
  Counts counts;
  threads.reserve(kThreads);
  for (std::vector<Findings>& own : findings) {
    own.resize(static_cast<std::size_t>(of_each));
    for (std::size_t i = 0; i < own.size(); ++i) own[i].stress = kStress[i % std::size(kStress)];
    threads.emplace_back([&own, &counts, of_each] {
      auto worker = WorkerThread::start().value();
      for (int i = 0; i < of_each; ++i) {
        run_stream(plan_of(i), *worker, own.at(i), counts);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(FletchingValidateLive(), 0);
  std::cout << counts.taken << " batches taken; streams: " << counts.ended << " ended, "
            << counts.failed << " failed, " << counts.refused << " refused, " << counts.cancelled
            << " cancelled\n";
  EXPECT_GT(counts.ended, 0);
  EXPECT_GT(counts.failed, 0);
  EXPECT_GT(counts.refused, 0);
  EXPECT_GT(counts.cancelled, 0);
  for (const auto& own : findings) {
    for (const Findings& of_stream : own) expect_no_findings(of_stream);
  }
}

// --- Faults of libarrow 26 ---

using Bench = AsyncBench;

TEST(LibarrowTest, ReportsErrorAfterRejectedTask) {
  const Findings findings = Bench::run([](Bench& b) {
    b.consumer.refuse = "task";
    b.start();
    b.task();
    b.fail(EIO, "on_next_task returned 5");
    b.release();
  });
  EXPECT_EQ(findings.list, Log{"async.handler-failure-ends-stream error producer on_error[0]"});
  EXPECT_EQ(findings.histories.at(0),
            "on_schema[0] returned 0\nrequest[0] returned 0\non_next_task[0] returned 5");
}

// --- Arguments and late calls ---

TEST(ValidateAsyncHandlerTest, RejectsBadArgumentsAndLeavesHandlerUnchanged) {
  Findings findings;
  PeerHandler consumer;
  ArrowAsyncDeviceStreamHandler* handler = &consumer.raw;
  FletchingValidateOptions options = findings.options(3);
  EXPECT_EQ(FletchingValidateAsyncHandler(&handler, &options, nullptr), EINVAL);
  options = findings.options(0);
  options.size = 1;
  EXPECT_EQ(FletchingValidateAsyncHandler(&handler, &options, nullptr), EINVAL);
  EXPECT_EQ(handler, &consumer.raw);
  EXPECT_EQ(consumer.raw.producer, nullptr);
  handler = nullptr;
  options = findings.options(0);
  EXPECT_EQ(FletchingValidateAsyncHandler(&handler, &options, nullptr), EINVAL);
  EXPECT_EQ(FletchingValidateAsyncHandler(nullptr, &options, nullptr), EINVAL);
  EXPECT_EQ(FletchingValidateLive(), 0);
}

TEST(ValidateAsyncHandlerTest, LeavesHandlerUnchangedWithoutMemory) {
  Findings findings;
  const FletchingValidateOptions options = findings.options(FLETCHING_VALIDATE_PROTOCOL);
  PeerHandler consumer;
  ArrowAsyncDeviceStreamHandler* handler = &consumer.raw;
  int failures = 0;
  for (bool fired = true; fired; ++failures) {
    int code = 0;
    {
      const FailAllocation failure(failures);
      code = FletchingValidateAsyncHandler(&handler, &options, nullptr);
      fired = failure.fired();
    }
    EXPECT_EQ(code, fired ? ENOMEM : 0);
    EXPECT_EQ(FletchingValidateLive(), fired ? 0 : 1);
    EXPECT_EQ(handler == &consumer.raw, fired);
    EXPECT_EQ(consumer.raw.producer == nullptr, fired);
  }
  EXPECT_GE(failures, 5);
  handler->release(handler);
}

TEST(ValidateAsyncHandlerTest, PassesTaskUnwatchedWithoutMemory) {
  const auto empty_array = [](ArrowAsyncTask* /*self*/, ArrowDeviceArray* /*out*/) { return 0; };
  for (int i = 0; i < 2; ++i) {
    const Findings findings = Bench::run([&](Bench& b) {
      b.start();
      bool fired = false;
      {
        const FailAllocation failure(i);
        b.custom_task(empty_array);
        fired = failure.fired();
      }
      EXPECT_TRUE(fired);
      EXPECT_EQ(b.consumer.tasks.at(0).private_data, &b) << "the task of the producer";
      EXPECT_EQ(b.drop(), 0);
      b.end();
      b.release();
    });
    expect_no_findings(findings);
  }
}

/// A handler that wraps a wrapped handler: both report the fault and nothing else.
TEST(ValidateAsyncHandlerTest, WrapsWrappedHandler) {
  Findings outer;
  const Findings inner = Bench::run([&](Bench& b) {
    b.producer.handler = validated(b.wrapped, outer);
    b.producer.handler->producer = &b.producer.raw;
    b.start(1);
    b.task();
    b.task();
    EXPECT_EQ(b.drop(0), 0);
    EXPECT_EQ(b.drop(1), 0);
    b.end();
    b.release();
  });
  const Log expected{"async-request.not-exceeded error producer on_next_task[1]"};
  EXPECT_EQ(inner.list, expected);
  EXPECT_EQ(outer.list, expected);
}

}  // namespace
}  // namespace fletching::testing
