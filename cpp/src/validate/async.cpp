// SPDX-License-Identifier: Apache-2.0
//
// Checker of async streams: a handler for the producer that wraps the consumer's handler.
#include <cerrno>
#include <cstring>
#include <optional>

#include "async_stream.hpp"
#include "fletching/detail/ownership/schema_copy.hpp"
#include "fletching/metadata.hpp"
#include "hooks.hpp"
#include "places.hpp"

namespace fletching::validate {
namespace {

using Handler = ArrowAsyncDeviceStreamHandler;

constexpr Rule kHandlerLives = Rule::async_release_always_called;
constexpr Rule kTaskLives = Rule::async_task_extracted_once;
constexpr Rule kSchemaLives = Rule::async_schema_released_independently;

/// Copy of bytes that must not change during a call. Empty if out of memory.
class KeptBytes {
 public:
  KeptBytes() = default;
  KeptBytes(Log& log, const char* bytes, std::size_t size) noexcept : bytes_(bytes) {
    copy_ = text_or_empty([&] { return std::string(bytes, size); });
    if (!log.has(FLETCHING_STRESS_POISON)) return;
    // Includes the string's NUL.
    lent_ = log.texts.keep_or_null(copy_.c_str(), copy_.size() + 1);
    log_ = &log;
  }
  KeptBytes(const KeptBytes&) = delete;
  KeptBytes& operator=(const KeptBytes&) = delete;
  ~KeptBytes() {
    if (log_ != nullptr) log_->texts.end(lent_);
  }

  [[nodiscard]] bool changed() const noexcept {
    return !copy_.empty() && std::memcmp(bytes_, copy_.data(), copy_.size()) != 0;
  }
  [[nodiscard]] const std::string& copy() const noexcept { return copy_; }
  /// Returns the bytes for the consumer: with the stress option, a copy that ends with the call.
  [[nodiscard]] const char* for_consumer(const char* bytes) const noexcept {
    return lent_ != nullptr && !copy_.empty() ? lent_ : bytes;
  }

 private:
  const char* bytes_ = nullptr;
  std::string copy_;
  Log* log_ = nullptr;
  const char* lent_ = nullptr;
};

KeptBytes check_metadata(AsyncStream& stream, const char* block, Rule rule,
                         const Path& path) noexcept {
  if (block == nullptr) return {};
  const Result<MetadataView> view = MetadataView::read(block, kMostMetadata);
  if (view) return {*stream.log, view->block().data(), view->block().size()};
  stream.report(rule, path,
                text_or_empty([&] { return std::string(view.error().message()); }).c_str());
  return {};
}

// --- Handler calls ---

void call_release(AsyncStream& stream) noexcept {
  const Inside inside(&stream, Call::kRelease);
  if (stream.inner->release != nullptr) stream.inner->release(stream.inner);
  stream.log->note("release", 0, 0);
  stream.log->end();
}

/// Retires the stream. Any later call is a finding.
void retire(AsyncStream& stream) noexcept {
  stream.with_protocol([](AsyncProtocol& protocol) { protocol.end_handler(Call::kRelease, 0); });
  stream.released = stream.controls->released = true;
  Records::get().retire(*stream.controls);
  Records::get().retire(stream);
}

/// One handler call. Empty if the consumer must not receive it.
class HandlerCall {
 public:
  HandlerCall(Handler* self, Call call) noexcept
      : stream_(record_of<AsyncStream>(self, Rule::async_handler_private_data_untouched)),
        call_(call) {
    if (stream_ == nullptr) return;
    index_ = next_index(*stream_, call);
    const Verdict verdict = stream_->with_protocol([&](AsyncProtocol& protocol) {
      return protocol.begin_handler(call, Inside::of(stream_.get()));
    });
    report(*stream_, verdict, call, index_);
    if (!verdict.forward) {
      stream_ = nullptr;
      return;
    }
    inside_.emplace(stream_.get(), call);
    check_ready();
    check_producer_metadata();
    if (call != Call::kRelease) show_producer(self->producer);
  }
  HandlerCall(const HandlerCall&) = delete;
  HandlerCall& operator=(const HandlerCall&) = delete;
  ~HandlerCall() {
    if (stream_ == nullptr) return;
    inside_.reset();
    if (end_is_release()) retire(*stream_);
  }

