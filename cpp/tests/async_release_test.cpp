// Release of a consumer's handler while the consumer's calls to the producer are running: which
// calls it waits for, and how a producer may use it (erratum async-release-waits).
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "async_support.hpp"
#include "fletching/async_consumer.hpp"

namespace fletching::testing {
namespace {

/// A one-shot event that can be waited on.
class Latch {
 public:
  void open() {
    if (!opened_.exchange(true)) promise_.set_value();
  }
  void wait() { future_.wait(); }
  [[nodiscard]] bool is_open() const { return opened_; }

 private:
  std::atomic<bool> opened_{false};
  std::promise<void> promise_;
  std::shared_future<void> future_ = promise_.get_future().share();
};

// --- A producer that is freed after release has returned, as the published text allows ---

/// The test's view of the producer; outlives it.
struct Watch {
  Latch entered;   // request or cancel is running
  Latch go_on;     // it may return
  Latch returned;  // about to return
};

struct FreedProducer {
  explicit FreedProducer(Watch& watch) : watch(watch) {
    raw.device_type = ARROW_DEVICE_CPU;
    raw.request = [](ArrowAsyncProducer* self, std::int64_t) { of(self).linger(); };
    raw.cancel = [](ArrowAsyncProducer* self) { of(self).linger(); };
    raw.private_data = this;
  }

  static FreedProducer& of(ArrowAsyncProducer* self) {
    return *static_cast<FreedProducer*>(self->private_data);
  }

  void linger() {
    Watch& kept = watch;
    kept.entered.open();
    kept.go_on.wait();
    ++calls;  // a use after free if release has not waited
    kept.returned.open();
  }

  ArrowAsyncProducer raw{};
  Watch& watch;
  int calls = 0;
};

void release(AsyncConsumer& /*consumer*/, ArrowAsyncDeviceStreamHandler* handler) {
  handler->release(handler);
}

/// Releases inside the extraction of a task, like a producer that is destroyed with its last task.
void release_inside(AsyncConsumer& consumer, ArrowAsyncDeviceStreamHandler* handler) {
  ArrowAsyncTask task{[](ArrowAsyncTask* self, ArrowDeviceArray* /*out*/) {
                        auto* own = static_cast<ArrowAsyncDeviceStreamHandler*>(self->private_data);
                        own->release(own);
                        return EIO;
                      },
                      handler};
  EXPECT_EQ(handler->on_next_task(handler, &task, nullptr), 0);
  EXPECT_FALSE(consumer.take()->ok());
}

void free_after_release(const std::function<void(AsyncConsumer&)>& call,
                        const decltype(&release)& release_it = &release) {
  Watch watch;
  Ledger ledger;
  auto producer = std::make_unique<FreedProducer>(watch);
  auto listener = std::make_shared<LoggingListener>();
  AsyncConsumer consumer = AsyncConsumer::create(listener).value();
  ArrowAsyncDeviceStreamHandler* handler = consumer.handler();
  handler->producer = &producer->raw;
  ArrowSchema schema{};
  a_schema(ledger).move_to(&schema);
  EXPECT_EQ(handler->on_schema(handler, &schema), 0);
  listener->inside = [&](const std::string& what) {
    if (what == "release waits") watch.go_on.open();
  };
  std::thread application([&] { call(consumer); });
  watch.entered.wait();
  release_it(consumer, handler);
  EXPECT_TRUE(watch.returned.is_open()) << "release has returned before the call to the producer";
  producer.reset();
  watch.go_on.open();
  application.join();
}

TEST(AsyncRelease, WaitsForRequest) {
  free_after_release([](AsyncConsumer& consumer) { EXPECT_TRUE(consumer.request(1).ok()); });
}

TEST(AsyncRelease, WaitsForCancel) {
  free_after_release([](AsyncConsumer& consumer) { consumer.cancel(); });
}

TEST(AsyncRelease, InsideExtractionWaitsForOtherThreadsRequest) {
  free_after_release([](AsyncConsumer& consumer) { EXPECT_TRUE(consumer.request(1).ok()); },
                     &release_inside);
}

// The listener's last action may be to destroy all its objects.
TEST(AsyncRelease, InsideExtractionDestroysConsumer) {
  ArrowAsyncProducer producer{};
  producer.device_type = ARROW_DEVICE_CPU;
  producer.request = [](ArrowAsyncProducer*, std::int64_t) {};
  producer.cancel = [](ArrowAsyncProducer*) {};
  Ledger ledger;
  auto listener = std::make_shared<LoggingListener>();
  std::optional<AsyncConsumer> consumer = AsyncConsumer::create(listener).value();
  ArrowAsyncDeviceStreamHandler* handler = consumer->handler();
  handler->producer = &producer;
  ArrowSchema schema{};
  a_schema(ledger).move_to(&schema);
  EXPECT_TRUE(consumer->request(1).ok());
  EXPECT_EQ(handler->on_schema(handler, &schema), 0);
  listener->inside = [&](const std::string& what) {
    if (what == "error") consumer.reset();
  };
  release_inside(*consumer, handler);
  EXPECT_FALSE(consumer.has_value());
}

/// A task whose extraction blocks until the test opens it.
struct SlowTask {
  ArrowAsyncTask task{[](ArrowAsyncTask* self, ArrowDeviceArray* /*out*/) {
                        auto& slow = *static_cast<SlowTask*>(self->private_data);
                        slow.begun.open();
                        slow.go_on.wait();
                        return EIO;
                      },
                      this};
  Latch begun;
  Latch go_on;
};

// Erratum async-release-inside: release does not wait for the other extraction, which keeps the
// stream alive.
TEST(AsyncRelease, InsideExtractionIgnoresOtherThreadsExtraction) {
  ConsumerBench bench;
  std::optional<AsyncConsumer> consumer = std::move(bench.consumer);
  bench.receive(0, 0);
  EXPECT_TRUE(consumer->request(2).ok());
  SlowTask slow;
  ArrowAsyncDeviceStreamHandler* handler = bench.peer.handler;
  EXPECT_EQ(handler->on_next_task(handler, &slow.task, nullptr), 0);
  std::thread application([&] { EXPECT_FALSE(consumer->take()->ok()); });
  slow.begun.wait();
  release_inside(*consumer, handler);
  consumer.reset();
  bench.listener.reset();
  slow.go_on.open();
  application.join();
}

// --- A producer that releases under the lock that its request needs ---

// Here release and request would deadlock. on_release_waits is called before the wait so that the
// application can resolve it.
TEST(AsyncRelease, UnderRequestLockCallsListenerBeforeWait) {
  ConsumerBench bench;
  bench.receive(1, 0);
  std::mutex lock;
  Latch asked;
  bench.peer.in_request = [&] {
    asked.open();
    const std::lock_guard guard(lock);
  };
  int calls = 0;
  bench.listener->inside = [&](const std::string& what) {
    if (what != "release waits") return;
    if (calls++ == 0) lock.unlock();
  };
  lock.lock();
  std::thread application([&] { EXPECT_TRUE(bench.consumer.request(1).ok()); });
  asked.wait();
  bench.peer.end();
  bench.peer.release();
  application.join();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(bench.consumer.state(), AsyncConsumerState::kReleased);
}

/// Holds one non-recursive lock in request, in cancel and around release.
struct LockingProducer {
  LockingProducer() {
    raw.device_type = ARROW_DEVICE_CPU;
    raw.request = [](ArrowAsyncProducer* self, std::int64_t n) {
      LockingProducer& producer = *static_cast<LockingProducer*>(self->private_data);
      const std::lock_guard guard(producer.lock);
      producer.demand += n;
      producer.asked.notify_one();
    };
    raw.cancel = [](ArrowAsyncProducer* self) {
      LockingProducer& producer = *static_cast<LockingProducer*>(self->private_data);
      const std::lock_guard guard(producer.lock);
      producer.cancelled = true;
      producer.asked.notify_one();
    };
    raw.private_data = this;
  }

