// SPDX-License-Identifier: Apache-2.0
//
// Implementation of AsyncProducer: the state table of docs/reference/async.md. Not part of the
// interface.
#ifndef FLETCHING_DETAIL_ASYNC_PRODUCER_CORE_HPP
#define FLETCHING_DETAIL_ASYNC_PRODUCER_CORE_HPP

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "fletching/abi.h"
#include "fletching/async_source.hpp"
#include "fletching/detail/async/backlog.hpp"
#include "fletching/detail/async/copy.hpp"
#include "fletching/detail/async/producer_states.hpp"
#include "fletching/detail/async/task.hpp"
#include "fletching/executor.hpp"
#include "fletching/owner.hpp"
#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

/// The stream. It keeps itself alive until the handler's release has returned.
class AsyncProducerCore final : public AsyncProducerStates {
 public:
  AsyncProducerCore(ArrowAsyncDeviceStreamHandler* handler, Executor& executor,
                    AsyncProducerOptions&& options) noexcept
      : AsyncProducerStates(executor, std::move(options.source)),
        handler_(handler),
        metadata_(std::move(options.metadata)) {
    raw_.device_type = options.device_type;
    raw_.request = [](ArrowAsyncProducer* self, std::int64_t n) { from(self).request(n); };
    raw_.cancel = [](ArrowAsyncProducer* self) { from(self).cancel(); };
    raw_.additional_metadata = metadata_.empty() ? nullptr : metadata_.data();
    raw_.private_data = this;
  }

  static void start(const std::shared_ptr<AsyncProducerCore>& core) noexcept {
    core->self_ = core;
    core->handler_->producer = &core->raw_;
  }

  // Source side.

  Status set_schema(Schema&& schema) noexcept {
    Schema given(std::move(schema));
    if (given.is_released()) {
      return plain_error(EINVAL, "schema: released: expected a live schema");
    }
    std::unique_lock lock(mutex_);
    if (state_ == State::kCreated) {
      shape_ = OuterShape::of(*given);
      schema_ = std::move(given);
      state_ = State::kSchema;
      schedule(lock);
      return {};
    }
    const bool late = accepts_batches(state_) || schema_given_;
    lock.unlock();
    if (late) return plain_error(EINVAL, "schema: set twice: expected one call");
    return over();
  }

  /// Consumes the batch unless the stream is over. Throws std::bad_alloc and leaves the batch
  /// unchanged.
  Status push(DeviceArray& array, std::string&& block) {
    if (!is_on(*array.get(), raw_.device_type)) return check_device(*array.get(), raw_.device_type);
    if (!block.empty()) {
      Status readable = check_metadata(block);
      if (!readable.ok()) return readable;
    }
    TaskMetadata metadata = task_metadata(std::move(block));
    if (inside_on_demand() && streaming() && !backlog_.has_end() && backlog_.is_in_order() &&
        OuterShape::of(array->array) == shape_) {
      backlog_.add_here(*this, array, std::move(metadata));
      return {};
    }
    Lock lock(mutex_);
    if (!accepts_more()) return refused(lock, kBatchRule);
    if (OuterShape::of(array->array) != shape_) return other_shape();
    backlog_.add(*this, array, std::move(metadata));
    schedule(lock);
    return {};
  }

  /// Pushes a batch that is made on extraction. Deletes the node if the stream is over.
  Status push_made(std::unique_ptr<AsyncTaskNode> node) noexcept {
    Lock lock(mutex_);
    if (!accepts_more()) return refused(lock, kBatchRule);
    backlog_.add(node.release());
    schedule(lock);
    return {};
  }

  Status end() noexcept {
    Lock lock(mutex_);
    if (!accepts_more())
      return refused(lock, "end: out of order: expected one call after the schema");
    backlog_.end();
    schedule(lock);
    return {};
  }

  void fail(Error&& error, std::string&& metadata) noexcept {
    std::unique_lock lock(mutex_);
    if (backlog_.has_end()) return;
    note(lock, std::move(error), std::move(metadata));
  }

  /// Called when the source's handle is destroyed.
  void abandon() noexcept {
    std::unique_lock lock(mutex_);
    if (backlog_.has_end() || !is_open(state_)) return;
    note(lock, plain_error(ECANCELED, "AsyncProducer: destroyed before end or fail"), {});
  }

  /// Checks a batch that was made on extraction. The schema is known by then.
  [[nodiscard]] Status check_made(const ArrowDeviceArray& batch) const noexcept {
    return check_batch_of(batch, shape_, raw_.device_type, nullptr);
  }

  // Consumer side.

  static int extract_data(ArrowAsyncTask* self, ArrowDeviceArray* out) noexcept {
    auto* node = static_cast<AsyncTaskNode*>(self->private_data);
    self->private_data = nullptr;
    return node == nullptr ? EINVAL : node->core.extract(node, out);
  }

  // Executor side. Makes at most one handler call.
  bool run() noexcept override {
    if (streaming()) notify_source();
    return streaming() && backlog_.task_is_due() ? call_on_next_task() : run_locked();
  }

 private:
  static AsyncProducerCore& from(ArrowAsyncProducer* self) noexcept {
    return *static_cast<AsyncProducerCore*>(self->private_data);
  }

