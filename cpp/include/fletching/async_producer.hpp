// SPDX-License-Identifier: Apache-2.0
//
// The producer's side of the async C device stream interface: accepts schema, batches, end or
// failure from a source on any thread, and calls a consumer's handler, one call at a time.
#ifndef FLETCHING_ASYNC_PRODUCER_HPP
#define FLETCHING_ASYNC_PRODUCER_HPP

#include <cerrno>
#include <memory>
#include <string>
#include <utility>

#include "fletching/abi.h"
#include "fletching/async_source.hpp"
#include "fletching/detail/async_producer_core.hpp"
#include "fletching/detail/async_task.hpp"
#include "fletching/executor.hpp"
#include "fletching/owner.hpp"
#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {

/// The source's handle of an async stream: what is pushed here is delivered to the handler as the
/// consumer asks for it.
///
/// Threads: every method may be called on any thread, at the same time as others, and from inside
/// handler calls; none of them calls the handler. Batches are delivered in the order of the pushes.
/// A moved-from handle returns EINVAL.
///
/// Lifetime: the stream lives on until the handler's release has returned. A handle that is
/// destroyed before `end` or `fail` fails the stream with ECANCELED.
class AsyncProducer {
 public:
  /// Begins a stream: sets handler->producer, complete; no handler is called before `schema`.
  ///
  /// The handler belongs to the consumer and is called by this stream alone, until its release. The
  /// executor outlives that. Errors: EINVAL for a callback that is NULL, a device type of 0 or
  /// additional metadata that cannot be read; ENOMEM. The handler is untouched then.
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

  // These methods consume their argument in every case: what is not delivered is released here. The
  // error ECANCELED means that the stream is over (cancelled, refused or failed).

  /// The schema of the stream, once, before anything else. Error: EINVAL for a released one, after
  /// which another may be set, and when it was set already.
  Status schema(Schema schema) noexcept {
    return core_ == nullptr ? moved_from() : core_->set_schema(std::move(schema));
  }

  /// The next batch; `metadata` is passed with its task, encoded as ArrowSchema.metadata, empty:
  /// none.
  /// Errors: EINVAL before the schema, after the end, for a released batch, for another device type
  /// than the stream's, for other children than its schema's and for metadata that cannot be read;
  /// ENOMEM, after which the source may try again or fail the stream.
  Status push(DeviceArray&& batch, std::string metadata = {}) noexcept {
    Status given = detail::guarded([&]() -> Status {
      return core_ == nullptr ? moved_from() : core_->push(batch, std::move(metadata));
    });
    if (!batch.is_released()) batch.release();  // refused, or no memory for the task
    return given;
  }

  /// As `push`, of a batch that is made when the consumer extracts it, on the consumer's thread:
  /// `Status make(ArrowDeviceArray* out)` fills a zeroed struct, once, cheaply and without blocking
  /// (The ArrowAsyncTask structure). It is destroyed unused when the batch is dropped. Its error
  /// is what extract_data returns, and ends the stream with on_error; so does a batch that `push`
  /// would refuse.
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

  /// No more batches. The end is delivered after all of them, without demand. Error: EINVAL
  /// before the schema or for the second time.
  Status end() noexcept { return core_ == nullptr ? moved_from() : core_->end(); }

  /// The source has failed. Batches that are not delivered are released, and on_error follows with
  /// the error's code and text and `metadata`, without it when it cannot be read. Does nothing once
  /// the stream is over or has an end.
  void fail(Error error, std::string metadata = {}) noexcept {
    if (core_ == nullptr) return;
    if (!detail::check_metadata(metadata).ok()) metadata.clear();
    core_->fail(std::move(error), std::move(metadata));
  }

  /// The number of requested batches that are not pushed yet; 0 once the stream is over.
  [[nodiscard]] std::int64_t demand() const noexcept {
    return core_ == nullptr ? 0 : core_->unmet_demand();
  }

  /// The state of the stream, which may change at any time.
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
