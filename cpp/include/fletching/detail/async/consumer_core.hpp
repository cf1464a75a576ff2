// SPDX-License-Identifier: Apache-2.0
//
// Implementation of AsyncConsumer: the state table of docs/reference/async.md. Not part of the
// interface.
#ifndef FLETCHING_DETAIL_ASYNC_CONSUMER_CORE_HPP
#define FLETCHING_DETAIL_ASYNC_CONSUMER_CORE_HPP

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "fletching/abi.h"
#include "fletching/async_listener.hpp"
#include "fletching/detail/async/calls.hpp"
#include "fletching/detail/async/consumer_queue.hpp"
#include "fletching/detail/async/copy.hpp"
#include "fletching/detail/async/fifo.hpp"
#include "fletching/detail/async/queued.hpp"
#include "fletching/detail/checked.hpp"
#include "fletching/detail/ownership/schema_copy.hpp"
#include "fletching/owner.hpp"
#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

/// The stream. The handler keeps it alive until its release has returned, and calls to the other
/// side keep it alive until they have returned.
class AsyncConsumerCore final : public AsyncConsumerQueue {
 public:
  AsyncConsumerCore(std::shared_ptr<AsyncListener> listener, bool strict) noexcept
      : strict_(strict), listener_(std::move(listener)) {
    handler_.on_schema = [](ArrowAsyncDeviceStreamHandler* self, ArrowSchema* schema) {
      return from(self).receive_schema(schema);
    };
    handler_.on_next_task = [](ArrowAsyncDeviceStreamHandler* self, ArrowAsyncTask* task,
                               const char* metadata) {
      return from(self).receive_task(task, metadata);
    };
    handler_.on_error = [](ArrowAsyncDeviceStreamHandler* self, int code, const char* message,
                           const char* metadata) {
      from(self).receive_error(code, message, metadata);
    };
    handler_.release = [](ArrowAsyncDeviceStreamHandler* self) { from(self).handle_release(); };
    handler_.private_data = this;
  }

  static ArrowAsyncDeviceStreamHandler* hand_out(
      const std::shared_ptr<AsyncConsumerCore>& core) noexcept {
    core->self_ = core;
    return &core->handler_;
  }

  // Application side.
  Status request(std::int64_t n) noexcept {
    if (n <= 0) return not_positive("request: n", n);
    std::unique_lock lock(mutex_);
    if (state_ == State::kCreated) unsent_demand_ = saturating_add(unsent_demand_, n);
    send_request(lock, n);
    return {};
  }

  enum class When : std::uint8_t { kNow, kWait };

  std::optional<Result<AsyncBatch>> take(When when, std::int64_t more) noexcept {
    if (more < 0) {
      return error_with(EINVAL, [&] {
        return "take: more is negative: expected 0 or more, got " + std::to_string(more);
      });
    }
    std::shared_ptr<const AsyncConsumerQueue> waiting;
    while (true) {
      if (when == When::kWait) waiting = wait_for_task();
      std::unique_lock lock(mutex_);
      if (may_take()) return take_queued(lock, more);
      // Another thread may have taken the task.
      if (when == When::kNow || !is_live(state_)) return take_kept(lock);
    }
  }

  void cancel() noexcept {
    std::unique_lock lock(mutex_);
    const bool streaming = state_ == State::kStreaming;
    if (state_ == State::kCreated) go(State::kCancelledEarly);
    if (streaming) go(State::kCancelled);
    const Fifo<Result<AsyncBatch>> kept = kept_.pop_all();
    if (!close()) return lock.unlock();
    const AsyncCalls::Out out(calls_, AsyncCalls::To::kProducer);
    lock.unlock();
    if (streaming) producer_->cancel(producer_);
    lock.lock();
    drop_queued(lock);
  }

 private:
  /// Scope of a handler call.
  struct In {
    explicit In(AsyncConsumerCore& called) noexcept : core(called), alone(called.calls_.enter()) {}
    ~In() {
      if (alone && core.calls_.leave()) core.drop_references();
    }
    In(const In&) = delete;
    In& operator=(const In&) = delete;

    AsyncConsumerCore& core;
    const bool alone;
  };

  static AsyncConsumerCore& from(ArrowAsyncDeviceStreamHandler* self) noexcept {
    return *static_cast<AsyncConsumerCore*>(self->private_data);
  }