  /// Runs a stream of `batches` from the first to the last call; a cancel ends it early.
  void run(ArrowAsyncDeviceStreamHandler* handler, Ledger& ledger, int batches) {
    handler->producer = &raw;
    ArrowSchema schema{};
    a_schema(ledger).move_to(&schema);
    EXPECT_EQ(handler->on_schema(handler, &schema), 0);
    while (batches-- > 0 && wait_for_demand()) {
      ArrowAsyncTask task{[](ArrowAsyncTask* self, ArrowDeviceArray* out) {
                            DeviceArray batch = a_batch(*static_cast<Ledger*>(self->private_data));
                            if (out != nullptr) batch.move_to(out);
                            return 0;
                          },
                          &ledger};
      EXPECT_EQ(handler->on_next_task(handler, &task, nullptr), 0);
    }
    if (!cancelled) {
      EXPECT_EQ(handler->on_next_task(handler, nullptr, nullptr), 0);
    }
    const std::lock_guard guard(lock);
    handler->release(handler);
  }

  bool wait_for_demand() {
    std::unique_lock guard(lock);
    asked.wait(guard, [this] { return demand > 0 || cancelled; });
    --demand;
    return !cancelled;
  }

  ArrowAsyncProducer raw{};
  std::mutex lock;
  std::condition_variable asked;
  std::int64_t demand = 0;
  bool cancelled = false;
};

// Calls made inside a listener function have returned when release begins, so it never waits.
TEST(AsyncRelease, UnderLockDoesNotWaitForCallsInListener) {
  for (const int cancel_after : {0, 1, 2, 99}) {
    Ledger ledger;
    auto listener = std::make_shared<LoggingListener>();
    AsyncConsumer consumer = AsyncConsumer::create(listener).value();
    int taken = 0;
    listener->inside = [&](const std::string& what) {
      if (what == "release waits") ADD_FAILURE() << "release waits";
      if (what == "schema") {
        EXPECT_TRUE(consumer.request(1).ok());
      }
      if (taken == cancel_after) return consumer.cancel();
      if (what == "task") taken += consumer.take(1)->ok() ? 1 : 0;
    };
    LockingProducer producer;
    std::thread thread([&] { producer.run(consumer.handler(), ledger, 3); });
    thread.join();
    EXPECT_EQ(taken, cancel_after < 3 ? cancel_after : 3);
    EXPECT_EQ(consumer.state(), AsyncConsumerState::kReleased);
    EXPECT_EQ(ledger.live(), 1) << "the schema";
  }
}

}  // namespace
}  // namespace fletching::testing
