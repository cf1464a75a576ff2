// SPDX-License-Identifier: Apache-2.0
//
// The consumer side of the async C device stream interface: a handler for a foreign producer, and
// operations on the stream for the application, on any thread.
#ifndef FLETCHING_ASYNC_CONSUMER_HPP
#define FLETCHING_ASYNC_CONSUMER_HPP

#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "fletching/abi.h"
#include "fletching/async_listener.hpp"
#include "fletching/detail/async/consumer_core.hpp"
#include "fletching/options.hpp"
#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {

/// The application's handle to an async stream.
///
/// Threads: every method may be called on any thread, concurrently and from inside the listener's
/// methods. Only wait_and_take waits for the producer. The listener may destroy the handle from
/// inside one of its methods, also while wait_and_take waits on another thread, if no other thread
/// begins a call on it. A moved-from handle returns EINVAL.
///
/// Lifetime: the stream lives until the producer releases the handler. Destroying the handle
/// cancels the stream; no listener call begins afterwards.
class AsyncConsumer {
 public:
  /// The listener is kept until the handler is released. In strict mode `take` compares every batch
  /// with the schema by check_array, and a malformed schema is rejected. Otherwise only the number
  /// of children and the presence of a dictionary are compared. Emits no warnings. Errors: EINVAL
  /// if the listener is NULL; ENOMEM.
  static Result<AsyncConsumer> create(std::shared_ptr<AsyncListener> listener,
                                      const Options& options = {}) noexcept {
    if (listener == nullptr)
      return detail::plain_error(
          EINVAL, "AsyncConsumer.create: listener is NULL: expected an AsyncListener");
    return detail::guarded([&]() -> Result<AsyncConsumer> {
      return AsyncConsumer(
          std::make_shared<detail::AsyncConsumerCore>(std::move(listener), options.strict));
    });
  }

  AsyncConsumer(AsyncConsumer&&) noexcept = default;
  AsyncConsumer& operator=(AsyncConsumer&& other) noexcept {
    if (this != &other) {
      cancel();
      core_ = std::move(other.core_);
    }
    return *this;
  }
  AsyncConsumer(const AsyncConsumer&) = delete;
  AsyncConsumer& operator=(const AsyncConsumer&) = delete;
  ~AsyncConsumer() { cancel(); }

  /// Returns the handler for the producer; NULL for a moved-from handle. Call it once. From this
  /// call on, the handler lives until its release is called: by the producer, or by the caller if
  /// no producer takes it.
  ArrowAsyncDeviceStreamHandler* handler() noexcept {
    if (core_ == nullptr) return nullptr;
    ArrowAsyncDeviceStreamHandler* handler = detail::AsyncConsumerCore::hand_out(core_);
    return detail::imported(handler);
  }

  /// Requests n more batches, n > 0. Before on_schema, the request is stored. The sum saturates at
  /// INT64_MAX. Has no effect after the stream has ended. Errors: EINVAL if n is not positive.
  Status request(std::int64_t n) noexcept {
    const Core core = core_;
    return core == nullptr ? moved_from() : core->request(n);
  }

  /// Extracts the oldest queued task. Empty if no task is queued, which is not the end of the
  /// stream (see state() and the listener). A returned batch is never released.
  ///
  /// `more` batches are requested as by `request`, before the extraction and only if there is a
  /// task: libarrow's producer is destroyed with its last task, before it reports the end, so a
  /// `request` after a `take` may read freed memory there.
  ///
  /// Errors: the errors of extract_data; EINVAL with the rule if the batch is released, is on a
  /// different device type than the stream, or does not match the schema: the batch is released and
  /// the stream is canceled. Either error ends the stream. ENOMEM and EINVAL for a negative `more`
  /// take no task.
  std::optional<Result<AsyncBatch>> take(std::int64_t more = 0) noexcept {
    return take(detail::AsyncConsumerCore::When::kNow, more);
  }

  /// Like `take`, but waits for a task; empty only when the stream has ended. Do not call it on the
  /// producer's threads: it would deadlock.
  std::optional<Result<AsyncBatch>> wait_and_take(std::int64_t more = 0) noexcept {
    return take(detail::AsyncConsumerCore::When::kWait, more);
  }

  /// Discards the oldest queued task. Returns false if no task is queued.
  bool drop() noexcept {
    const Core core = core_;
    return core != nullptr && core->drop();
  }

  /// Cancels the stream: drops the queued tasks and stops calling the listener.
  void cancel() noexcept {
    const Core core = core_;
    if (core != nullptr) core->cancel();
  }

  /// The current state of the stream. It may change at any time.
  [[nodiscard]] AsyncConsumerState state() const noexcept {
    return core_ == nullptr ? AsyncConsumerState::kReleased : core_->state();
  }

 private:
  // A method that calls the other side holds a copy, because the handle may be destroyed in the
  // meantime. `take` does not: its calls keep the stream alive themselves, and a copy costs as much
  // as its lock.
  using Core = std::shared_ptr<detail::AsyncConsumerCore>;

  explicit AsyncConsumer(Core core) noexcept : core_(std::move(core)) {}

  static Error moved_from() noexcept {
    return detail::plain_error(
        EINVAL, "AsyncConsumer: moved from: expected the handle that create returned");
  }

  std::optional<Result<AsyncBatch>> take(detail::AsyncConsumerCore::When when,
                                         std::int64_t more) noexcept {
    if (core_ == nullptr) return moved_from();
    return core_->take(when, more);
  }

  Core core_;
};

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_ASYNC_CONSUMER_HPP