  explicit operator bool() const noexcept { return stream_ != nullptr; }
  AsyncStream* operator->() const noexcept { return stream_.get(); }
  AsyncStream& operator*() const noexcept { return *stream_; }
  [[nodiscard]] const std::shared_ptr<AsyncStream>& stream() const noexcept { return stream_; }
  [[nodiscard]] std::int64_t index() const noexcept { return index_; }
  [[nodiscard]] Path path(const char* member = "") const noexcept {
    return path_of(call_, index_, member);
  }

  int finish(int result) noexcept {
    result_ = result;
    stream_->log->note(name_of(call_), index_, result);
    stream_->log->release_delayed();
    return result;
  }

 private:
  /// Ends the call. Returns true if the handler is released.
  bool end_is_release() noexcept {
    if (call_ == Call::kRelease) return true;
    const bool release_is_due = stream_->with_protocol(
        [this](AsyncProtocol& protocol) { return protocol.end_handler(call_, result_); });
    if (release_is_due) call_release(*stream_);
    return release_is_due;
  }

  /// Reports callbacks that the consumer has changed after passing on the handler.
  void check_ready() noexcept {
    const Handler& now = *stream_->inner;
    Handler& given = stream_->given;
    const bool same = now.on_schema == given.on_schema && now.on_next_task == given.on_next_task &&
                      now.on_error == given.on_error && now.release == given.release;
    if (same) return;
    given = now;
    stream_->report(Rule::async_handler_ready_when_passed, path(),
                    "a callback was changed: expected the handler that was handed over");
  }

  /// With the stress option, reports a change of the producer's metadata.
  void check_producer_metadata() const noexcept {
    const std::string& kept = stream_->producer_metadata;
    if (kept.empty()) return;
    const char* const block = stream_->producer.load()->additional_metadata;
    if (block != nullptr && std::memcmp(block, kept.data(), kept.size()) == 0) return;
    stream_->report(Rule::async_producer_metadata_lives, {"producer.additional_metadata"},
                    "was changed before release: expected the same bytes");
  }

  /// Exposes the producer to the consumer, once.
  void show_producer(ArrowAsyncProducer* producer) noexcept;

