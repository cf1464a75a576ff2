// Thousands of concurrent async streams: 0, 1, 3 and 100 batches, with a cancel, failure, rejection
// or lost extraction at a random point, on several threads. FLETCHING_ASYNC_STREAMS sets their
// number.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "async_support.hpp"
#include "fletching/async_adapters.hpp"

namespace fletching::testing {
namespace {

constexpr std::chrono::seconds kPatience{60};  // half of ctest's timeout
constexpr std::uint64_t kSeed = 20261121;
constexpr int kNever = -1;

std::int64_t streams_wanted() {
  const char* text = std::getenv("FLETCHING_ASYNC_STREAMS");
  return text == nullptr ? 400 : std::strtoll(text, nullptr, 10);
}

/// The plan of one stream.
struct Plan {
  explicit Plan(std::uint64_t number) {
    std::mt19937_64 random(kSeed + number);
    const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    batches = std::array{0, 1, 3, 100}[static_cast<std::size_t>(below(4))];
    window = 1 + below(8);
    const int place = below(batches + 2);
    switch (below(7)) {
      case 0:
        cancel_at = place;
        break;
      case 1:
        fail_at = place;
        break;
      case 2:
        lose_at = place;
        break;
      case 3:
        refuse_at = place;
        break;
      case 4:
        outside_cancel_at = place;
        break;
      default:
        break;
    }
    drops = below(3) == 0;
    inside = below(2) == 0;
    pulled = below(2) == 0;
    waits = !inside && below(2) == 0;
  }

  [[nodiscard]] bool undisturbed() const {
    return cancel_at == kNever && fail_at == kNever && lose_at == kNever && refuse_at == kNever &&
           outside_cancel_at == kNever;
  }

  int batches = 0;
  int window = 1;
  int cancel_at = kNever;          // the application cancels instead of reading this batch
  int fail_at = kNever;            // the source fails instead of delivering this batch
  int lose_at = kNever;            // the extraction of this batch fails
  int refuse_at = kNever;          // the application rejects this task
  int outside_cancel_at = kNever;  // a third thread cancels at about this batch
  bool drops = false;              // every third task is dropped
  bool inside = false;             // read inside on_task, otherwise on an application thread
  bool pulled = false;             // the source pushes on demand, otherwise all at once
  bool waits = false;              // read by two threads that block in wait_and_take
};

/// A condition to wait for, with a timeout that only a bug reaches.
class Gate {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    opened_.notify_all();
  }
  void wait(const std::string& what) {
    std::unique_lock lock(mutex_);
    if (opened_.wait_for(lock, kPatience, [this] { return open_; })) return;
    std::cerr << what << ": timed out\n";
    std::abort();
  }

 private:
  std::mutex mutex_;
  std::condition_variable opened_;
  bool open_ = false;
};

/// The consumer application.
class App final : public AsyncListener {
 public:
  explicit App(const Plan& plan) : plan_(plan) {}

  // NOLINTBEGIN(bugprone-exception-escape): the test may terminate if memory runs out
  Status accept_task(std::string_view) noexcept override {
    if (asked_++ != plan_.refuse_at) return {};
    return Error(ENOBUFS, "no more, thank you");
  }
  void on_schema(Schema schema, AsyncStreamInfo) noexcept override { schema_ = std::move(schema); }
  void on_task() noexcept override {
    if (plan_.inside) return read_one();
    if (plan_.waits) return;
    const std::lock_guard lock(mutex_);
    ++tasks_;
    told_.notify_one();
  }
  void on_end() noexcept override { finish(ends); }
  void on_error(const Error&, std::string_view) noexcept override { finish(errors); }
  // NOLINTEND(bugprone-exception-escape)

  /// Runs on the application's thread: reads until the stream is over.
  void read_all() {
    while (true) {
      std::unique_lock lock(mutex_);
      told_.wait(lock, [this] { return tasks_ > 0 || over_; });
      if (tasks_ == 0) return;
      --tasks_;
      lock.unlock();
      read_one();
    }
  }

  /// Runs on each of two application threads: reads without task notifications. The first batch
  /// that a thread takes need not be the first of the stream.
  void wait_for_all() {
    while (true) {
      const int number = seen_++;
      if (number == plan_.cancel_at) consumer->cancel();
      const std::optional<Result<AsyncBatch>> batch = consumer->wait_and_take(1);
      if (!batch) return;
      if (batch->ok()) ++read;
    }
  }

