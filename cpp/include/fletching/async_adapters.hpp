// SPDX-License-Identifier: Apache-2.0
//
// Adapters from an async stream to a blocking device stream and back.
#ifndef FLETCHING_ASYNC_ADAPTERS_HPP
#define FLETCHING_ASYNC_ADAPTERS_HPP

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "fletching/abi.h"
#include "fletching/async_consumer.hpp"
#include "fletching/async_producer.hpp"
#include "fletching/executor.hpp"
#include "fletching/options.hpp"
#include "fletching/owner.hpp"
#include "fletching/result.hpp"
#include "fletching/stream.hpp"
#include "fletching/stream_producer.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {
namespace detail {

/// Collects the notifications of an async stream for a thread that waits for them.
class AsyncMailbox final : public AsyncListener {
 public:
  void on_schema(Schema schema, AsyncStreamInfo info) noexcept override {
    update([&] {
      schema_ = std::move(schema);
      info_ = std::move(info);
    });
  }
  void on_task() noexcept override {}
  void on_end() noexcept override {
    update([&] { over_ = true; });
  }
  void on_error(const Error& error, std::string_view) noexcept override {
    update([&] {
      over_ = true;
      code_ = error.code();
      message_ = plain_error(error.code(), error.message()).message();
    });
  }

  /// Waits for the schema and moves it out. Returns the stream's error if it fails.
  Result<Schema> wait_for_schema() noexcept {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return over_ || !schema_.is_released(); });
    if (schema_.is_released()) return plain_error(code_ != 0 ? code_ : EINVAL, message_);
    return std::move(schema_);
  }

  /// Waits for the end of the stream. Returns the stream's error if it fails.
  Status wait_for_end() noexcept {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return over_; });
    if (code_ != 0) return plain_error(code_, message_);
    return {};
  }

  [[nodiscard]] const AsyncStreamInfo& info() const noexcept { return info_; }

 private:
  template <class Change>
  void update(const Change& change) noexcept {
    const std::lock_guard lock(mutex_);
    change();
    changed_.notify_one();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  Schema schema_;
  AsyncStreamInfo info_;
  bool over_ = false;
  int code_ = 0;
  std::string message_;
};

}  // namespace detail

/// Reads an async stream with blocking calls. At most `window` batches are requested and not yet
/// read.
///
/// Threads: the producer calls the handler on its own threads. Do not open or read the stream on
/// the thread that runs the producer's executor: it would deadlock.
class AsyncReader {
 public:
  /// Errors: EINVAL if the window is not positive; ENOMEM.
  static Result<AsyncReader> create(std::int64_t window = 16) noexcept {
    if (window <= 0) return detail::not_positive("AsyncReader.create: window", window);
    return detail::guarded([&]() -> Result<AsyncReader> {
      auto mailbox = std::make_shared<detail::AsyncMailbox>();
      Result<AsyncConsumer> consumer = AsyncConsumer::create(mailbox);
      if (!consumer.ok()) return std::move(consumer).error();
      Status asked = consumer->request(window);
      if (!asked.ok()) return std::move(asked).error();
      return AsyncReader(std::move(mailbox), *std::move(consumer), window);
    });
  }

  /// Returns the handler for the producer: see AsyncConsumer::handler.
  ArrowAsyncDeviceStreamHandler* handler() noexcept { return consumer_.handler(); }

  /// Waits for the schema and returns the stream. Call it once: the reader is consumed. Releasing
  /// the stream before its end cancels the async stream.
  ///
  /// Errors: the producer's errors; EINVAL for an invalid schema or device type; ENOMEM. On error
  /// the async stream is canceled.
  Result<DeviceArrayStream> open(Options options = {}) && noexcept {
    Result<Schema> schema = mailbox_->wait_for_schema();
    if (!schema.ok()) return std::move(schema).error();
    const ArrowDeviceType device_type = mailbox_->info().device_type;
    return make_device_stream(*std::move(schema), device_type, std::move(*this),
                              std::move(options));
  }

