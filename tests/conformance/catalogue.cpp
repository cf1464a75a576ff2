// SPDX-License-Identifier: Apache-2.0
//
// Passes the reference producer's catalogue through the subject and back, with the validation layer
// on both sides.
#include "gated.hpp"
#include "producer.h"
#include "rebuilt.hpp"
#include "streams.hpp"

namespace fletching::conformance {
namespace {

constexpr const char* kBackend = "cpu";

/// Plays a case of the producer; `suffix` distinguishes the directions of a group.
template <class Play>
void play_case(Run& run, const char* name, const char* suffix, const char* direction,
               bool is_supported, const Play& play) {
  const std::string full = std::string(name) + suffix;
  if (!run.begin(full.c_str())) return;
  Case played(run, full);
  played.is_cell({kBackend, name, direction});
  if (!is_supported) return played.not_supported();
  const Account account;
  play(played, name);
  account.expect_released(played);
}

void pass_array(Run& run, Case& played, const char* name) {
  Held<ArrowSchema> schema;
  Held<ArrowDeviceArray> array;
  Held<ArrowSchema> out_schema;
  Held<ArrowDeviceArray> out;
  played.call("export", FletchingProducerExportArray, kBackend, name, &schema.value, &array.value);
  const ArrowDeviceArray taken = array.value;
  Original original(run.subject, schema.value, taken.array);
  const Answer answer = ask(run.subject, run.subject.array, &schema.value, &array.value,
                            &out_schema.value, &out.value);
  played.answered(answer, true);
  if (answer.code != 0) return played.expect_accepted(answer);
  played.passed(taken.array, out.value.array);
  const FletchingValidateOptions options = layer(FLETCHING_VALIDATE_DATA);
  (void)FletchingCheckDeviceArray(&out_schema.value, &out.value, &options, nullptr, nullptr);
  const ArrowSchema compared_schema = original.schema(out_schema.value);
  const ArrowDeviceArray compared = original.array(out.value);
  played.call("array", FletchingProducerVerifyArray, kBackend, name, &compared_schema, &compared);
}

void pass_stream(Run& run, Case& played, const char* name, std::int64_t fail_at) {
  Held<ArrowDeviceArrayStream> in;
  Held<ArrowDeviceArrayStream> out;
  played.call("export", FletchingProducerExportStream, kBackend, name, kBatches, fail_at,
              &in.value);
  (void)validate(in.value, FLETCHING_VALIDATE_SHAPE);
  const ArrowDeviceArrayStream taken = in.value;
  const Answer answer = ask(run.subject, run.subject.device_stream, &in.value, &out.value);
  played.answered(answer, true);
  if (answer.code != 0) return played.expect_accepted(answer);
  played.passed(taken, out.value);
  (void)validate(out.value, FLETCHING_VALIDATE_SHAPE);
  played.call("stream", FletchingProducerVerifyStream, kBackend, name, kBatches, fail_at,
              &out.value);
}

}  // namespace

void play_catalogue_arrays(Run& run) {
  for (std::int32_t i = 0; const char* name = FletchingProducerCaseName(i); ++i) {
    play_case(run, name, "", "array", run.subject.array != nullptr,
              [&](Case& played, const char* of) { pass_array(run, played, of); });
  }
}

void play_catalogue_streams(Run& run) {
  const bool is_supported = run.subject.device_stream != nullptr;
  for (std::int32_t i = 0; const char* name = FletchingProducerCaseName(i); ++i) {
    play_case(run, name, "", "stream", is_supported,
              [&](Case& played, const char* of) { pass_stream(run, played, of, kNever); });
    play_case(run, name, ".failure", "stream_failure", is_supported,
              [&](Case& played, const char* of) { pass_stream(run, played, of, kFailAt); });
  }
}

}  // namespace fletching::conformance
