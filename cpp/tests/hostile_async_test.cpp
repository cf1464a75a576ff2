// SPDX-License-Identifier: Apache-2.0
//
// Async producers of the hostile peer with our consumer, and our producer with its consumers.
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "fletching/async_adapters.hpp"
#include "fletching/async_consumer.hpp"
#include "fletching/async_producer.hpp"
#include "fletching/executor.hpp"
#include "hostile.hpp"

namespace fletching::testing {
namespace {

// An application: takes inside on_task, or leaves the tasks to a thread of its own.
class Application final : public AsyncListener {
 public:
  explicit Application(bool takes_inside) : takes_inside_(takes_inside) {}

  void connect(AsyncConsumer* consumer) noexcept { consumer_ = consumer; }

  void on_schema(Schema schema, AsyncStreamInfo) noexcept override {
    EXPECT_FALSE(schema.is_released());
    update([&] { begun_ = true; });
  }

  void on_task() noexcept override {
    if (takes_inside_) {
      take();
    } else {
      update([&] { ++queued_; });
    }
  }

  void on_end() noexcept override {
    update([&] { over_ = true; });
  }

  void on_error(const Error& error, std::string_view) noexcept override {
    update([&] {
      over_ = true;
      if (!error_) error_ = error;
    });
  }

  // Takes all batches until the stream is over.
  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      told_.wait(lock, [&] { return over_ || queued_ > 0; });
      if (queued_ == 0) return;
      --queued_;
      lock.unlock();
      take();
      lock.lock();
    }
  }

  void wait_for_schema() {
    std::unique_lock lock(mutex_);
    told_.wait(lock, [&] { return over_ || begun_; });
  }

  std::optional<Error> error() {
    const std::lock_guard lock(mutex_);
    return error_;
  }
  [[nodiscard]] int taken() const { return taken_; }

 private:
  void take() noexcept {
    const std::optional<Result<AsyncBatch>> batch = consumer_->take();
    if (batch && !batch->ok()) {
      update([&] {
        over_ = true;
        if (!error_) error_ = batch->error();
      });
      return;
    }
    if (batch) ++taken_;
    EXPECT_TRUE(consumer_->request(1));
  }

  template <class Change>
  void update(const Change& change) noexcept {
    const std::lock_guard lock(mutex_);
    change();
    told_.notify_all();
  }

  const bool takes_inside_;
  AsyncConsumer* consumer_ = nullptr;
  std::mutex mutex_;
  std::condition_variable told_;
  std::optional<Error> error_;
  int queued_ = 0;
  bool begun_ = false;
  bool over_ = false;
  std::atomic<int> taken_ = 0;
};

void play_producer(const HostileCase& played, bool takes_inside) {
  auto application = std::make_shared<Application>(takes_inside);
  Result<AsyncConsumer> consumer = AsyncConsumer::create(application);
  ASSERT_TRUE(consumer);
  application->connect(&*consumer);
  ASSERT_TRUE(consumer->request(1));
  FletchingMessage message;
  ASSERT_EQ(FletchingHostileStartProducer(played.c_str(), consumer->handler(), &message), 0)
      << message.text;
  if (played.outcome == kFletchingHostileStalled) {
    application->wait_for_schema();
    consumer->cancel();
  } else if (!takes_inside) {
    application->run();
  }
  finish(played);
  check_outcome(played, application->error());
  if (played.outcome == kFletchingHostileAccepted) {
    EXPECT_EQ(application->taken(), batches_of_producer(played)) << played.name;
  }
}

TEST(HostileAsync, ProducersAndAConsumerThatTakesInside) {
  for (const HostileCase& played : hostile_cases(kFletchingHostileProducer)) {
    SCOPED_TRACE(played.name);
    play_producer(played, true);
  }
}

TEST(HostileAsync, ProducersAndAConsumerThatTakesElsewhere) {
  for (const HostileCase& played : hostile_cases(kFletchingHostileProducer)) {
    SCOPED_TRACE(played.name);
    play_producer(played, false);
  }
}