  std::shared_ptr<AsyncStream> stream_;
  Call call_;
  std::int64_t index_ = 0;
  int result_ = 0;
  std::optional<Inside> inside_;
};

void check_producer(AsyncStream& stream, const ArrowAsyncProducer& producer) noexcept {
  if (producer.request == nullptr) {
    stream.report(Rule::async_request_set, {"producer.request"}, "is NULL: expected a callback");
  }
  if (producer.cancel == nullptr) {
    stream.report(Rule::async_cancel_set, {"producer.cancel"}, "is NULL: expected a callback");
  }
  const KeptBytes kept =
      check_metadata(stream, producer.additional_metadata, Rule::async_producer_metadata_encoding,
                     {"producer.additional_metadata"});
  if (!stream.log->has(FLETCHING_STRESS_POISON) || kept.copy().empty()) return;
  stream.producer_metadata = text_or_empty([&] { return kept.copy(); });
  const char* const lent =
      stream.log->texts.keep_to_the_end_or_null(kept.copy().c_str(), kept.copy().size() + 1);
  if (lent != nullptr) stream.controls->shown.additional_metadata = lent;
}

void HandlerCall::show_producer(ArrowAsyncProducer* producer) noexcept {
  if (stream_->producer != nullptr) return;  // only written here
  if (producer == nullptr) {
    stream_->inner->producer = nullptr;
    stream_->report(Rule::async_handler_producer_set_first, {"handler.producer"},
                    "is NULL: expected a producer before the first handler call");
    return;
  }
  stream_->inner->producer = &stream_->controls->shown;
  stream_->controls->shown.device_type = producer->device_type;
  stream_->controls->shown.additional_metadata = producer->additional_metadata;
  stream_->device_type = producer->device_type;
  stream_->producer = producer;
  check_producer(*stream_, *producer);
}

// --- on_schema ---

/// Release callback of the lent schema after on_schema has returned.
void release_late(ArrowSchema* self) noexcept {
  const auto stream = Records::get().find<AsyncStream>(self->private_data);
  if (stream == nullptr) return;
  stream->report(Rule::async_schema_pointer_not_kept, {"on_schema[0].schema"},
                 "used after on_schema had returned: expected a move during the call");
}

void keep_formats(AsyncStream& stream, const ArrowSchema& schema) noexcept {
  if (stream.log->level() < FLETCHING_VALIDATE_SHAPE) return;
  Result<Schema> copy = detail::copy_formats(schema);
  if (!copy) return;
  try {
    auto formats = std::make_shared<const Schema>(*std::move(copy));
    const std::scoped_lock lock(stream.mutex);
    if (stream.formats == nullptr) stream.formats = std::move(formats);
  } catch (...) {  // NOLINT(bugprone-empty-catch): if out of memory, batches are not compared
  }
}

/// Takes the schema back if the consumer has not moved it, and invalidates the pointer.
void end_loan(const HandlerCall& call, ArrowSchema* schema, int result) noexcept {
  ArrowSchema& lent = call->lent;
  if (lent.release != nullptr) {
    untrack(&lent);
    std::memcpy(schema, &lent, sizeof lent);
    if (result == 0) {
      call->report(Rule::async_schema_moved_or_released, call.path(".schema"),
                   "schema is still there: expected it moved or released");
    }
  }
  lent = {};
  lent.release = &release_late;
  lent.private_data = call->key();
}

int on_schema(Handler* self, ArrowSchema* schema) noexcept {
  HandlerCall call(self, Call::kSchema);
  if (!call) return EINVAL;
  // A producer that only reports an error may lack a device type.
  if (call->producer != nullptr && call->device_type == 0) {
    call->report(Rule::async_producer_device_type_set, {"producer.device_type"},
                 "device_type is not set: expected an ARROW_DEVICE_ value, got 0");
  }
  if (call->inner->on_schema == nullptr) return call.finish(ENOSYS);
  const bool is_live = schema != nullptr && schema->release != nullptr;
  if (!is_live) {
    call->report(Rule::schema_release_set, call.path(".schema"),
                 "schema is released: expected a live schema");
    return call.finish(call->inner->on_schema(call->inner, schema));
  }
  keep_formats(*call, *schema);
  check_members(*call->log, *schema, call.path(".schema"));
  call->lent = *schema;
  schema->release = nullptr;
  track(&call->lent, call->log, kSchemaLives, call.path(".schema"));
  const int result = call.finish(call->inner->on_schema(call->inner, &call->lent));
  check_code(*call, Rule::async_schema_returns_errno, result, call.path());
  end_loan(call, schema, result);
  return result;
}

// --- on_next_task ---

/// Wraps a task in a hook. Returns NULL if out of memory: the task is then not checked.
std::shared_ptr<Task> track_task(const HandlerCall& call, const ArrowAsyncTask& inner) noexcept {
  try {
    const auto task = std::make_shared<Task>();
    task->log = call->log;
    task->stream = call.stream();
    task->index = call.index();
    task->path = call.path(".task");
    task->live_rule = &kTaskLives;
    task->inner = inner;
    task->shown = {&extract_data, task->key()};
    task->self = &task->shown;
    Records::get().add(task);
    return task;
  } catch (...) {
    return nullptr;
  }
}

/// Ends the loan of a task.
void end_task(const HandlerCall& call, const std::shared_ptr<Task>& task,
              const ArrowAsyncTask* given, int result) noexcept {
  task->is_lent = false;
  if (result != 0) {
    task->is_refused = true;
    if (!task->released.exchange(true)) Records::get().retire(*task);
  }
  if (result != 0 || task->released) return;
  const bool same = given->extract_data == task->inner.extract_data &&
                    given->private_data == task->inner.private_data;
  // extract_data may free the producer's struct on another thread.
  if (same || task->released) return;
  call->report(Rule::async_next_task_lives_during_call, task->path,
               "was changed during on_next_task: expected the same members");
}

int call_on_next_task(HandlerCall& call, ArrowAsyncTask* task, const char* metadata) noexcept {
  if (call->inner->on_next_task == nullptr) return call.finish(ENOSYS);
  return call.finish(call->inner->on_next_task(call->inner, task, metadata));
}

int give_task(HandlerCall& call, ArrowAsyncTask* given, const char* metadata) noexcept {
  if (given == nullptr) return call_on_next_task(call, nullptr, metadata);
  if (given->extract_data == nullptr) {
    call->report(Rule::async_task_extract_set, call.path(".task.extract_data"),
                 "is NULL: expected a callback");
    return call_on_next_task(call, given, metadata);
  }
  const auto task = track_task(call, *given);
  if (task == nullptr) return call_on_next_task(call, given, metadata);
  const int result = call_on_next_task(call, &task->shown, metadata);
  end_task(call, task, given, result);
  return result;
}

int on_next_task(Handler* self, ArrowAsyncTask* task, const char* metadata) noexcept {
  HandlerCall call(self, task == nullptr ? Call::kEnd : Call::kTask);
  if (!call) return EINVAL;
  const KeptBytes kept = metadata == nullptr
                             ? KeptBytes()
                             : check_metadata(*call, metadata, Rule::async_next_metadata_encoding,
                                              call.path(".metadata"));
  const int result = give_task(call, task, kept.for_consumer(metadata));
  check_code(*call, Rule::async_next_returns_errno, result, call.path());
  if (kept.changed()) {
    call->report(Rule::async_next_task_lives_during_call, call.path(".metadata"),
                 "was changed during on_next_task: expected the same bytes");
  }
  return result;
}

// --- on_error and release ---

KeptBytes keep_text(Log& log, const char* text) noexcept {
  if (text == nullptr) return {};
  const void* const end = std::memchr(text, '\0', kMostText);
  if (end == nullptr) return {};
  return {log, text, static_cast<std::size_t>(static_cast<const char*>(end) - text)};
}

void on_error(Handler* self, int code, const char* message, const char* metadata) noexcept {
  HandlerCall call(self, Call::kError);
  if (!call) return;
  if (code == 0 || !is_errno(code)) {
    call->report(Rule::async_error_errno_codes, call.path(),
                 text_or_empty([&] {
                   return "code is not an errno value: expected 1 to " +
                          std::to_string(kMostErrno) + ", got " + std::to_string(code);
                 }).c_str());
  }
  const KeptBytes text = keep_text(*call->log, message);
  const KeptBytes block =
      check_metadata(*call, metadata, Rule::async_error_metadata_encoding, call.path(".metadata"));
  if (call->inner->on_error != nullptr) {
    call->inner->on_error(call->inner, code, text.for_consumer(message),
                          block.for_consumer(metadata));
  }
  call.finish(0);
  if (text.changed() || block.changed()) {
    call->report(Rule::async_error_texts_live_during_call, call.path(),
                 "message or metadata was changed during on_error: expected the same bytes");
  }
}

void release(Handler* self) noexcept {
  const HandlerCall call(self, Call::kRelease);
  if (call) call_release(*call);
}

// --- The C function ---

void check_callbacks(AsyncStream& stream) noexcept {
  const auto check = [&](bool is_set, Rule rule, const char* path) {
    if (!is_set) stream.report(rule, {path}, "is NULL: expected a callback");
  };
  check(stream.given.on_schema != nullptr, Rule::async_schema_set, "handler.on_schema");
  check(stream.given.on_next_task != nullptr, Rule::async_next_set, "handler.on_next_task");
  check(stream.given.on_error != nullptr, Rule::async_error_set, "handler.on_error");
  check(stream.given.release != nullptr, Rule::async_release_set, "handler.release");
}

std::shared_ptr<Controls> make_controls(const std::shared_ptr<AsyncStream>& stream) {
  const auto controls = std::make_shared<Controls>();
  controls->log = stream->log;
  controls->path = {"producer"};
  controls->stream = stream;
  controls->shown = {0, &request, &cancel, nullptr, controls->key()};
  controls->self = &controls->shown;
  stream->controls = controls.get();
  return controls;
}

std::shared_ptr<AsyncStream> make_stream(Handler* inner, const std::shared_ptr<Log>& log) {
  const auto stream = std::make_shared<AsyncStream>();
  stream->log = log;
  stream->path = {"handler"};
  stream->live_rule = &kHandlerLives;
  stream->inner = inner;
  stream->given = *inner;
  stream->outer = {&on_schema, &on_next_task, &on_error, &release, nullptr, stream->key()};
  stream->self = &stream->outer;
  return stream;
}

/// Adds both or neither.
void add(const std::shared_ptr<Controls>& controls, const std::shared_ptr<AsyncStream>& stream) {
  Records::get().add(stream);
  try {
    Records::get().add(controls);
  } catch (...) {
    Records::get().remove(*stream);
    throw;
  }
}

int wrap(Handler** handler, const FletchingValidateOptions* options,
         FletchingMessage* message) noexcept {
  if (handler == nullptr || *handler == nullptr) {
    return failed(message, EINVAL, "handler: expected a handler, got NULL");
  }
  return with_log(options, message, "no memory to validate the handler", [&](const auto& log) {
    const auto stream = make_stream(*handler, log);
    const auto controls = make_controls(stream);
    add(controls, stream);
    check_callbacks(*stream);
    stream->inner->producer = &controls->shown;
    *handler = &stream->outer;
  });
}

}  // namespace
}  // namespace fletching::validate

extern "C" int FletchingValidateAsyncHandler(ArrowAsyncDeviceStreamHandler** handler,
                                             const FletchingValidateOptions* options,
                                             FletchingMessage* message) {
  return fletching::validate::wrap(handler, options, message);
}