  /// The next batch, called by the device stream; empty at the end. Do not call it after an error.
  std::optional<Result<DeviceArray>> operator()() noexcept {
    if (std::optional<Result<AsyncBatch>> batch = consumer_.wait_and_take(refill())) {
      if (!batch->ok()) return std::move(*batch).error();
      return std::move((*batch)->array);
    }
    Status end = mailbox_->wait_for_end();
    if (!end.ok()) return std::move(end).error();
    return std::nullopt;
  }

 private:
  AsyncReader(std::shared_ptr<detail::AsyncMailbox> mailbox, AsyncConsumer consumer,
              std::int64_t window) noexcept
      : mailbox_(std::move(mailbox)),
        consumer_(std::move(consumer)),
        portion_(std::max<std::int64_t>(1, window / 2)) {}

  /// The number of batches to request together with the current read. Requests are batched: half a
  /// window at a time.
  std::int64_t refill() noexcept {
    if (++read_ < portion_) return 0;
    read_ = 0;
    return portion_;
  }

  std::shared_ptr<detail::AsyncMailbox> mailbox_;
  AsyncConsumer consumer_;
  std::int64_t portion_;
  std::int64_t read_ = 0;
};

namespace detail {

/// Reads a device stream on the demand of an async consumer.
class DeviceStreamSource final : public AsyncSource {
 public:
  explicit DeviceStreamSource(StreamReader<ArrowDeviceArrayStream> reader) noexcept
      : reader_(std::move(reader)) {}

  void begin(AsyncProducer producer, Schema schema) noexcept {
    producer_.emplace(std::move(producer));
    (void)producer_->schema(std::move(schema));  // fails only if the consumer has canceled
  }

  void on_demand(std::int64_t) noexcept override {
    if (!producer_.has_value()) return;  // demand follows the schema, which `begin` sets
    AsyncProducer& producer = *producer_;
    std::optional<Result<DeviceArray>> batch = reader_.next();
    // The stream is over: release the reader before the handler.
    if (!batch || !batch->ok()) reader_.release();
    if (batch && !batch->ok()) return producer.fail(std::move(*batch).error());
    // `fail` ignores ECANCELED: that the stream has ended in the meantime is not an error of the
    // source.
    Status given = batch ? producer.push(**std::move(batch)) : producer.end();
    if (!given.ok()) producer.fail(std::move(given).error());
  }

  void on_stop() noexcept override { reader_.release(); }

 private:
  StreamReader<ArrowDeviceArrayStream> reader_;
  std::optional<AsyncProducer> producer_;
};

}  // namespace detail

/// Sends a device stream to the handler of an async consumer, batch by batch on demand.
///
/// Threads: reads the schema on the calling thread. get_next, get_last_error and release of
/// `stream` run on the executor, one at a time, and may block it. Pass a WorkerThread for a
/// dedicated thread, or a RunQueue for an existing one. The executor must outlive the handler's
/// release.
///
/// Errors: the errors of get_schema and AsyncProducer::start. In these cases the handler is not
/// called, and `stream` is released. Errors of get_next are passed to on_error.
inline Status send_async(DeviceArrayStream stream, ArrowAsyncDeviceStreamHandler* handler,
                         Executor& executor, Options options = {}) noexcept {
  StreamReader<ArrowDeviceArrayStream> reader(std::move(stream), std::move(options));
  Result<Schema> schema = reader.schema();
  if (!schema.ok()) return std::move(schema).error();
  return detail::guarded([&]() -> Status {
    const ArrowDeviceType device_type = reader.device_type();
    auto source = std::make_shared<detail::DeviceStreamSource>(std::move(reader));
    Result<AsyncProducer> producer =
        AsyncProducer::start(handler, executor, {device_type, {}, source});
    if (!producer.ok()) return std::move(producer).error();
    source->begin(*std::move(producer), *std::move(schema));
    return {};
  });
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_ASYNC_ADAPTERS_HPP