  // Handler side.
  int receive_schema(ArrowSchema* schema) noexcept {
    const In in(*this);
    if (!in.alone) return refuse(overlapping());
    if (state_ != State::kCreated && state_ != State::kCancelledEarly) {
      return refuse(plain_error(EINVAL, "on_schema: called twice: expected one call"));
    }
    if (const char* missing = missing_for_schema(handler_, schema)) {
      return refuse(plain_error(EINVAL, missing));
    }
    MetadataCopy metadata;
    Status copied = copy_metadata(handler_.producer->additional_metadata, &metadata);
    if (!copied.ok()) return refuse(std::move(copied).error());
    if (state_ == State::kCreated) {
      Status accepted = listener_->accept_schema(*schema);
      if (!accepted.ok()) return refuse(std::move(accepted).error());
    }
    Result<Schema> formats = strict_ ? copy_formats(*schema) : Result<Schema>(std::in_place);
    if (!formats.ok()) return refuse(std::move(formats).error());
    Schema taken(schema);
    std::unique_lock lock(mutex_);
    producer_ = handler_.producer;
    promise_ = {OuterShape::of(*taken.get()), producer_->device_type, *std::move(formats)};
    const bool is_cancelled = state_ == State::kCancelledEarly;
    go(is_cancelled ? State::kCancelled : State::kStreaming);
    const std::int64_t n = is_cancelled ? 0 : unsent_demand_;
    add_demand(n);
    const AsyncCalls::Out out(calls_, AsyncCalls::To::kProducer);
    lock.unlock();
    if (is_cancelled) {
      taken.release();
      producer_->cancel(producer_);
      return 0;
    }
    if (n > 0) producer_->request(producer_, n);
    listener_->on_schema(std::move(taken), {promise_.device_type, std::move(metadata)});
    return 0;
  }

  int receive_task(ArrowAsyncTask* task, const char* metadata) noexcept {
    const In in(*this);
    if (!in.alone) return refuse(overlapping());
    if (task == nullptr) return receive_end();
    if (task->extract_data == nullptr) {
      return refuse(plain_error(EINVAL, "task.extract_data: NULL: expected a callback"));
    }
    MetadataCopy copy;
    if (metadata != nullptr) {
      Status copied = copy_metadata(metadata, &copy);
      if (!copied.ok()) return refuse(std::move(copied).error());
    }
    if (state_ == State::kStreaming) {
      Status accepted = listener_->accept_task(view_of(copy));
      if (!accepted.ok()) return refuse(std::move(accepted).error());
    }
    return queue_task({*task, std::move(copy)});
  }

  int queue_task(QueuedTask task) noexcept {
    const State state = state_.load(std::memory_order_acquire);
    const bool streaming = state == State::kStreaming;
    if (!streaming && state != State::kCancelled && state != State::kBroken) {
      return refuse(plain_error(
          EINVAL,
          "on_next_task: out of order: expected a call after on_schema and before the end"));
    }
    if (!has_demand()) {
      return refuse(plain_error(
          EINVAL, "on_next_task: too many tasks: expected at most the sum of the requests"));
    }
    if (!streaming) {
      drop_cancelled(task);
    } else if (!make_room()) {
      return refuse(out_of_memory());
    } else if (queue(std::move(task))) {
      listener_->on_task();
    }
    return 0;
  }

  int receive_end() noexcept {
    std::unique_lock lock(mutex_);
    switch (state_) {
      case State::kStreaming:
        go(State::kEnded);
        lock.unlock();
        listener_->on_end();
        return 0;
      case State::kCancelled:
        go(State::kEnded);
        return 0;
      case State::kBroken:
        go(State::kFailed);
        return 0;
      default:
        lock.unlock();
        return refuse(plain_error(
            EINVAL, "on_next_task(NULL): out of order: expected one call after on_schema"));
    }
  }

  void receive_error(int code, const char* message, const char* metadata) noexcept {
    const In in(*this);
    std::unique_lock lock(mutex_);
    const bool notify = is_live(state_);
    if (notify || is_silent(state_)) go(State::kFailed);
    if (!notify) return;
    const std::shared_ptr<AsyncListener> listener = end_queue(lock);
    MetadataCopy copy;
    // The application is notified of an error even when its metadata is malformed.
    (void)copy_metadata(metadata, &copy);
    listener->on_error(foreign_error(code, message), view_of(copy));
  }

