// SPDX-License-Identifier: Apache-2.0
//
// Async producers of the hostile peer with a consumer that takes inside on_task, cancels, or is
// destroyed. The conformance suite runs the other cases.
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "fletching/async_adapters.hpp"
#include "fletching/async_consumer.hpp"
#include "hostile.hpp"

namespace fletching::testing {
namespace {

// An application that takes inside on_task, or never.
class Application final : public AsyncListener {
 public:
  explicit Application(bool takes_inside) : takes_inside_(takes_inside) {}

  void connect(AsyncConsumer* consumer) noexcept { consumer_ = consumer; }

  void on_schema(Schema schema, AsyncStreamInfo) noexcept override {
    EXPECT_FALSE(schema.is_released());
    update([&] { begun_ = true; });
  }

  void on_task() noexcept override {
    if (takes_inside_) take();
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
  bool begun_ = false;
  bool over_ = false;
  std::atomic<int> taken_ = 0;
};

void play_producer(const HostileCase& played) {
  auto application = std::make_shared<Application>(true);
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
  }
  finish(played);
  check_outcome(played, application->error());
  if (played.outcome == kFletchingHostileAccepted) {
    EXPECT_EQ(application->taken(), batches_of_producer(played)) << played.name;
  }
}

TEST(HostileAsync, ProducersWithConsumerTakingInCallback) {
  for (const HostileCase& played : hostile_cases(kFletchingHostileProducer)) {
    SCOPED_TRACE(played.name);
    play_producer(played);
  }
}

// Cancels from another thread at every state of the peer.
TEST(HostileAsync, ProducersWithCancellingConsumer) {
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

TEST(HostileAsync, ProducersWithDestroyedConsumer) {
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

TEST(HostileAsync, ProducersWithDestroyedReader) {
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

}  // namespace
}  // namespace fletching::testing
