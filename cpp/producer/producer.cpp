// Implements producer.h: checks arguments and converts exceptions to errno values and messages.
#include "producer.h"

#include "arguments.hpp"
#include "export.hpp"
#include "registry.hpp"
#include "verify.hpp"

namespace fletching::producer {
namespace {

// Returns `fallback` if `work` throws, for example without memory.
template <class Work, class Result>
Result or_else(Result fallback, Work work) noexcept {
  guarded(nullptr, [&] { fallback = work(); });
  return fallback;
}

template <class Item>
const char* name_at(const std::vector<Item>& items, int32_t index) {
  if (index < 0 || static_cast<size_t>(index) >= items.size()) return nullptr;
  return name_of(items[static_cast<size_t>(index)]);
}

}  // namespace
}  // namespace fletching::producer

using namespace fletching::producer;

int32_t FletchingProducerBackendCount(void) {
  return or_else(int32_t{0}, [] { return static_cast<int32_t>(backends().size()); });
}

const char* FletchingProducerBackendName(int32_t index) {
  return or_else(static_cast<const char*>(nullptr), [&] { return name_at(backends(), index); });
}

int32_t FletchingProducerCaseCount(void) {
  return or_else(int32_t{0}, [] { return static_cast<int32_t>(catalogue().size()); });
}

const char* FletchingProducerCaseName(int32_t index) {
  return or_else(static_cast<const char*>(nullptr), [&] { return name_at(catalogue(), index); });
}

int FletchingProducerExportArray(const char* backend, const char* case_name,
                                 struct ArrowSchema* schema, struct ArrowDeviceArray* array,
                                 struct FletchingMessage* message) {
  zero(schema);
  zero(array);
  return guarded(message, [&] {
    require_pointer("schema", schema);
    require_pointer("array", array);
    export_case(Filler::ungated(backend_by_name(backend)), case_by_name(case_name), schema, array);
  });
}

int FletchingProducerExportStream(const char* backend, const char* case_name, int64_t batches,
                                  int64_t fail_at, struct ArrowDeviceArrayStream* stream,
                                  struct FletchingMessage* message) {
  zero(stream);
  return guarded(message, [&] {
    require_pointer("stream", stream);
    check_batches(batches, fail_at);
    export_stream(Filler::ungated(backend_by_name(backend)), case_by_name(case_name), batches,
                  fail_at, stream);
  });
}

int FletchingProducerVerifyArray(const char* backend, const char* case_name,
                                 const struct ArrowSchema* schema,
                                 const struct ArrowDeviceArray* array,
                                 struct FletchingMessage* message) {
  return guarded(message, [&] {
    require_pointer("schema", schema);
    require_pointer("array", array);
    verify_array(backend_by_name(backend), case_by_name(case_name), *schema, *array);
  });
}

int FletchingProducerVerifyStream(const char* backend, const char* case_name, int64_t batches,
                                  int64_t fail_at, struct ArrowDeviceArrayStream* stream,
                                  struct FletchingMessage* message) {
  const int code = guarded(message, [&] {
    require_pointer("stream", stream);
    check_batches(batches, fail_at);
    verify_stream(backend_by_name(backend), case_by_name(case_name), batches, fail_at, stream);
  });
  // Only if the arguments were rejected: verify_stream itself moves the stream out.
  if (stream != nullptr && stream->release != nullptr) stream->release(stream);
  return code;
}

void FletchingProducerReadCounters(struct FletchingProducerCounters* counters) {
  if (counters != nullptr) *counters = read_counters();
}

void FletchingProducerResetCounters(void) { reset_counters(); }
