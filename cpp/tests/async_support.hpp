// Peers for tests of async streams: counted structs, and a handler and a producer that log the
// calls they receive.
#ifndef FLETCHING_TESTS_ASYNC_SUPPORT_HPP
#define FLETCHING_TESTS_ASYNC_SUPPORT_HPP

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "fletching/abi.h"
#include "fletching/async_consumer.hpp"
#include "fletching/async_producer.hpp"
#include "fletching/executor.hpp"
#include "fletching/metadata.hpp"
#include "fletching/owner.hpp"

namespace fletching::testing {

using Log = std::vector<std::string>;

/// Numbers of schemas and arrays that were made and released.
struct Ledger {
  std::atomic<std::int64_t> made{0};
  std::atomic<std::int64_t> released{0};

  [[nodiscard]] std::int64_t live() const { return made - released; }
};

template <class Raw>
Owner<Raw> counted(Ledger& ledger) {
  ++ledger.made;
  Owner<Raw> owner;
  auto& base = detail::base(*owner.out());
  base.private_data = &ledger;
  base.release = [](auto* self) {
    ++static_cast<Ledger*>(self->private_data)->released;
    self->release = nullptr;
  };
  return owner;
}

/// An int32 schema that is shared and read in place.
inline Schema a_schema(Ledger& ledger) {
  Schema schema = counted<ArrowSchema>(ledger);
  schema->format = "i";
  return schema;
}

/// A batch identified by its length.
inline DeviceArray a_batch(Ledger& ledger, std::int64_t length = 0) {
  DeviceArray batch = counted<ArrowDeviceArray>(ledger);
  batch->array.length = length;
  batch->device_id = -1;
  batch->device_type = ARROW_DEVICE_CPU;
  return batch;
}

/// Metadata of one pair, too long for the small-string buffer of std::string.
inline std::string a_block() {
  return encode_metadata({{"key", "value that takes some memory"}}).value();
}

/// The encoded bytes of a block; "NULL" for NULL.
inline std::string block_of(const char* metadata) {
  if (metadata == nullptr) return "NULL";
  return std::string(MetadataView::read(metadata).value().block());
}

/// The handler of a foreign consumer, for a producer under test.
struct PeerHandler {
  PeerHandler() {
    raw.on_schema = [](ArrowAsyncDeviceStreamHandler* self, ArrowSchema* schema) {
      PeerHandler& peer = of(self);
      peer.log.emplace_back("on_schema");
      if (peer.inside) peer.inside("on_schema");
      if (peer.refuse != "on_schema") peer.schema = Schema(schema);
      return peer.refuse == "on_schema" ? EIO : 0;
    };
    raw.on_next_task = [](ArrowAsyncDeviceStreamHandler* self, ArrowAsyncTask* task,
                          const char* metadata) { return of(self).task_came(task, metadata); };
    raw.on_error = [](ArrowAsyncDeviceStreamHandler* self, int code, const char* message,
                      const char* metadata) {
      PeerHandler& peer = of(self);
      peer.log.push_back("on_error " + std::to_string(code));
      peer.message = message == nullptr ? "NULL" : message;
      peer.error_metadata = block_of(metadata);
      if (peer.inside) peer.inside("on_error");
    };
    raw.release = [](ArrowAsyncDeviceStreamHandler* self) {
      of(self).log.emplace_back("release");
      if (of(self).inside) of(self).inside("release");
      self->release = nullptr;
    };
    raw.private_data = this;
  }

  static PeerHandler& of(ArrowAsyncDeviceStreamHandler* self) {
    return *static_cast<PeerHandler*>(self->private_data);
  }

  int task_came(ArrowAsyncTask* task, const char* metadata) {
    const std::string name = task == nullptr ? "end" : "task";
    log.push_back(name);
    if (task != nullptr && refuse != name) tasks.push_back(*task);  // rejected ones are not taken
    task_metadata.push_back(block_of(metadata));
    if (inside) inside(name);
    return refuse == name ? EIO : 0;
  }

  void request(std::int64_t n) const { raw.producer->request(raw.producer, n); }
  void cancel() const { raw.producer->cancel(raw.producer); }
  int extract(std::size_t number, ArrowDeviceArray* out) {
    return tasks.at(number).extract_data(&tasks.at(number), out);
  }

  ArrowAsyncDeviceStreamHandler raw{};
  Log log;
  std::function<void(const std::string&)> inside;  // runs inside the call with this name
  std::string refuse;                              // the name of the call to reject
  Schema schema;
  std::vector<ArrowAsyncTask> tasks;
  std::string message;
  std::string error_metadata;
  Log task_metadata;
};

/// A producer under test with its peer, all on the test's thread.
struct ProducerBench {
  explicit ProducerBench(AsyncProducerOptions options = {})
      : producer(AsyncProducer::start(&peer.raw, queue, std::move(options)).value()) {}

  /// A stream lives until its handler is released.
  ~ProducerBench() {
    peer.inside = nullptr;
    producer.fail(Error(EIO, "the test is over"));
    queue.run_ready();
    drop_all();
  }
  ProducerBench(const ProducerBench&) = delete;
  ProducerBench& operator=(const ProducerBench&) = delete;

