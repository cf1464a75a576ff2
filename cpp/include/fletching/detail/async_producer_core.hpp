// SPDX-License-Identifier: Apache-2.0
//
// The machine behind AsyncProducer. The states and what is done in each are the table in
// docs/reference/async.md; nothing here is part of the interface.
#ifndef FLETCHING_DETAIL_ASYNC_PRODUCER_CORE_HPP
#define FLETCHING_DETAIL_ASYNC_PRODUCER_CORE_HPP

#include <cerrno>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "fletching/abi.h"
#include "fletching/async_source.hpp"
#include "fletching/detail/async_backlog.hpp"
#include "fletching/detail/async_copy.hpp"
#include "fletching/detail/async_task.hpp"
#include "fletching/executor.hpp"
#include "fletching/owner.hpp"
#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

/// The stream itself. It keeps itself alive until release of the handler has returned.
class AsyncProducerCore final : public Job {
  using State = AsyncProducerState;

 public:
  AsyncProducerCore(ArrowAsyncDeviceStreamHandler* handler, Executor& executor,
                    AsyncProducerOptions&& options) noexcept
      : handler_(handler),
        executor_(executor),
        metadata_(std::move(options.metadata)),
        source_(std::move(options.source)) {
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

  // The source's side.

  Status give_schema(Schema&& schema) noexcept {
    Schema given(std::move(schema));
    if (given.is_released()) {
      return plain_error(EINVAL, "schema: released: expected a schema that can be read");
    }
    std::unique_lock lock(mutex_);
    if (state_ == State::kCreated) {
      shape_ = OuterShape::of(*given.get());
      schema_ = std::move(given);
      state_ = State::kSchema;
      schedule(lock);
      return {};
    }
    const bool late = takes_batches(state_) || schema_given_;
    lock.unlock();
    if (late) return plain_error(EINVAL, "the schema was given already: give it once");
    return over();
  }

  /// Takes the node when it is wanted, and deletes it otherwise. `shape` is that of its batch, NULL
  /// when the batch is made later.
  Status give_batch(std::unique_ptr<AsyncTaskNode> node, const OuterShape* shape) noexcept {
    std::unique_lock lock(mutex_);
    if (takes_batches(state_) && !backlog_.has_end()) {
      if (shape != nullptr && *shape != shape_) return other_shape();
      backlog_.add(node.release());
      schedule(lock);
      return {};
    }
    return refused(lock, "a batch comes after the schema and before the end");
  }

  Status give_end() noexcept {
    std::unique_lock lock(mutex_);
    if (takes_batches(state_) && !backlog_.has_end()) {
      backlog_.end();
      schedule(lock);
      return {};
    }
    return refused(lock, "the end comes after the schema, once");
  }

  void fail(Error&& error, std::string&& metadata) noexcept {
    std::unique_lock lock(mutex_);
    if (backlog_.has_end()) return;
    note(lock, std::move(error), std::move(metadata));
  }

  /// The source goes away.
  void abandon() noexcept {
    std::unique_lock lock(mutex_);
    if (backlog_.has_end() || !goes_on(state_)) return;
    note(lock, plain_error(ECANCELED, "the source went away before the end"), {});
  }

  /// How many batches more the consumer wants than it was given.
  [[nodiscard]] std::int64_t unmet_demand() noexcept {
    const std::lock_guard lock(mutex_);
    return takes_batches(state_) ? backlog_.unmet() : 0;
  }

  [[nodiscard]] State state() noexcept {
    const std::lock_guard lock(mutex_);
    return state_;
  }

  [[nodiscard]] Status check_given(const ArrowDeviceArray& batch) const noexcept {
    return check_device(batch, raw_.device_type);
  }

  /// Of a batch that is made when its task is extracted: the schema is known by then.
  [[nodiscard]] Status check_made(const ArrowDeviceArray& batch) const noexcept {
    return check_batch_of(batch, shape_, raw_.device_type, nullptr);
  }

  // The consumer's side.

  static int extract_data(ArrowAsyncTask* self, ArrowDeviceArray* out) noexcept {
    auto* node = static_cast<AsyncTaskNode*>(self->private_data);
    self->private_data = nullptr;
    return node == nullptr ? EINVAL : node->core.extract(node, out);
  }

  // The executor's side: at most one handler call.
  bool run() noexcept override {
    std::unique_lock lock(mutex_);
    tell_source(lock);
    switch (state_) {
      case State::kSchema:
        return call_on_schema(lock);
      case State::kStreaming:
        if (backlog_.task_is_due()) return call_on_next_task(lock);
        if (backlog_.end_is_due()) return call_end(lock);
        break;
      case State::kFailing:
        return call_on_error(lock);
      default:
        if (release_due_) return call_release(lock);
    }
    return more();
  }

 private:
  using Lock = std::unique_lock<std::mutex>;

  static AsyncProducerCore& from(ArrowAsyncProducer* self) noexcept {
    return *static_cast<AsyncProducerCore*>(self->private_data);
  }

  void request(std::int64_t n) noexcept {
    std::unique_lock lock(mutex_);
    if (!goes_on(state_)) return;
    if (n <= 0) {
      note(lock, plain_error(EINVAL, "request was called with a number that is not positive"), {});
    } else {
      backlog_.want(n);
      schedule(lock);
    }
  }

  void cancel() noexcept {
    std::unique_lock lock(mutex_);
    if (!goes_on(state_)) return;
    if (state_ == State::kInSchema || state_ == State::kInTask) {
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
    } else {
      Status given = node->give(out);
      if (!given.ok()) {
        zero(out);  // a consumer may not have done it, and looks at release
        code = given.error().code();
        std::unique_lock lock(mutex_);
        note(lock, std::move(given).error(), {});
      }
    }
    if (node->leave()) delete node;
    close_one();
    return code;
  }

  /// The last one who counts down, and nobody else, lets release begin; until then the stream
  /// lives.
  void close_one() noexcept {
    if (!open_.close_one()) return;
    std::unique_lock lock(mutex_);
    release_due_ = true;
    schedule(lock);
  }

  // What is done in the table's cells. With the lock, which some of them give up.

  /// Notes the error that on_error is going to tell, unless the stream is over.
  void note(Lock& lock, Error&& error, std::string&& metadata) noexcept {
    if (!goes_on(state_)) return;
    const bool calling = state_ == State::kInSchema || state_ == State::kInTask;
    state_ = calling ? State::kErring : State::kFailing;
    failure_ = {std::move(error), std::move(metadata)};
    discard(lock);
  }

  /// Frees what was not delivered, without the lock.
  void discard(Lock& lock) noexcept {
    const AsyncTaskList batches = backlog_.pop_all();
    const Schema schema(std::move(schema_));
    if (!stopped_) stop_news_ = source_ != nullptr && !backlog_.has_end();
    stopped_ = true;
    schedule(lock);
  }

  /// A state in which only release is due, once the count of open tasks allows it.
  void finish(State state) noexcept {
    state_ = state;
    release_due_ = open_.no_more(delivered_);
  }

  Status refused(Lock& lock, std::string_view rule) noexcept {
    const bool wrong = state_ == State::kCreated || backlog_.has_end();
    lock.unlock();
    return wrong ? plain_error(EINVAL, rule) : over();
  }

  static Error over() noexcept {
    return plain_error(ECANCELED, "the stream is over: nothing more is delivered");
  }

  // Scheduling.

  [[nodiscard]] bool more() noexcept {
    scheduled_ = due();
    return scheduled_;
  }

  [[nodiscard]] bool due() const noexcept {
    if (stop_news_ || release_due_) return true;
    switch (state_) {
      case State::kSchema:
      case State::kFailing:
        return true;
      case State::kStreaming:
        return backlog_.task_is_due() || backlog_.end_is_due() || demand_due();
      default:
        return false;
    }
  }

  [[nodiscard]] bool demand_due() const noexcept {
    return source_ != nullptr && backlog_.has_news();
  }

  /// Gives the lock up. Nothing of the stream is touched after that.
  void schedule(Lock& lock) noexcept {
    const bool submit = !scheduled_ && due();
    scheduled_ = scheduled_ || submit;
    Executor& executor = executor_;
    lock.unlock();
    if (submit) executor.submit(*this);
  }

  void tell_source(Lock& lock) noexcept {
    if (std::exchange(stop_news_, false)) {
      lock.unlock();
      source_->on_stop();
      lock.lock();
    }
    if (state_ == State::kStreaming && demand_due()) {
      backlog_.told();
      const std::int64_t n = backlog_.unmet();
      lock.unlock();
      source_->on_demand(n);
      lock.lock();
    }
  }

  // Handler calls. Each is made without the lock.

  bool call_on_schema(Lock& lock) noexcept {
    Schema handed(std::move(schema_));
    schema_given_ = true;
    state_ = State::kInSchema;
    lock.unlock();
    const int result = handler_->on_schema(handler_, handed.get());
    handed.release();
    lock.lock();
    return returned(lock, result);
  }

  bool call_on_next_task(Lock& lock) noexcept {
    AsyncTaskNode* node = backlog_.pop();
    state_ = State::kInTask;
    ++delivered_;
    lock.unlock();
    ArrowAsyncTask task{extract_data, node};
    const char* metadata = node->metadata == nullptr ? nullptr : node->metadata->data();
    const int result = handler_->on_next_task(handler_, &task, metadata);
    const bool extracted = node->leave();
    if (extracted || result != 0) delete node;
    lock.lock();
    if (!extracted && result != 0) --delivered_;
    return returned(lock, result);
  }

  bool call_end(Lock& lock) noexcept {
    state_ = State::kInEnd;
    lock.unlock();
    const int result = handler_->on_next_task(handler_, nullptr, nullptr);
    lock.lock();
    return returned(lock, result);
  }

  bool returned(Lock& lock, int result) noexcept {
    if (result != 0) {
      finish(State::kRefused);
      discard(lock);  // scheduled already: it gives up the lock and submits nothing
      lock.lock();
    } else if (state_ == State::kStopping) {
      finish(State::kCancelled);
    } else if (state_ == State::kErring) {
      state_ = State::kFailing;
    } else if (state_ == State::kInEnd) {
      finish(State::kEnded);
    } else {
      state_ = State::kStreaming;
    }
    return more();
  }

  bool call_on_error(Lock& lock) noexcept {
    state_ = State::kInError;
    const AsyncFailure told = std::move(failure_);
    lock.unlock();
    handler_->on_error(handler_, told.error.code(), told.text(), told.block());
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
  Executor& executor_;
  const std::string metadata_;
  std::shared_ptr<AsyncSource> source_;  // called by `run` alone
  std::shared_ptr<AsyncProducerCore> self_;

  OpenTasks open_;

  std::mutex mutex_;  // for everything below
  State state_ = State::kCreated;
  bool scheduled_ = false;  // the executor has the job
  bool schema_given_ = false;
  bool release_due_ = false;
  bool stop_news_ = false;
  bool stopped_ = false;
  std::int64_t delivered_ = 0;  // tasks that were not refused
  AsyncBacklog backlog_;
  Schema schema_;
  OuterShape shape_;  // of the schema; not written any more once a task is delivered
  AsyncFailure failure_;
};

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_DETAIL_ASYNC_PRODUCER_CORE_HPP
