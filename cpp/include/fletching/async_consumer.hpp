// SPDX-License-Identifier: Apache-2.0
//
// The consumer's side of the async C device stream interface: a handler for a foreign producer, and
// the application's operations on the stream, on any thread.
#ifndef FLETCHING_ASYNC_CONSUMER_HPP
#define FLETCHING_ASYNC_CONSUMER_HPP

#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "fletching/abi.h"
#include "fletching/async_listener.hpp"
#include "fletching/detail/async_consumer_core.hpp"
#include "fletching/options.hpp"
#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {

/// The application's handle of an async stream.
///
/// Threads: every method may be called on any thread, at the same time as others, and from inside
/// the listener's methods; only wait_and_take waits for the producer. The listener may destroy the
/// handle, also from inside one of its methods and while wait_and_take waits on another thread; no
/// other thread may begin a call of it then. A moved-from handle returns EINVAL.
///
/// Lifetime: the stream lives until the producer has released the handler. Destroying the handle
/// cancels the stream; no call of the listener begins afterwards.
class AsyncConsumer {
 public:
  /// The listener is kept until the handler is released. In strict mode `take` compares every batch
  /// with the schema by check_array, and a malformed schema is refused; else only the number of
  /// children and whether there is a dictionary. No warnings. Error: ENOMEM; EINVAL when the
  /// listener is NULL.
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

  /// The handler for the producer. From this call on it lives until its release is called, by the
  /// producer or, when none takes it, by the caller. Call it once. NULL for a moved-from handle.
  ArrowAsyncDeviceStreamHandler* handler() noexcept {
    return core_ == nullptr ? nullptr : detail::AsyncConsumerCore::hand_out(core_);
  }

  /// Requests n more batches, n > 0; before on_schema the number is kept until then. The sum stops
  /// at INT64_MAX. Does nothing once the stream is over. Error: EINVAL for another n.
  Status request(std::int64_t n) noexcept {
    const Core core = core_;
    return core == nullptr ? moved_from() : core->request(n);
  }

  /// Extracts the oldest queued task; empty when none is queued, which is not the end of the stream
  /// (see state() and the listener). A batch is never released. `more` batches are requested as by
  /// `request`, but before the extraction and only if there is one: libarrow's producer is
  /// destroyed with its last task, before it reports the end, so that a `request` after a `take`
  /// may read freed memory there. Errors: what extract_data returned, or EINVAL with the rule for a
  /// batch that is released, on another type of device than the stream or of another schema, which
  /// is released and cancels the stream; either ends it. ENOMEM; EINVAL for a negative `more`, and
  /// no task is taken.
  std::optional<Result<AsyncBatch>> take(std::int64_t more = 0) noexcept {
    return take(detail::AsyncConsumerCore::When::kNow, more);
  }

  /// The same, but waits for a task; empty only when the stream is over. Not for the producer's
  /// threads: it would wait for itself.
  std::optional<Result<AsyncBatch>> wait_and_take(std::int64_t more = 0) noexcept {
    return take(detail::AsyncConsumerCore::When::kWait, more);
  }

  /// Discards the oldest queued task. False when none is queued.
  bool drop() noexcept {
    const Core core = core_;
    return core != nullptr && core->drop();
  }

  /// Cancels the stream: queued tasks are dropped, and the listener is not called any more.
  void cancel() noexcept {
    const Core core = core_;
    if (core != nullptr) core->cancel();
  }

  /// The state of the stream, which may change at any time.
  [[nodiscard]] AsyncConsumerState state() const noexcept {
    return core_ == nullptr ? AsyncConsumerState::kReleased : core_->state();
  }

 private:
  // A method that calls the other side keeps a copy: this handle may be destroyed meanwhile. In
  // `take` the calls themselves keep the stream, because a copy costs as much as its lock.
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
