// SPDX-License-Identifier: Apache-2.0
//
// Checker of async streams: the consumer's calls on the producer and its tasks.
#include <cerrno>

#include "async_stream.hpp"
#include "hooks.hpp"

namespace fletching::validate {
namespace {

constexpr Rule kCancelledHandlerLives = Rule::async_cancel_stops;
constexpr Rule kArrayLives = Rule::async_task_array_released_separately;

/// Returns NULL if the producer has not set one.
ArrowAsyncProducer* producer_of(const AsyncStream& stream) noexcept {
  ArrowAsyncProducer* const shown = stream.producer;
  return shown != nullptr ? shown : stream.outer.producer;  // before the first handler call
}

void call_request(AsyncStream& stream, std::int64_t n) noexcept {
  const Inside inside(&stream, Call::kRequest);
  ArrowAsyncProducer* const producer = producer_of(stream);
  if (producer != nullptr && producer->request != nullptr) producer->request(producer, n);
}

void call_cancel(AsyncStream& stream, Call call) noexcept {
  {
    const Inside inside(&stream, call);
    ArrowAsyncProducer* const producer = producer_of(stream);
    if (producer != nullptr && producer->cancel != nullptr) producer->cancel(producer);
  }
  stream.live_rule = &kCancelledHandlerLives;
  stream.with_protocol([](AsyncProtocol& protocol) { protocol.end_cancel(); });
}

/// Compares a batch with the schema, unless out of memory.
void check_shape(AsyncStream& stream, const ArrowDeviceArray& array, const Path& path) noexcept {
  std::unique_lock lock(stream.mutex);
  const auto formats = stream.formats;
  lock.unlock();
  if (formats == nullptr) return;
  const Result<ArrayReport> found =
      report_array(**formats, array, {path.call, path.index, "."}, *stream.log);
  if (!found || !found->is_other_type) return;
  stream.report(Rule::async_next_same_schema, path,
                "array is of another type: expected the type of the schema of on_schema");
}

/// Checks an array returned by extract_data.
void check_array(const Task& task, ArrowDeviceArray* out) noexcept {
  AsyncStream& stream = *task.stream;
  const Path path = path_of(Call::kTask, task.index, ".array");
  if (out->array.release == nullptr) {
    return stream.report(Rule::async_next_null_task_is_end, path,
                         "array is released: expected a live array, and NULL for the last task");
  }
  if (out->device_type != stream.device_type) {
    const auto message = text_or_empty([&] {
      return "device_type differs from the producer's: expected " +
             std::to_string(stream.device_type) + ", got " + std::to_string(out->device_type);
    });
    stream.report(Rule::async_producer_one_device_type, path, message.c_str());
  }
  check_members(*stream.log, *out, path);
  check_shape(stream, *out, path);
  track(&out->array, stream.log, kArrayLives, path);
}

void check_extraction(const Task& task, ArrowDeviceArray* out, int code) noexcept {
  const Path path = path_of(Call::kTask, task.index, ".extract_data");
  check_code(*task.stream, Rule::async_task_returns_errno, code, path);
  if (out == nullptr && code != 0) {
    task.stream->report(Rule::async_task_null_accepted, path,
                        "NULL for the array failed: expected 0");
  }
  if (out != nullptr && code == 0) check_array(task, out);
}

}  // namespace

void request(ArrowAsyncProducer* self, std::int64_t n) noexcept {
  const auto controls = record_of<Controls>(self, Rule::async_producer_private_data_untouched);
  if (controls == nullptr) return;
  AsyncStream& stream = *controls->stream;
  const std::int64_t index = next_index(stream, Call::kRequest);
  const Verdict verdict = stream.with_protocol(
      [&](AsyncProtocol& protocol) { return protocol.begin_request(Inside::of(&stream), n); });
  report(stream, verdict, Call::kRequest, index);
  if (verdict.forward) call_request(stream, n);
  stream.log->note("request", index, 0);
}

void cancel(ArrowAsyncProducer* self) noexcept {
  const auto controls = record_of<Controls>(self, Rule::async_producer_private_data_untouched);
  if (controls == nullptr) return;
  AsyncStream& stream = *controls->stream;
  const std::int64_t index = next_index(stream, Call::kCancel);
  Call call = Call::kCancel;
  const Verdict verdict = stream.with_protocol(
      [&](AsyncProtocol& protocol) { return protocol.begin_cancel(Inside::of(&stream), &call); });
  report(stream, verdict, call, index);
  if (verdict.forward) call_cancel(stream, call);
  stream.log->note("cancel", index, 0);
}

int extract_data(ArrowAsyncTask* self, ArrowDeviceArray* out) noexcept {
  const auto task = record_of<Task>(self, Rule::async_task_private_data_untouched);
  if (task == nullptr) return EINVAL;
  if (self == &task->shown && !task->is_lent) {
    task->report(Rule::async_next_task_copied, task->path,
                 "used after on_next_task had returned: expected a copy of the task");
  }
  if (task->released.exchange(true)) {
    task->report(Rule::async_task_extracted_once, task->path,
                 task->is_refused ? "was refused: expected no extraction"
                                  : "was extracted already: expected one extraction");
    return EINVAL;
  }
  AsyncStream& stream = *task->stream;
  stream.with_protocol([](AsyncProtocol& protocol) { protocol.begin_extract(); });
  int code = 0;
  {
    const Inside inside(&stream, Call::kExtract);
    ArrowAsyncTask inner = task->inner;
    code = task->array.fill(*task, task->path, out, [&](ArrowDeviceArray* filled) {
      return inner.extract_data(&inner, filled);
    });
  }
  stream.with_protocol([=](AsyncProtocol& protocol) { protocol.end_extract(code); });
  stream.log->note("extract_data", task->index, code);
  check_extraction(*task, out, code);
  stream.log->release_delayed();
  Records::get().retire(*task);
  return code;
}

}  // namespace fletching::validate
