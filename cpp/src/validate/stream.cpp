// SPDX-License-Identifier: Apache-2.0
//
// Checker of both kinds of streams.
#include <cerrno>
#include <cstring>
#include <optional>

#include "fletching/check_array.hpp"
#include "fletching/detail/ownership/schema_copy.hpp"
#include "fletching/owner.hpp"
#include "hooks.hpp"
#include "members.hpp"
#include "places.hpp"
#include "record.hpp"

namespace fletching::validate {
namespace {

// --- Streams ---

template <class Raw>
struct Traits;
template <>
struct Traits<ArrowArrayStream> {
  using Batch = ArrowArray;
  static constexpr const StreamRules& kRules = kStreamRules;
};
template <>
struct Traits<ArrowDeviceArrayStream> {
  using Batch = ArrowDeviceArray;
  static constexpr const StreamRules& kRules = kDeviceStreamRules;
};

/// A wrapped stream. Only the call that has set `inside` accesses the other members.
template <class Raw>
struct Stream : Record {
  /// Returns the producer's struct for the next call.
  Raw* for_call() noexcept {
    if (!log->has(FLETCHING_STRESS_MOVE)) return &inner.get();
    if (!inner.move()) {
      report(Rule::move_no_stored_address, path, kStoredAddress);
    }
    return &inner.get();
  }

  /// Ends the lifetime of the last error message.
  void end_text() noexcept {
    if (text == nullptr) return;
    if (std::memcmp(text, text_copy, text_size) != 0) {
      report(Traits<Raw>::kRules.error_text_lifetime, {"get_last_error", texts - 1},
             "text was changed before the next call: expected the same bytes");
    }
    log->texts.end(text_copy);
    text = nullptr;
  }

