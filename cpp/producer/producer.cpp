// The C functions of producer.h: they check the arguments, and nothing leaves them but an errno and
// a text.
#include "producer.h"

#include <cstring>

#include "backend.hpp"
#include "catalogue.hpp"
#include "export.hpp"
#include "message.hpp"
#include "registry.hpp"
#include "verify.hpp"

namespace fletching::producer {
namespace {

const char* NameOf(const Backend* backend) { return backend->Name(); }
const char* NameOf(const Case& what) { return what.name.c_str(); }

// `kind`: "backend", "case".
template <class Item>
const Item& ByName(const char* kind, const char* name, const std::vector<Item>& items) {
  if (name == nullptr) Fail(EINVAL, std::string(kind) + " is NULL");
  std::string known;
  for (const Item& item : items) {
    if (std::strcmp(NameOf(item), name) == 0) return item;
    known += std::string(known.empty() ? "" : ", ") + NameOf(item);
  }
  Fail(EINVAL, "unknown " + std::string(kind) + " '" + ForeignText(name) + "'; known: " + known);
}

Backend& BackendByName(const char* name) { return *ByName("backend", name, Backends()); }
const Case& CaseByName(const char* name) { return ByName("case", name, Catalogue()); }

void RequirePointer(const char* name, const void* pointer) {
  if (pointer == nullptr) Fail(EINVAL, std::string(name) + " is NULL");
}

void CheckBatches(int64_t batches, int64_t fail_at) {
  if (batches < 0)
    Fail(EINVAL, "batches is " + std::to_string(batches) + ", and may not be negative");
  if (fail_at >= -1 && fail_at <= batches) return;
  Fail(EINVAL, "fail_at is " + std::to_string(fail_at) + ", and has to be from -1 to batches (" +
                   std::to_string(batches) + ")");
}

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
  const int code = Guarded(message, [&] {
    RequirePointer("schema", schema);
    RequirePointer("array", array);
    Backend& device = BackendByName(backend);
    const Case& what = CaseByName(case_name);
    ExportSchema(what.node, schema);
    ExportArray(device, what.node, array);
  });
  if (code != 0 && schema != nullptr && schema->release != nullptr) {
    schema->release(schema);
    Zero(schema);
  }
  return code;
}

int FletchingProducerExportStream(const char* backend, const char* case_name, int64_t batches,
                                  int64_t fail_at, struct ArrowDeviceArrayStream* stream,
                                  struct FletchingMessage* message) {
  Zero(stream);
  return Guarded(message, [&] {
    RequirePointer("stream", stream);
    CheckBatches(batches, fail_at);
    ExportStream(BackendByName(backend), CaseByName(case_name), batches, fail_at, stream);
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