// Cancelled at every point that the peer can be at, from another thread.
TEST(HostileAsync, ProducersAndAConsumerThatCancels) {
  for (const HostileCase& played : hostile_cases(kFletchingHostileProducer)) {
    SCOPED_TRACE(played.name);
    auto application = std::make_shared<Application>(true);
    Result<AsyncConsumer> consumer = AsyncConsumer::create(application);
    ASSERT_TRUE(consumer);
    application->connect(&*consumer);
    ASSERT_TRUE(consumer->request(1));
    ASSERT_EQ(FletchingHostileStartProducer(played.c_str(), consumer->handler(), nullptr), 0);
    consumer->cancel();
    consumer->cancel();
    finish(played);
  }
}

TEST(HostileAsync, ProducersAndADestroyedConsumer) {
  for (const HostileCase& played : hostile_cases(kFletchingHostileProducer)) {
    SCOPED_TRACE(played.name);
    auto application = std::make_shared<Application>(false);
    Result<AsyncConsumer> consumer = AsyncConsumer::create(application);
    ASSERT_TRUE(consumer);
    ASSERT_TRUE(consumer->request(2));
    ASSERT_EQ(FletchingHostileStartProducer(played.c_str(), consumer->handler(), nullptr), 0);
    {
      const AsyncConsumer gone = *std::move(consumer);
    }
    finish(played);
  }
}

TEST(HostileAsync, ProducersAndADestroyedReader) {
  for (const HostileCase& played : hostile_cases(kFletchingHostileProducer)) {
    SCOPED_TRACE(played.name);
    {
      Result<AsyncReader> reader = AsyncReader::create(2);
      ASSERT_TRUE(reader);
      ASSERT_EQ(FletchingHostileStartProducer(played.c_str(), reader->handler(), nullptr), 0);
    }
    finish(played);
  }
}

// --- Our producer ---

constexpr int kBatches = 5;

void release_array(ArrowArray* array) noexcept { array->release = nullptr; }
void release_schema(ArrowSchema* schema) noexcept { schema->release = nullptr; }

Schema int32_schema() {
  Schema schema;
  schema.out()->format = "i";
  schema->release = release_schema;
  return schema;
}

DeviceArray empty_array() {
  DeviceArray array;
  array.out()->device_type = ARROW_DEVICE_CPU;
  array->array.release = release_array;
  return array;
}

// Everything is pushed at once; the producer keeps what is not asked for.
TEST(HostileAsync, OurProducerAndConsumersThatMisbehave) {
  Result<std::unique_ptr<WorkerThread>> worker = WorkerThread::start();
  ASSERT_TRUE(worker);
  for (const HostileCase& played : hostile_cases(kFletchingHostileHandler)) {
    SCOPED_TRACE(played.name);
    ArrowAsyncDeviceStreamHandler* handler = nullptr;
    ASSERT_EQ(FletchingHostileOpenHandler(played.c_str(), kBatches, &handler, nullptr), 0);
    Result<AsyncProducer> producer = AsyncProducer::start(handler, **worker);
    if (!producer.ok()) {
      // Only a handler that lacks a callback is refused, and then it is still ours to release.
      EXPECT_NE(producer.error().message().find("NULL"), std::string::npos);
      EXPECT_NE(played.name.find("-null"), std::string::npos);
      if (handler->release != nullptr) handler->release(handler);
      finish(played);
      continue;
    }
    EXPECT_EQ(played.name.find("-null"), std::string::npos);
    EXPECT_TRUE(producer->schema(int32_schema()));
    for (int i = 0; i < kBatches; ++i) (void)producer->push(empty_array());
    (void)producer->end();
    finish(played);
    // The peer is done when its release runs, which may not have returned.
    EXPECT_GE(producer->state(), AsyncProducerState::kInRelease);
  }
}

}  // namespace
}  // namespace fletching::testing
