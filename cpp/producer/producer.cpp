// The C functions of producer.h: they check the arguments, and nothing leaves them but an errno and
// a text.
#include "producer.h"

#include "arguments.hpp"
#include "export.hpp"
#include "registry.hpp"
#include "verify.hpp"

namespace fletching::producer {
namespace {

// `fallback` where even that fails for want of memory.
template <class Work, class Result>
Result OrElse(Result fallback, Work work) noexcept {
  Guarded(nullptr, [&] { fallback = work(); });
  return fallback;
}

template <class Item>
const char* NameAt(const std::vector<Item>& items, int32_t index) {
  if (index < 0 || static_cast<size_t>(index) >= items.size()) return nullptr;
  return NameOf(items[static_cast<size_t>(index)]);
}

}  // namespace
}  // namespace fletching::producer

using namespace fletching::producer;

int32_t FletchingProducerBackendCount(void) {
  return OrElse(int32_t{0}, [] { return static_cast<int32_t>(Backends().size()); });
}

const char* FletchingProducerBackendName(int32_t index) {
  return OrElse(static_cast<const char*>(nullptr), [&] { return NameAt(Backends(), index); });
}

int32_t FletchingProducerCaseCount(void) {
  return OrElse(int32_t{0}, [] { return static_cast<int32_t>(Catalogue().size()); });
}

const char* FletchingProducerCaseName(int32_t index) {
  return OrElse(static_cast<const char*>(nullptr), [&] { return NameAt(Catalogue(), index); });
}

const char* FletchingProducerDescribe(const char* case_name) {
  return OrElse(static_cast<const char*>(nullptr),
                [&] { return CaseByName(case_name).text.c_str(); });
}

int FletchingProducerExportArray(const char* backend, const char* case_name,
                                 struct ArrowSchema* schema, struct ArrowDeviceArray* array,
                                 struct FletchingMessage* message) {
  Zero(schema);
  Zero(array);
  return Guarded(message, [&] {
    RequirePointer("schema", schema);
    RequirePointer("array", array);
    Export(Filler::Ungated(BackendByName(backend)), CaseByName(case_name), schema, array);
  });
}

int FletchingProducerExportStream(const char* backend, const char* case_name, int64_t batches,
                                  int64_t fail_at, struct ArrowDeviceArrayStream* stream,
                                  struct FletchingMessage* message) {
  Zero(stream);
  return Guarded(message, [&] {
    RequirePointer("stream", stream);
    CheckBatches(batches, fail_at);
    ExportStream(Filler::Ungated(BackendByName(backend)), CaseByName(case_name), batches, fail_at,
                 stream);
  });
}

int FletchingProducerVerifyArray(const char* backend, const char* case_name,
                                 const struct ArrowSchema* schema,
                                 const struct ArrowDeviceArray* array,
                                 struct FletchingMessage* message) {
  return Guarded(message, [&] {
    RequirePointer("schema", schema);
    RequirePointer("array", array);
    VerifyArray(BackendByName(backend), CaseByName(case_name), *schema, *array);
  });
}

int FletchingProducerVerifyStream(const char* backend, const char* case_name, int64_t batches,
                                  int64_t fail_at, struct ArrowDeviceArrayStream* stream,
                                  struct FletchingMessage* message) {
  const int code = Guarded(message, [&] {
    RequirePointer("stream", stream);
    CheckBatches(batches, fail_at);
    VerifyStream(BackendByName(backend), CaseByName(case_name), batches, fail_at, stream);
  });
  // Only where the arguments were refused: VerifyStream itself moves the stream away.
  if (stream != nullptr && stream->release != nullptr) stream->release(stream);
  return code;
}

void FletchingProducerReadCounters(struct FletchingProducerCounters* counters) {
  if (counters != nullptr) *counters = ReadCounters();
}

void FletchingProducerResetCounters(void) { ResetCounters(); }
