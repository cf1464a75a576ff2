// fletching_roundtrip_cpp: every case of the reference producer through C++ and back
// (tests/roundtrip/README.md).
#include <cstdio>
#include <exception>
#include <string>

#include "asserter.hpp"
#include "cells.hpp"
#include "owned.hpp"
#include "producer.h"
#include "reexport.hpp"
#include "text.hpp"

namespace fletching::roundtrip {
namespace {

constexpr const char* kBackend = "cpu";
constexpr std::int64_t kBatches = 3;
constexpr std::int64_t kFailAt = 2;
constexpr std::int64_t kNever = -1;

void run_array(const char* name, Asserter& asserter) {
  FletchingMessage message{};
  Owned<ArrowSchema> schema;
  Owned<ArrowDeviceArray> array;
  int code = FletchingProducerExportArray(kBackend, name, &schema.value, &array.value, &message);
  asserter.require_success("export", code, message);
  require_dump(asserter, schema.value, array.value);

  Owned<ArrowSchema> our_schema;
  Owned<ArrowDeviceArray> our_array;
  reexport(schema.value, array.value, our_schema.value, our_array.value);
  asserter.require(is_released(schema.value), "the source of the schema was not moved");
  asserter.require(is_released(array.value), "the source of the array was not moved");

  code =
      FletchingProducerVerifyArray(kBackend, name, &our_schema.value, &our_array.value, &message);
  asserter.require_success("verification", code, message);
}

void run_stream(const char* name, std::int64_t fail_at, Asserter& asserter) {
  FletchingMessage message{};
  Owned<ArrowDeviceArrayStream> stream;
  int code =
      FletchingProducerExportStream(kBackend, name, kBatches, fail_at, &stream.value, &message);
  asserter.require_success("export", code, message);

  std::int64_t batches = 0;
  const auto observe = [&](const ArrowSchema& schema, const ArrowDeviceArray& batch) {
    ++batches;
    require_dump(asserter, schema, batch);
  };
  Owned<ArrowDeviceArrayStream> our_stream;
  reexport(stream.value, observe, our_stream.value);
  asserter.require(is_released(stream.value), "the source of the stream was not moved");

  code =
      FletchingProducerVerifyStream(kBackend, name, kBatches, fail_at, &our_stream.value, &message);
  asserter.require_success("verification", code, message);
  asserter.require_equal("the number of batches", batches, fail_at == kNever ? kBatches : fail_at);
}

/// Everything has been released, ours and the producer's, once.
void require_at_rest(Asserter& asserter, std::int64_t exported, std::int64_t released) {
  asserter.require(exported > 0, "C++ exported nothing");
  asserter.require_equal("the number of releases in C++", released, exported);
  require_producer_at_rest(asserter);
}

template <typename Run>
bool run_cell(const char* name, const char* direction, const Run& run) {
  const std::int64_t exported = exported_count();
  const std::int64_t released = released_count();
  FletchingProducerResetCounters();
  Asserter asserter;
  Cell cell;
  const int code = guarded(cell.reason, [&] {
    run(asserter);
    require_at_rest(asserter, exported_count() - exported, released_count() - released);
  });
  cell.backend = kBackend;
  cell.subject_kind = "case";
  cell.subject = name;
  cell.direction = direction;
  cell.asserted = asserter.count();
  cell.releases = released_count() - released;
  cell.ok = code == 0;
  const std::string trouble = append_cell(cell);
  if (!cell.ok) std::fprintf(stderr, "%s %s: %s\n", name, direction, cell.reason.c_str());
  if (!trouble.empty()) std::fprintf(stderr, "%s %s: %s\n", name, direction, trouble.c_str());
  return cell.ok && trouble.empty();
}

bool run_case(const char* name) {
  std::printf("%s\n", name);
  bool ok = run_cell(name, "array", [&](Asserter& asserter) { run_array(name, asserter); });
  ok &= run_cell(name, "stream", [&](Asserter& asserter) { run_stream(name, kNever, asserter); });
  ok &= run_cell(name, "stream_failure",
                 [&](Asserter& asserter) { run_stream(name, kFailAt, asserter); });
  return ok;
}

int run_all() {
  const int cases = FletchingProducerCaseCount();
  int failed = cases == 0 ? 1 : 0;
  for (int i = 0; i < cases; ++i) failed += run_case(FletchingProducerCaseName(i)) ? 0 : 1;
  std::printf("%d of %d cases passed through C++ and back\n", cases - failed, cases);
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace fletching::roundtrip

int main() {
  try {
    return fletching::roundtrip::run_all();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