  void request(std::int64_t n) noexcept {
    std::unique_lock lock(mutex_);
    if (!is_open(state_)) return;
    if (n <= 0) {
      note(lock, not_positive("request: n", n), {});
    } else {
      backlog_.add_demand(n);
      schedule(lock);
    }
  }

  void cancel() noexcept {
    std::unique_lock lock(mutex_);
    if (!is_open(state_)) return;
    if (job_settles()) {
      state_ = State::kStopping;
    } else {
      finish(State::kCancelled);
    }
    discard(lock);
  }

  int extract(AsyncTaskNode* node, ArrowDeviceArray* out) noexcept {
    int code = 0;
    if (out == nullptr) {
      node->drop();
    } else if (node->is_made_later) {
      code = make(node, out);
    } else {
      move_struct(node->array.get(), out);
    }
    // If release does not wait for this task, the stream may be destroyed right after close().
    if (node->close()) close_counted();
    return code;
  }

  void close_counted() noexcept {
    Lock lock(mutex_);
    release_due_ = --open_ == 0;
    schedule(lock);
  }

  int make(AsyncTaskNode* node, ArrowDeviceArray* out) noexcept {
    Status made = node->make(out);
    if (made.ok()) return 0;
    zero(out);  // a consumer may not have zeroed it and checks release
    const int code = made.error().code();
    Lock lock(mutex_);
    note(lock, std::move(made).error(), {});
    return code;
  }

  // The job.

  /// Whether this is the job's thread inside on_demand. No other thread finds its id there.
  [[nodiscard]] bool inside_on_demand() const noexcept {
    return on_demand_thread_.load(std::memory_order_relaxed) == std::this_thread::get_id();
  }

  void notify_source() noexcept {
    if (!demand_due()) return;
    const std::int64_t n = backlog_.notify();
    if (n <= 0) return;
    on_demand_thread_.store(std::this_thread::get_id(), std::memory_order_relaxed);
    source_->on_demand(n);
    on_demand_thread_.store({}, std::memory_order_relaxed);
  }

  bool run_locked() noexcept {
    Lock lock(mutex_);
    settle(lock);
    if (std::exchange(stop_news_, false)) {
      lock.unlock();
      source_->on_stop();
      lock.lock();
    }
    switch (state_) {
      case State::kSchema:
        return call_on_schema(lock);
      case State::kStreaming:
        backlog_.exchange();
        if (backlog_.end_is_due()) return call_end(lock);
        if (!backlog_.task_is_due()) break;
        lock.unlock();
        return call_on_next_task();
      case State::kErrorPending:
        return call_on_error(lock);
      default:
        if (release_due_) return call_release(lock);
    }
    return more();
  }

  // Handler calls. Each runs without the lock.

  bool call_on_schema(Lock& lock) noexcept {
    Schema handed(std::move(schema_));
    schema_given_ = true;
    state_ = State::kInSchema;
    calling_ = true;
    lock.unlock();
    const int result = handler_->on_schema(handler_, handed.get());
    handed.release();
    return returned(result);
  }

  /// Takes the lock only when the job's own list is empty.
  bool call_on_next_task() noexcept {
    AsyncTaskNode* node = backlog_.pop();
    calling_.store(true, std::memory_order_relaxed);
    ArrowAsyncTask task{extract_data, node};
    const char* metadata = node->metadata == nullptr ? nullptr : node->metadata->data();
    const int result = handler_->on_next_task(handler_, &task, metadata);
    if (result != 0 && node->refuse()) node->drop();
    backlog_.sent(node);
    calling_.store(false, std::memory_order_relaxed);
    const bool more = result == 0 && streaming() && (backlog_.task_is_due() || demand_due());
    return more || returned(result);
  }

  bool call_end(Lock& lock) noexcept {
    state_ = State::kInEnd;
    lock.unlock();
    return returned(handler_->on_next_task(handler_, nullptr, nullptr));
  }

  bool returned(int result) noexcept {
    Lock lock(mutex_);
    calling_ = false;
    if (result != 0) {
      finish(State::kRefused);
      discard(lock);  // already scheduled: it unlocks and does not submit
      lock.lock();
    } else if (state_ == State::kInSchema) {
      state_ = State::kStreaming;
    } else if (state_ == State::kInEnd) {
      finish(State::kEnded);
    }
    return more();
  }

  bool call_on_error(Lock& lock) noexcept {
    state_ = State::kInError;
    const AsyncFailure failure = std::move(failure_);
    lock.unlock();
    handler_->on_error(handler_, failure.error.code(), failure.text(), failure.block());
    lock.lock();
    finish(State::kFailed);
    return more();
  }

  bool call_release(Lock& lock) noexcept {
    state_ = State::kInRelease;
    release_due_ = false;
    lock.unlock();
    handler_->release(handler_);
    if (source_ != nullptr) source_->on_release();
    lock.lock();
    state_ = State::kReleased;
    const std::shared_ptr<AsyncSource> source = std::move(source_);
    const std::shared_ptr<AsyncProducerCore> self = std::move(self_);
    lock.unlock();
    return false;
  }

  ArrowAsyncProducer raw_{};
  ArrowAsyncDeviceStreamHandler* const handler_;
  const std::string metadata_;
  std::shared_ptr<AsyncProducerCore> self_;

  std::atomic<std::thread::id> on_demand_thread_;  // thread that runs on_demand, if any
};

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_DETAIL_ASYNC_PRODUCER_CORE_HPP