  /// Called when the stream is over; queued batches may still be read.
  void stop() {
    const std::lock_guard lock(mutex_);
    over_ = true;
    told_.notify_one();
  }

  AsyncConsumer* consumer = nullptr;
  std::atomic<int> ends{0};
  std::atomic<int> errors{0};
  std::atomic<int> read{0};

 private:
  void finish(std::atomic<int>& count) {
    ++count;
    stop();
  }

  void read_one() {
    const int number = seen_++;
    if (number == plan_.cancel_at) return consumer->cancel();
    if (plan_.drops && number % 3 == 2) {
      if (consumer->drop()) ++read;
    } else {
      const std::optional<Result<AsyncBatch>> batch = consumer->take();
      if (batch && batch->ok()) {
        EXPECT_EQ((*batch)->array->array.length, number) << "in order";
        ++read;
      }
    }
    EXPECT_TRUE(consumer->request(1).ok());
  }

  const Plan& plan_;
  Schema schema_;
  int asked_ = 0;
  std::atomic<int> seen_{0};
  std::mutex mutex_;
  std::condition_variable told_;
  int tasks_ = 0;
  bool over_ = false;
};

/// The source of the producer.
class Source final : public AsyncSource {
 public:
  Source(const Plan& plan, Ledger& ledger) : plan_(plan), ledger_(ledger) {}

  void on_demand(std::int64_t n) noexcept override {
    if (!plan_.pulled) return;
    for (; n > 0 && give(); --n) {
    }
  }
  void on_release() noexcept override { released.open(); }

  /// Pushes the next batch. Returns false if there is none.
  bool give() {
    const int number = given_++;
    if (number == plan_.fail_at) {
      producer->fail(Error(ENOSPC, "the source has failed"));
    } else if (number >= plan_.batches) {
      (void)producer->end();
    } else if (number == plan_.lose_at) {
      return producer->push_made([](ArrowDeviceArray*) -> Status { return Error(EIO, "lost"); })
          .ok();
    } else {
      return producer->push(a_batch(ledger_, number)).ok();
    }
    return false;
  }

  std::unique_ptr<AsyncProducer> producer;
  Gate released;

 private:
  const Plan& plan_;
  Ledger& ledger_;
  int given_ = 0;
};

/// The totals over all streams.
struct Totals {
  std::atomic<std::int64_t> made{0};
  std::atomic<std::int64_t> read{0};
  std::atomic<std::int64_t> ended{0};
  std::atomic<std::int64_t> failed{0};
  std::atomic<std::int64_t> cancelled{0};
};

void run_stream(std::uint64_t number, Executor& executor, Totals& totals) {
  SCOPED_TRACE("stream " + std::to_string(number));
  const Plan plan(number);
  Ledger ledger;
  {
    auto app = std::make_shared<App>(plan);
    AsyncConsumer consumer = AsyncConsumer::create(app).value();
    app->consumer = &consumer;
    auto source = std::make_shared<Source>(plan, ledger);
    source->producer = std::make_unique<AsyncProducer>(
        AsyncProducer::start(consumer.handler(), executor, {ARROW_DEVICE_CPU, {}, source}).value());
    EXPECT_TRUE(consumer.request(plan.window).ok());
    std::thread reader([&] {
      if (plan.waits) return app->wait_for_all();
      if (!plan.inside) app->read_all();
    });
    std::thread stranger([&] {
      if (plan.outside_cancel_at != kNever) consumer.cancel();
      if (plan.waits) app->wait_for_all();
    });
    (void)source->producer->schema(a_schema(ledger));
    while (!plan.pulled && source->give()) {
    }
    source->released.wait("release of stream " + std::to_string(number));
    app->stop();
    stranger.join();
    reader.join();
    EXPECT_LE(app->ends + app->errors, 1) << "notified of one end";
    if (plan.undisturbed()) {
      EXPECT_EQ(app->ends, 1);
      EXPECT_EQ(app->read, plan.batches) << "no task is lost";
    }
    EXPECT_EQ(consumer.state(), AsyncConsumerState::kReleased);
    totals.read += app->read;
    totals.ended += app->ends;
    totals.failed += app->errors;
    totals.cancelled += app->ends + app->errors == 0 ? 1 : 0;
  }
  totals.made += ledger.made;
  EXPECT_EQ(ledger.live(), 0) << "everything is released, once";
}

TEST(AsyncStress, StreamsEndAsPlanned) {
  constexpr int kLanes = 4;
  constexpr std::size_t kWorkers = 2;
  const std::int64_t wanted = streams_wanted();
  std::vector<std::unique_ptr<WorkerThread>> workers;
  workers.reserve(kWorkers);
  for (std::size_t i = 0; i < kWorkers; ++i) workers.push_back(WorkerThread::start().value());
  Totals totals;
  std::atomic<std::int64_t> next{0};
  std::vector<std::thread> lanes;
  lanes.reserve(kLanes);
  for (int i = 0; i < kLanes; ++i) {
    lanes.emplace_back([&] {
      for (std::int64_t n = next++; n < wanted && !::testing::Test::HasFailure(); n = next++) {
        run_stream(static_cast<std::uint64_t>(n), *workers[static_cast<std::size_t>(n) % kWorkers],
                   totals);
      }
    });
  }
  for (std::thread& lane : lanes) lane.join();
  std::cout << wanted << " streams, seed " << kSeed << ": " << totals.ended << " ended, "
            << totals.failed << " failed, " << totals.cancelled
            << " cancelled or lost; schemas and batches: " << totals.made << " made and released, "
            << totals.read << " read\n";
  EXPECT_EQ(totals.ended + totals.failed + totals.cancelled, wanted);
  RecordProperty("streams", std::to_string(wanted));
}

/// Pushes inside on_demand, while other threads push.
class ManySources final : public AsyncSource {
 public:
  static constexpr int kBatches = 300;  // per source
  static constexpr int kThreads = 2;