  MovingStruct<Raw> inner;
  Filled<ArrowSchema> schema;
  Filled<typename Traits<Raw>::Batch> batch;
  const char* text = nullptr;  // the producer's last error message, with the stress option
  const char* text_copy = nullptr;
  std::size_t text_size = 0;
  std::atomic<bool> inside = false;
  bool failed = false;  // whether the last get_schema or get_next failed
  bool ended = false;
  std::int64_t schemas = 0;
  std::int64_t batches = 0;
  std::int64_t texts = 0;
  std::optional<Schema> formats;  // the first schema, at level SHAPE
};

/// One call on a stream. Rejects calls on a released stream and overlapping calls.
template <class Raw>
class Call {
 public:
  Call(Raw* self, const char* name, Rule after_release) noexcept
      : stream_(record_of<Stream<Raw>>(self, rules().private_data_untouched)) {
    if (stream_ == nullptr) return;
    if (stream_->inside.exchange(true)) {
      stream_->report(rules().calls_serialized, {name},
                      "two calls at once: expected one call at a time");
      stream_ = nullptr;
    } else if (stream_->released) {
      refuse(after_release, {name}, "called on a released stream: expected no call after release");
    }
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() {
    if (stream_ != nullptr) stream_->inside = false;
  }

  static constexpr const StreamRules& rules() noexcept { return Traits<Raw>::kRules; }
  explicit operator bool() const noexcept { return stream_ != nullptr; }
  Stream<Raw>* operator->() const noexcept { return stream_.get(); }
  Stream<Raw>& operator*() const noexcept { return *stream_; }

  /// Calls the producer's get_schema or get_next.
  template <class Out, class Callback>
  int fill(const char* name, std::int64_t index, Filled<Out>& filled, Out* out,
           Callback Raw::* callback) const noexcept {
    stream_->end_text();
    const int code = filled.fill(*stream_, {name, index}, out, [&](Out* place) -> int {
      Raw* const inner = stream_->for_call();
      if (inner->*callback == nullptr) return ENOSYS;
      return (inner->*callback)(inner, place);
    });
    stream_->log->release_delayed();
    return code;
  }

 private:
  void refuse(Rule rule, const Path& path, const char* message) noexcept {
    stream_->report(rule, path, message, "consumer");
    stream_->inside = false;
    stream_ = nullptr;
  }

  std::shared_ptr<Stream<Raw>> stream_;
};

/// Records the result of get_schema or get_next.
template <class Raw>
void check_code(const Call<Raw>& call, const char* name, std::int64_t index, int code) noexcept {
  call->failed = code != 0;
  call->log->note(name, index, code);
  if (is_errno(code)) return;
  call->report(call.rules().errno_codes, {name, index},
               text_or_empty([&] { return errno_message(code); }).c_str());
}

/// Keeps the formats of the first schema and compares later schemas with them.
template <class Raw>
void check_schema_constant(const Call<Raw>& call, const ArrowSchema& schema,
                           const Path& path) noexcept {
  if (call->log->level() < FLETCHING_VALIDATE_SHAPE) return;
  if (!call->formats) {
    if (Result<Schema> copy = detail::copy_formats(schema)) call->formats = *std::move(copy);
    return;
  }
  const Status same = verify_same_types(**call->formats, schema);
  if (same || same.error().code() != EINVAL) return;
  call->report(call.rules().schema_constant, path,
               text_or_empty([&] { return std::string(same.error().message()); }).c_str());
}

template <class Raw>
int get_schema(Raw* self, ArrowSchema* out) noexcept {
  const Call<Raw> call(self, "get_schema", Call<Raw>::rules().get_schema_after_release);
  if (!call) return EINVAL;
  const std::int64_t index = call->schemas++;
  const int code = call.fill("get_schema", index, call->schema, out, &Raw::get_schema);
  check_code(call, "get_schema", index, code);
  if (code != 0 || out == nullptr) return code;
  const Path path{"get_schema", index, ".schema"};
  if (out->release == nullptr) {
    call->report(Rule::schema_release_set, path, "schema is released: expected a live schema");
    return code;
  }
  check_schema_constant(call, *out, path);
  check_members(*call->log, *out, path);
  track(out, call->log, call.rules().released_independently, path);
  return code;
}

void check_device(const Call<ArrowArrayStream>& /*call*/, const ArrowArray& /*batch*/,
                  const Path& /*path*/) noexcept {}
void check_device(const Call<ArrowDeviceArrayStream>& call, const ArrowDeviceArray& batch,
                  const Path& path) noexcept {
  check_members(*call->log, batch, path);
  const ArrowDeviceType expected = call->inner.get().device_type;
  if (batch.device_type == expected) return;
  const auto message = text_or_empty([&] {
    return "device_type differs from the stream's: expected " + std::to_string(expected) +
           ", got " + std::to_string(batch.device_type);
  });
  call->report(Rule::device_stream_one_device_type, path, message.c_str());
}

/// Reports a batch that comes after the end, is on a different device type, or does not match the
/// schema.
template <class Raw, class Batch>
void check_batch(const Call<Raw>& call, const Batch& batch, const Path& path) noexcept {
  if (call->ended) {
    call->report(call.rules().end_is_released_array, path,
                 "a batch came after the end: expected a released array");
  }
  check_device(call, batch, path);
  if (!call->formats) return;
  // The comparison is skipped if out of memory.
  (void)report_array(**call->formats, batch, {path.call, path.index, "."}, *call->log);
}

template <class Raw, class Batch>
int get_next(Raw* self, Batch* out) noexcept {
  const Call<Raw> call(self, "get_next", Call<Raw>::rules().get_next_after_release);
  if (!call) return EINVAL;
  const std::int64_t index = call->batches++;
  const int code = call.fill("get_next", index, call->batch, out, &Raw::get_next);
  check_code(call, "get_next", index, code);
  if (code != 0 || out == nullptr) return code;
  ArrowArray& base = detail::base(*out);
  if (base.release == nullptr) {
    call->ended = true;
    return code;
  }
  const Path path{"get_next", index, ".array"};
  check_batch(call, *out, path);
  track(&base, call->log, call.rules().released_independently, path);
  return code;
}

/// Returns the consumer's text: a copy with the stress option, unless out of memory.
template <class Raw>
const char* lend_text(Stream<Raw>& stream, const char* text, const char* end) noexcept {
  if (!stream.log->has(FLETCHING_STRESS_POISON)) return text;
  const auto size = static_cast<std::size_t>(end - text) + 1;
  // A second call does not invalidate the message from the first.
  const bool is_same = stream.text == text && stream.text_size == size &&
                       std::memcmp(stream.text_copy, text, size) == 0;
  if (is_same) return stream.text_copy;
  stream.text_size = size;
  stream.text_copy = stream.log->texts.keep_or_null(text, stream.text_size);
  stream.text = nullptr;
  if (stream.text_copy == nullptr) return text;
  stream.text = text;
  return stream.text_copy;
}

template <class Raw>
const char* get_last_error(Raw* self) noexcept {
  const Call<Raw> call(self, "get_last_error", Call<Raw>::rules().get_last_error_after_release);
  if (!call) return nullptr;
  const std::int64_t index = call->texts++;
  const Path path{"get_last_error", index};
  if (!call->failed) {
    call->report(call.rules().get_last_error_only_after_error, path,
                 "the last call returned 0: expected a call after an error only");
  }
  Raw* const inner = call->for_call();
  const char* const text =
      inner->get_last_error == nullptr ? nullptr : inner->get_last_error(inner);
  call->log->note("get_last_error", index, 0);
  if (text == nullptr) return nullptr;
  const void* const end = std::memchr(text, '\0', kMostText);
  if (end != nullptr &&
      !is_utf8({text, static_cast<std::size_t>(static_cast<const char*>(end) - text)})) {
    call->report(call.rules().error_text, path, "text is not UTF-8: expected UTF-8 or NULL");
  }
  return end == nullptr ? text : lend_text(*call, text, static_cast<const char*>(end));
}

template <class Raw>
void release(Raw* self) noexcept {
  const Call<Raw> call(self, "release", Call<Raw>::rules().release_like_array);
  self->release = nullptr;
  if (!call) return;  // leaks beside another call, which still uses the stream
  call->released = true;
  call->end_text();
  call->schema.check(*call, {"release"});
  call->batch.check(*call, {"release"});
  Raw moved = *call->for_call();
  const auto run = [&] { moved.release(&moved); };
  if (call->log->has(FLETCHING_STRESS_THREAD)) {
    run_elsewhere(run);
  } else {
    run();
  }
  call->log->note("release", 0, 0);
  call->log->end();
  if (moved.release != nullptr) {
    call->report(call.rules().release_like_array, {"release"},
                 "release is not NULL after the callback: expected NULL", "producer");
  }
  Records::get().retire(*call.operator->());
}

// --- The C functions ---

void check_device_type(const Stream<ArrowArrayStream>& /*stream*/) noexcept {}
void check_device_type(Stream<ArrowDeviceArrayStream>& stream) noexcept {
  if (stream.inner.get().device_type != 0) return;
  stream.report(Rule::device_stream_device_type_set, {"stream.device_type"},
                "device_type is not set: expected an ARROW_DEVICE_ value, got 0");
}

template <class Raw>
void check_callbacks(Stream<Raw>& stream) noexcept {
  const auto check = [&](bool is_set, const char* path) {
    if (is_set) return;
    stream.report(Traits<Raw>::kRules.callbacks_set, {path}, "is NULL: expected a callback");
  };
  const Raw& inner = stream.inner.get();
  check(inner.get_schema != nullptr, "stream.get_schema");
  check(inner.get_next != nullptr, "stream.get_next");
  check(inner.get_last_error != nullptr, "stream.get_last_error");
}

template <class Raw>
int wrap(Raw* raw, const FletchingValidateOptions* options, FletchingMessage* message) noexcept {
  if (raw == nullptr || raw->release == nullptr) {
    return failed(message, EINVAL, "stream: expected a live stream");
  }
  return with_log(options, message, "no memory to validate the stream", [&](const auto& log) {
    const auto stream = std::make_shared<Stream<Raw>>();
    stream->log = log;
    stream->path = {"stream.private_data"};
    stream->self = raw;
    stream->inner.get() = *raw;
    Records::get().add(stream);
    check_callbacks(*stream);
    check_device_type(*stream);
    raw->get_schema = &get_schema<Raw>;
    raw->get_next = &get_next<Raw, typename Traits<Raw>::Batch>;
    raw->get_last_error = &get_last_error<Raw>;
    raw->release = &release<Raw>;
    raw->private_data = stream->key();
  });
}

template <class Raw>
int check(const ArrowSchema* schema, const Raw* array, const FletchingValidateOptions* options,
          std::int64_t* findings, FletchingMessage* message) noexcept {
  if (findings != nullptr) *findings = 0;
  if (schema == nullptr || array == nullptr) {
    return failed(message, EINVAL, "expected a schema and an array, got NULL");
  }
  if (const char* problem = check_options(options)) return failed(message, EINVAL, problem);
  Log log(options_or_default(options));
  const Result<ArrayReport> found = report_array(*schema, *array, {}, log);
  if (!found) return failed(message, found.error().code(), found.error().message());
  if (findings != nullptr) *findings = found->findings;
  return failed(message, 0, "");
}

}  // namespace
}  // namespace fletching::validate

extern "C" {

int FletchingValidateStream(ArrowArrayStream* stream, const FletchingValidateOptions* options,
                            FletchingMessage* message) {
  return fletching::validate::wrap(stream, options, message);
}

int FletchingValidateDeviceStream(ArrowDeviceArrayStream* stream,
                                  const FletchingValidateOptions* options,
                                  FletchingMessage* message) {
  return fletching::validate::wrap(stream, options, message);
}

int FletchingCheckArray(const ArrowSchema* schema, const ArrowArray* array,
                        const FletchingValidateOptions* options, int64_t* findings,
                        FletchingMessage* message) {
  return fletching::validate::check(schema, array, options, findings, message);
}

int FletchingCheckDeviceArray(const ArrowSchema* schema, const ArrowDeviceArray* array,
                              const FletchingValidateOptions* options, int64_t* findings,
                              FletchingMessage* message) {
  return fletching::validate::check(schema, array, options, findings, message);
}

int64_t FletchingValidateLive(void) {  // NOLINT(modernize-redundant-void-arg): as in the header
  return fletching::validate::report_live([](const auto& /*record*/) { return true; });
}
}
