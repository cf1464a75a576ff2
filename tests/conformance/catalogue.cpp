// SPDX-License-Identifier: Apache-2.0
//
// The catalogue of the reference producer through the subject and back, with the validation layer
// on both sides.
#include "producer.h"
#include "streams.hpp"

namespace fletching::conformance {
namespace {

constexpr const char* kBackend = "cpu";
constexpr std::int64_t kFailAt = 2;  // the number of the batch that is not given
constexpr std::int64_t kNever = -1;

template <class Play>
void each_case(Run& run, bool is_supported, const Play& play) {
  for (std::int32_t i = 0; const char* name = FletchingProducerCaseName(i); ++i) {
    if (!run.begin(name)) continue;
    Case played(run, name);
    if (!is_supported) {
      played.not_supported();
      continue;
    }
    FletchingProducerResetCounters();
    FletchingProducerCounters counters{};
    FletchingProducerReadCounters(&counters);
    const std::int64_t left = counters.exported - counters.released;  // by earlier cases
    play(played);
    FletchingProducerReadCounters(&counters);
    const std::int64_t expected = counters.exported - left;
    if (counters.released != expected) {
      played.wrong("expected " + std::to_string(expected) + " releases, got " +
                   std::to_string(counters.released));
    }
  }
}

void pass_array(Run& run, Case& played) {
  Held<ArrowSchema> schema;
  Held<ArrowDeviceArray> array;
  Held<ArrowSchema> out_schema;
  Held<ArrowDeviceArray> out;
  played.call("export", FletchingProducerExportArray, kBackend, played.c_str(), &schema.value,
              &array.value);
  const Answer answer = ask(run.subject, run.subject.array, &schema.value, &array.value,
                            &out_schema.value, &out.value);
  played.answered(answer, true);
  if (answer.code != 0) return played.expect_accepted(answer);
  played.call("array", FletchingProducerVerifyArray, kBackend, played.c_str(), &out_schema.value,
              &out.value);
}

void pass_stream(Run& run, Case& played, std::int64_t fail_at) {
  Held<ArrowDeviceArrayStream> in;
  Held<ArrowDeviceArrayStream> out;
  played.call("export", FletchingProducerExportStream, kBackend, played.c_str(), kBatches, fail_at,
              &in.value);
  (void)validate(in.value, FLETCHING_VALIDATE_SHAPE);
  const Answer answer = ask(run.subject, run.subject.device_stream, &in.value, &out.value);
  played.answered(answer, true);
  if (answer.code != 0) return played.expect_accepted(answer);
  (void)validate(out.value, FLETCHING_VALIDATE_SHAPE);
  played.call("stream", FletchingProducerVerifyStream, kBackend, played.c_str(), kBatches, fail_at,
              &out.value);
}

}  // namespace

void play_catalogue_arrays(Run& run) {
  each_case(run, run.subject.array != nullptr, [&](Case& played) { pass_array(run, played); });
}

void play_catalogue_streams(Run& run) {
  each_case(run, run.subject.device_stream != nullptr, [&](Case& played) {
    pass_stream(run, played, kNever);
    pass_stream(run, played, kFailAt);
  });
}

}  // namespace fletching::conformance
