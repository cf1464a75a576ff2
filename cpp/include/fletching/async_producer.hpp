// SPDX-License-Identifier: Apache-2.0
//
// The producer side of the async C device stream interface: accepts the schema, batches, and end or
// failure from a source on any thread, and calls a consumer's handler, one call at a time.
#ifndef FLETCHING_ASYNC_PRODUCER_HPP
#define FLETCHING_ASYNC_PRODUCER_HPP

#include <cerrno>
#include <memory>
#include <string>
#include <utility>

#include "fletching/abi.h"
#include "fletching/async_source.hpp"
#include "fletching/detail/async/producer_core.hpp"
#include "fletching/detail/async/task.hpp"
#include "fletching/executor.hpp"
#include "fletching/owner.hpp"
#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {

/// The source's handle to an async stream. Batches pushed here are delivered to the handler when
/// the consumer requests them.
///
/// Threads: every method may be called on any thread, concurrently and from inside handler calls.
/// None of them calls the handler. Batches are delivered in push order. A moved-from handle returns
/// EINVAL.
///
/// Lifetime: the stream lives until the handler's release has returned. Destroying the handle
/// before `end` or `fail` fails the stream with ECANCELED.
class AsyncProducer {
 public:
  /// Starts a stream: sets all fields of handler->producer. Calls no handler callback before
  /// `schema`.
  ///
  /// The handler belongs to the consumer; only this stream calls it, until its release. The
  /// executor must outlive that release. Errors: EINVAL for a NULL callback, a device type of 0 or
  /// malformed additional metadata; ENOMEM. On error the handler is unchanged.
  static Result<AsyncProducer> start(ArrowAsyncDeviceStreamHandler* handler, Executor& executor,
                                     AsyncProducerOptions options = {}) noexcept {
    if (const char* missing = missing_callback(handler)) {
      return detail::plain_error(EINVAL, missing);
    }
    if (options.device_type == 0) {
      return detail::plain_error(
          EINVAL, "AsyncProducer: device_type: 0: expected the device type of the batches");
    }
    Status readable = detail::check_metadata(options.metadata);
    if (!readable.ok()) return std::move(readable).error();
    detail::exported(handler);
    return detail::guarded([&]() -> Result<AsyncProducer> {
      AsyncProducer producer;
      producer.core_ =
          std::make_shared<detail::AsyncProducerCore>(handler, executor, std::move(options));
      detail::AsyncProducerCore::start(producer.core_);
      return producer;
    });
  }

  AsyncProducer(AsyncProducer&&) noexcept = default;
  AsyncProducer& operator=(AsyncProducer&& other) noexcept {
    if (this != &other) {
      abandon();
      core_ = std::move(other.core_);
    }
    return *this;
  }
  AsyncProducer(const AsyncProducer&) = delete;
  AsyncProducer& operator=(const AsyncProducer&) = delete;
  ~AsyncProducer() { abandon(); }

  // These methods consume their argument in every case; batches that are not delivered are
  // released. ECANCELED means that the stream is over (canceled, rejected or failed).

  /// Sets the schema of the stream, once, before any batch. Errors: EINVAL for a released schema,
  /// after which another may be set, and if a schema is already set.
  Status schema(Schema schema) noexcept {
    return core_ == nullptr ? moved_from() : core_->set_schema(std::move(schema));
  }

  /// Pushes the next batch. `metadata` is passed with its task, encoded as ArrowSchema.metadata;
  /// empty: none.
  ///
  /// Errors: EINVAL before the schema, after the end, for a released batch, for another device type
  /// than the stream's, for children that do not match the schema, and for malformed metadata;
  /// ENOMEM, after which the source may retry or fail the stream.
  Status push(DeviceArray&& batch, std::string metadata = {}) noexcept {
    Status given = detail::guarded([&]() -> Status {
      return core_ == nullptr ? moved_from() : core_->push(batch, std::move(metadata));
    });
    if (!batch.is_released()) batch.release();  // rejected, or out of memory
    return given;
  }

  /// Pushes a batch that is made when the consumer extracts it, on the consumer's thread: `Status
  /// make(ArrowDeviceArray* out)` fills a zeroed struct. It is called once, and must be cheap and
  /// not block (The ArrowAsyncTask structure). It is destroyed without a call if the batch is
  /// dropped. Its error is returned from extract_data and ends the stream with on_error, as does a
  /// batch that `push` would reject.
  template <class Make>
  Status push_made(Make make, std::string metadata = {}) noexcept {
    return detail::guarded([&]() -> Status {
      if (core_ == nullptr) return moved_from();
      Status readable = detail::check_metadata(metadata);
      if (!readable.ok()) return readable;
      auto checked = [core = core_.get(), make = std::move(make)](ArrowDeviceArray* out) mutable {
        Status made = make(out);
        return made.ok() ? core->check_made(*out) : std::move(made);
      };
      return core_->push_made(std::make_unique<detail::MadeTaskNode<decltype(checked)>>(
          *core_, std::move(checked), detail::task_metadata(std::move(metadata))));
    });
  }

  /// Ends the stream: no more batches follow. The end is delivered after all batches and needs no
  /// demand. Errors: EINVAL before the schema or if called twice.
  Status end() noexcept { return core_ == nullptr ? moved_from() : core_->end(); }

  /// Fails the stream: releases undelivered batches, then calls on_error with the error's code and
  /// message and `metadata`, which is omitted if malformed. Has no effect once the stream is over
  /// or `end` was called.
  void fail(Error error, std::string metadata = {}) noexcept {
    if (core_ == nullptr) return;
    if (!detail::check_metadata(metadata).ok()) metadata.clear();
    core_->fail(std::move(error), std::move(metadata));
  }

  /// The number of requested batches that are not pushed yet; 0 after the stream has ended.
  [[nodiscard]] std::int64_t demand() const noexcept {
    return core_ == nullptr ? 0 : core_->unmet_demand();
  }

  /// The current state of the stream. It may change at any time.
  [[nodiscard]] AsyncProducerState state() const noexcept {
    return core_ == nullptr ? AsyncProducerState::kReleased : core_->state();
  }

 private:
  AsyncProducer() = default;

  static const char* missing_callback(const ArrowAsyncDeviceStreamHandler* handler) noexcept {
    if (handler == nullptr) return "handler: NULL: expected an ArrowAsyncDeviceStreamHandler";
    if (handler->on_schema == nullptr) return "handler.on_schema: NULL: expected a callback";
    if (handler->on_next_task == nullptr) return "handler.on_next_task: NULL: expected a callback";
    if (handler->on_error == nullptr) return "handler.on_error: NULL: expected a callback";
    if (handler->release == nullptr)
      return "handler.release: NULL: expected a handler that is not released";
    return nullptr;
  }

  static Error moved_from() noexcept {
    return detail::plain_error(
        EINVAL, "AsyncProducer: moved from: expected the handle that start returned");
  }

  void abandon() noexcept {
    if (core_ != nullptr) core_->abandon();
  }

  std::shared_ptr<detail::AsyncProducerCore> core_;
};

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_ASYNC_PRODUCER_HPP