  void handle_release() noexcept {
    std::unique_lock lock(mutex_);
    if (state_ == State::kReleasing || state_ == State::kReleased) return;
    const bool notify = is_live(state_);
    const bool keep = close() && state_ == State::kEnded;
    const bool wait = calls_.any() && !calls_.inside();
    const bool requests = calls_.begin_wait();
    go(wait ? State::kReleasing : State::kReleased);
    if (keep) kept_.begin();
    const std::shared_ptr<AsyncListener> listener = listener_;
    lock.unlock();
    // A producer that is destroyed with its last task must outlive another thread's call to it.
    if (requests) {
      listener->on_release_waits();
      calls_.wait_for_producer();
    }
    // This thread is inside a request for more: extract the tasks it has already taken.
    calls_.for_taken_here([this](TakenTask& taken) { taken.extract_once(promise_); });
    if (keep) keep_queued();
    if (notify) {
      lock.lock();
      drop_queued(lock);
      listener->on_error(
          plain_error(EIO,
                      "release: called too early: expected on_next_task(NULL) or on_error before"),
          {});
    }
    if (wait) wait_for_calls(*listener);
    lock.lock();
    calls_.keep(self_);
    lock.unlock();
    if (!calls_.leave_to_handler()) drop_references();
  }

  // Actions of the state table.

  /// Ends the queue after an error. Called with the lock, returns without it. Returns the listener,
  /// because a release that violates the protocol may run meanwhile.
  std::shared_ptr<AsyncListener> end_queue(std::unique_lock<std::mutex>& lock) noexcept {
    (void)close();
    std::shared_ptr<AsyncListener> listener = listener_;
    drop_queued(lock);
    return listener;
  }

  /// Ends the stream with an error. Returns the error's code, which is the result of the handler
  /// call.
  int refuse(const Error& error) noexcept {
    std::unique_lock lock(mutex_);
    const bool notify = is_live(state_);
    if (notify || is_silent(state_)) go(State::kRefused);
    if (notify) end_queue(lock)->on_error(error, {});
    return error.code();
  }

  /// Ends the stream for the application after a failed extraction. Cancels the producer unless it
  /// knows the error: otherwise it would wait for the next request.
  void lose(bool producer_knows) noexcept {
    std::unique_lock lock(mutex_);
    if (state_ != State::kStreaming) return;
    go(State::kBroken);
    (void)close();
    const AsyncCalls::Out out(calls_, AsyncCalls::To::kProducer);
    lock.unlock();
    if (!producer_knows) producer_->cancel(producer_);
    lock.lock();
    drop_queued(lock);
  }

  /// Requests only while streaming. Called with the lock, returns without it.
  void send_request(std::unique_lock<std::mutex>& lock, std::int64_t n) noexcept {
    if (state_ != State::kStreaming) return lock.unlock();
    add_demand(n);
    const AsyncCalls::Out out(calls_, AsyncCalls::To::kProducer);
    lock.unlock();
    producer_->request(producer_, n);
  }

  std::optional<Result<AsyncBatch>> take_queued(std::unique_lock<std::mutex>& lock,
                                                std::int64_t more) noexcept {
    std::optional<Result<AsyncBatch>> batch(std::in_place, std::in_place);
    TakenTask taken{queue_.pop(), *batch};
    const AsyncCalls::Out out(calls_, AsyncCalls::To::kTask, &taken);
    // Request before extracting, while a producer that is destroyed with its last task still
    // exists.
    if (more == 0) lock.unlock();
    if (more > 0) send_request(lock, more);
    taken.extract_once(promise_);
    if (!batch->ok()) lose(taken.producer_knows);
    return batch;
  }

  void drop_references() noexcept {
    std::unique_lock lock(mutex_);
    const std::shared_ptr<AsyncListener> listener = std::move(listener_);
    const std::shared_ptr<AsyncConsumerCore> self = std::move(self_);
    lock.unlock();
  }

  const bool strict_;
  ArrowAsyncDeviceStreamHandler handler_{};
  std::shared_ptr<AsyncListener> listener_;
  std::shared_ptr<AsyncConsumerCore> self_;
  ArrowAsyncProducer* producer_ = nullptr;
  std::int64_t unsent_demand_ = 0;  // requested before on_schema; protected by the lock
};

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_DETAIL_ASYNC_CONSUMER_CORE_HPP