  /// Delivers the schema, makes a request, pushes the batches, and delivers the batches that are
  /// due.
  void deliver(std::int64_t wanted, int batches) {
    EXPECT_TRUE(producer.schema(a_schema(ledger)).ok());
    queue.run_ready();
    if (wanted > 0) peer.request(wanted);
    for (int i = 0; i < batches; ++i) EXPECT_TRUE(producer.push(a_batch(ledger, i)).ok());
    queue.run_ready();
  }

  void drop_all() {
    for (ArrowAsyncTask& task : peer.tasks) {
      if (task.private_data != nullptr) task.extract_data(&task, nullptr);
    }
    queue.run_ready();
  }

  Ledger ledger;
  RunQueue queue;
  PeerHandler peer;
  AsyncProducer producer;
};

/// Logs the notifications that an application receives.
struct LoggingListener final : AsyncListener {
  // NOLINTBEGIN(bugprone-exception-escape): the test may terminate if memory runs out
  void on_schema(Schema given, AsyncStreamInfo received) noexcept override {
    log.emplace_back("schema");
    schema = std::move(given);
    info = std::move(received);
    if (inside) inside("schema");
  }
  void on_task() noexcept override {
    log.emplace_back("task");
    if (inside) inside("task");
  }
  void on_end() noexcept override { log.emplace_back("end"); }
  void on_error(const Error& error, std::string_view metadata) noexcept override {
    log.push_back("error " + std::to_string(error.code()));
    message = error.message();
    error_metadata = metadata;
    if (inside) inside("error");
  }
  void on_release_waits() noexcept override {
    if (inside) inside("release waits");
  }
  // NOLINTEND(bugprone-exception-escape)

  Log log;
  std::function<void(const std::string&)> inside;
  Schema schema;
  AsyncStreamInfo info;
  std::string message;
  std::string error_metadata;
};

/// A foreign producer, for a consumer under test.
struct PeerProducer {
  struct Task {
    PeerProducer* peer = nullptr;
    std::int64_t number = 0;
    int result = 0;
    int extracted = 0;
    bool with_null = false;
  };

  PeerProducer() {
    raw.device_type = ARROW_DEVICE_CPU;
    raw.request = [](ArrowAsyncProducer* self, std::int64_t n) {
      of(self).note("request " + std::to_string(n));
      if (of(self).in_request) of(self).in_request();
    };
    raw.cancel = [](ArrowAsyncProducer* self) { of(self).note("cancel"); };
    raw.private_data = this;
  }

  static PeerProducer& of(ArrowAsyncProducer* self) {
    return *static_cast<PeerProducer*>(self->private_data);
  }

  static int extract(ArrowAsyncTask* self, ArrowDeviceArray* out) {
    Task& task = *static_cast<Task*>(self->private_data);
    task.peer->note("extract " + std::to_string(task.number));
    ++task.extracted;
    task.with_null = out == nullptr;
    if (out == nullptr && task.peer->in_drop) task.peer->in_drop();
    if (out != nullptr && task.result == 0) a_batch(task.peer->ledger, task.number).move_to(out);
    return task.result;
  }

  // Thread-safe: two tasks may be extracted concurrently.
  void note(std::string what) {
    const std::lock_guard lock(mutex);
    log.push_back(std::move(what));
  }

  int give_schema() {
    ArrowSchema schema{};
    a_schema(ledger).move_to(&schema);
    const int result = handler->on_schema(handler, &schema);
    if (result != 0) Schema refused(&schema);
    EXPECT_EQ(schema.release, nullptr) << "moved, released or refused";
    return result;
  }

  int give_task(int result = 0, const char* metadata = nullptr) {
    tasks.push_back(std::make_unique<Task>());
    *tasks.back() = {this, static_cast<std::int64_t>(tasks.size()) - 1, result, 0, false};
    ArrowAsyncTask task{extract, tasks.back().get()};
    const int code = handler->on_next_task(handler, &task, metadata);
    task = {};
    return code;
  }

  int end() const { return handler->on_next_task(handler, nullptr, nullptr); }
  void fail(int code, const char* message = "it broke", const char* metadata = nullptr) const {
    handler->on_error(handler, code, message, metadata);
  }
  void release() const { handler->release(handler); }

  Ledger ledger;
  ArrowAsyncProducer raw{};
  ArrowAsyncDeviceStreamHandler* handler = nullptr;
  std::function<void()> in_request;
  std::function<void()> in_drop;  // runs when a task is dropped
  std::mutex mutex;
  Log log;
  std::vector<std::unique_ptr<Task>> tasks;
};

/// A consumer under test with its peer.
struct ConsumerBench {
  ConsumerBench() {
    peer.handler = consumer.handler();
    peer.handler->producer = &peer.raw;
  }

  /// Receives a schema, makes a request, and receives tasks.
  void receive(std::int64_t wanted, int tasks) {
    EXPECT_EQ(peer.give_schema(), 0);
    if (wanted > 0) {
      EXPECT_TRUE(consumer.request(wanted).ok());
    }
    for (int i = 0; i < tasks; ++i) EXPECT_EQ(peer.give_task(), 0);
  }

  PeerProducer peer;  // destroyed last: it counts the structs kept by the listener
  std::shared_ptr<LoggingListener> listener = std::make_shared<LoggingListener>();
  AsyncConsumer consumer = AsyncConsumer::create(listener).value();
};

}  // namespace fletching::testing

#endif  // FLETCHING_TESTS_ASYNC_SUPPORT_HPP