  explicit ManySources(Ledger& ledger) : ledger_(ledger) {}

  void on_demand(std::int64_t) noexcept override {
    if (std::exchange(asked_, true)) return;
    asked.open();
    while (pushing_ < kThreads) std::this_thread::yield();
    push_all(kThreads);
  }
  void on_release() noexcept override { released.open(); }

  /// Pushes all batches. The last source ends the stream.
  void push_all(int source) {
    for (int i = 0; i < kBatches; ++i) {
      EXPECT_TRUE(producer->push(a_batch(ledger_, (source * kBatches) + i)).ok());
      if (i == 0) ++pushing_;
    }
    if (finished_.fetch_add(1) < kThreads) return;
    EXPECT_TRUE(producer->end().ok());
  }

  std::unique_ptr<AsyncProducer> producer;
  Gate asked;
  Gate released;

 private:
  Ledger& ledger_;
  bool asked_ = false;
  std::atomic<int> pushing_{0};
  std::atomic<int> finished_{0};
};

// Batches pushed inside on_demand take a different code path than those pushed by other threads.
TEST(AsyncStress, KeepsBatchOrderPerSource) {
  constexpr int kRounds = 20;
  auto worker = WorkerThread::start().value();
  for (int round = 0; round < kRounds; ++round) {
    Ledger ledger;
    auto sources = std::make_shared<ManySources>(ledger);
    AsyncReader reader = AsyncReader::create(1 + round % 8).value();
    sources->producer = std::make_unique<AsyncProducer>(
        AsyncProducer::start(reader.handler(), *worker, {ARROW_DEVICE_CPU, {}, sources}).value());
    EXPECT_TRUE(sources->producer->schema(a_schema(ledger)).ok());
    std::vector<std::thread> threads;
    threads.reserve(ManySources::kThreads);
    for (int i = 0; i < ManySources::kThreads; ++i) {
      threads.emplace_back([&sources, i] {
        sources->asked.wait("demand");
        sources->push_all(i);
      });
    }
    std::array<int, ManySources::kThreads + 1> next{};
    while (std::optional<Result<DeviceArray>> batch = reader()) {
      ASSERT_TRUE(batch->ok());
      const auto label = static_cast<int>((*batch)->length());
      const int source = label / ManySources::kBatches;
      EXPECT_EQ(label % ManySources::kBatches, next.at(static_cast<std::size_t>(source))++);
    }
    for (const int count : next) EXPECT_EQ(count, ManySources::kBatches);
    for (std::thread& thread : threads) thread.join();
    sources->released.wait("release");
    EXPECT_EQ(ledger.live(), 1) << "the schema, in the mailbox";
  }
}

}  // namespace
}  // namespace fletching::testing
