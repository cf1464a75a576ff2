// SPDX-License-Identifier: Apache-2.0
//
// Plain functions that consume: they get the structs of the hostile peer, of the corpus and of the
// reference producer. The validation layer wraps the valid ones.
#include <algorithm>
#include <cerrno>
#include <memory>
#include <string_view>

#include "fletching/roles.h"
#include "gated.hpp"
#include "roles.hpp"
#include "streams.hpp"
#include "tensors.hpp"
#include "traced.hpp"
#include "waits.hpp"

namespace fletching::conformance {
namespace {

/// The input of a consumer, and the expected result.
struct Given {
  std::string name;
  std::string about;
  std::int32_t outcome;  // kFletchingHostile...
  bool is_basic = true;  // every library is expected to support it

  [[nodiscard]] bool is_valid() const noexcept { return outcome == kFletchingHostileAccepted; }
  [[nodiscard]] bool is_broken() const noexcept {
    // The error arrives, but a callback is missing.
    const bool lacks_callback = name == "stream.last-error-null";
    return outcome == kFletchingHostileRefused || outcome == kFletchingHostileTolerated ||
           lacks_callback;
  }
};

/// Compares the result of a function with the outcome of the case. Neither result is certain: a
/// function may skip the broken part, or may not support the type.
/// `failures`: the calls of the function that have failed.
void judge_result(Case& played, const Given& given, int code, std::int64_t failures = 0) {
  const std::string got = "got " + std::to_string(code);
  if (code < 0) {
    report(played, kUnexpected, "warning", "consumer", "expected a positive errno value, " + got);
  }
  if (given.is_valid() && code != 0) {
    if (is_unsupported(code)) played.not_supported();
    report(played, kRefusesValid, given.is_basic && !is_unsupported(code) ? "warning" : "note",
           "consumer", "a valid struct (" + given.about + "): expected 0, " + got);
  }
  if (code != 0) return;
  if (given.outcome == kFletchingHostileRefused) {
    report(played, kAcceptsInvalid, "note", "consumer",
           "a broken struct (" + given.about + "): expected an errno value, got 0");
  }
  if (given.outcome == kFletchingHostileReported && failures > 0) {
    report(played, kHidesError, "warning", "consumer",
           "a call failed (" + given.about + "): expected its errno value, got 0");
  }
}

template <class Call>
int give(const Target& target, const Given& given, const Call& call) {
  note_call("given " + given.name + ": " + given.about + (given.is_broken() ? " (broken)" : ""));
  return traced_call(target.role, call);
}

/// Reports a struct that the function has left, although its result is 0.
template <class Raw>
void expect_taken(Case& played, const Raw& raw, int code, const char* what) {
  if (code != 0 || is_released(raw)) return;
  report(
      played, kAccount, "error", "consumer",
      std::string(what) + " is not released: expected it to be moved or released, with result 0");
}

void report_account(Case& played, const FletchingMessage& message, int code) {
  if (code == 0 || played.is_wrong()) return;
  report(played, kAccount, account_severity("error", message.text), "consumer", message.text);
}

void finish_corpus(Case& played) {
  FletchingMessage message{};
  report_account(played, message, FletchingCorpusFinish(&message));
}

/// Plays each case of the hostile peer for a party.
template <class Play>
void each_given(Run& run, std::int32_t party, const Play& play) {
  for (std::int32_t i = 0; i < FletchingHostileCaseCount(); ++i) {
    if (FletchingHostileCaseParty(i) != party) continue;
    const std::string_view name = FletchingHostileCaseName(i);
    // The streams have no columns, and a consumer of tables refuses them.
    const bool is_basic = name.ends_with(".good") && party != kFletchingHostileStream &&
                          party != kFletchingHostileDeviceStream;
    const Given given{std::string(name), FletchingHostileCaseDescription(i),
                      FletchingHostileCaseOutcome(i), is_basic};
    play_case(run, given.name, [&](Case& played) {
      play(played, given);
      report_mistakes(played, kAccount, "error", "consumer");
    });
  }
}

const char* or_empty(const char* text) { return text == nullptr ? "" : text; }

/// Plays each case of the corpus of one kind. Leaves out content that only code that looks for the
/// fault survives.
template <class Play>
void each_of_corpus(Run& run, std::int32_t kind, const Play& play) {
  for (std::int32_t i = 0; i < FletchingCorpusCount(); ++i) {
    if (FletchingCorpusKind(i) != kind) continue;
    const bool is_refused = FletchingCorpusVerdict(i) == kFletchingCorpusRefuse;
    const bool is_data = std::string_view(or_empty(FletchingCorpusText(i, "level"))) == "data";
    if (is_refused && is_data) continue;
    const std::int32_t fails =
        FletchingCorpusError(i) == 0 ? kFletchingHostileAccepted : kFletchingHostileReported;
    const std::int32_t outcome = is_refused ? kFletchingHostileRefused : fails;
    const Given given{FletchingCorpusName(i), or_empty(FletchingCorpusText(i, "about")), outcome,
                      false};
    play_case(run, given.name, [&](Case& played) {
      play(played, given);
      finish_corpus(played);
    });
  }
}

/// Plays each case of the reference producer.
template <class Play>
void each_of_catalogue(Run& run, const Play& play) {
  for (std::int32_t i = 0; const char* name = FletchingProducerCaseName(i); ++i) {
    const Given given{std::string("catalogue.") + name, name, kFletchingHostileAccepted, false};
    play_case(run, given.name, [&](Case& played) {
      const Account account;
      play(played, given, name);
      const std::string problem = account.problem();
      if (problem.empty() || played.is_wrong()) return;
      report(played, kAccount, "error", "consumer", problem);
    });
  }
}

FletchingValidateOptions consumer_layer(const Target& target) {
  return layer(target.level, "consumer");
}

// --- Arrays ---

void take(ArrowDeviceArray& device, ArrowArray* out) {
  *out = device.array;
  device.array.release = nullptr;
}
void take(ArrowDeviceArray& device, ArrowDeviceArray* out) {
  *out = device;
  device.array.release = nullptr;
}

void wrap(const ArrowSchema& schema, ArrowArray& array, const FletchingValidateOptions& options) {
  (void)FletchingValidateArray(&schema, &array, &options, nullptr);
}
void wrap(const ArrowSchema& schema, ArrowDeviceArray& array,
          const FletchingValidateOptions& options) {
  (void)FletchingValidateDeviceArray(&schema, &array, &options, nullptr);
}

template <class Function, class Raw>
struct ArrayConsumer {
  const Target& target;

  int give_array(Case& played, const Given& given, Held<ArrowSchema>& schema,
                 Held<ArrowDeviceArray>& device) const {
    Held<Raw> array;
    take(device.value, &array);
    if (given.is_valid()) {
      const FletchingValidateOptions options = consumer_layer(target);
      (void)FletchingValidateSchema(&schema, &options, nullptr);
      wrap(schema.value, array.value, options);
    }
    const int code =
        give(target, given, [&] { return function_of<Function>(target)(&schema, &array); });
    expect_taken(played, schema.value, code, "the schema");
    expect_taken(played, array.value, code, "the array");
    return code;
  }

  void play(Run& run) const {
    each_given(run, kFletchingHostileArray, [&](Case& played, const Given& given) {
      Held<ArrowSchema> schema;
      Held<ArrowDeviceArray> array;
      (void)FletchingHostileExportArray(given.name.c_str(), &schema, &array, nullptr);
      judge_result(played, given, give_array(played, given, schema, array));
    });
    each_of_corpus(run, kFletchingCorpusArray, [&](Case& played, const Given& given) {
      Held<ArrowSchema> schema;
      Held<ArrowDeviceArray> array;
      (void)FletchingCorpusExportSchema(given.name.c_str(), &schema, nullptr);
      (void)FletchingCorpusExportArray(given.name.c_str(), &array, nullptr);
      judge_result(played, given, give_array(played, given, schema, array));
    });
    each_of_catalogue(run, [&](Case& played, const Given& given, const char* name) {
      Held<ArrowSchema> schema;
      Held<ArrowDeviceArray> array;
      (void)FletchingProducerExportArray("cpu", name, &schema, &array, nullptr);
      judge_result(played, given, give_array(played, given, schema, array));
    });
  }
};

// --- Streams ---

int export_stream(const char* name, ArrowArrayStream* out) {
  return FletchingHostileExportStream(name, out, nullptr);
}
int export_stream(const char* name, ArrowDeviceArrayStream* out) {
  return FletchingHostileExportDeviceStream(name, out, nullptr);
}

template <class Function, class Raw>
struct StreamConsumer {
  const Target& target;

  int give_stream(Case& played, const Given& given, Held<Raw>& stream) const {
    trace_stream(stream.value);
    if (given.is_valid()) wrap_stream(stream.value);
    const int code = give(target, given, [&] { return function_of<Function>(target)(&stream); });
    expect_taken(played, stream.value, code, "the stream");
    return code;
  }

  void judge_stream(Case& played, const Given& given, Held<Raw>& stream) const {
    const std::int64_t before = g_failures;
    const int code = give_stream(played, given, stream);
    judge_result(played, given, code, g_failures - before - (code != 0 ? 1 : 0));
  }

  void wrap_stream(ArrowArrayStream& stream) const {
    const FletchingValidateOptions options = consumer_layer(target);
    (void)FletchingValidateStream(&stream, &options, nullptr);
  }
  void wrap_stream(ArrowDeviceArrayStream& stream) const {
    const FletchingValidateOptions options = consumer_layer(target);
    (void)FletchingValidateDeviceStream(&stream, &options, nullptr);
  }

  void play(Run& run, std::int32_t party) const {
    each_given(run, party, [&](Case& played, const Given& given) {
      Held<Raw> stream;
      (void)export_stream(given.name.c_str(), &stream);
      judge_stream(played, given, stream);
    });
  }
};

void play_stream_corpus(Run& run,
                        const StreamConsumer<FletchingStreamConsumer, ArrowArrayStream>& consumer) {
  each_of_corpus(run, kFletchingCorpusStream, [&](Case& played, const Given& given) {
    Held<ArrowArrayStream> stream;
    (void)FletchingCorpusExportStream(given.name.c_str(), &stream, nullptr);
    consumer.judge_stream(played, given, stream);
  });
}

void play_stream_catalogue(
    Run& run,
    const StreamConsumer<FletchingDeviceStreamConsumer, ArrowDeviceArrayStream>& consumer) {
  each_of_catalogue(run, [&](Case& played, const Given& given, const char* name) {
    Held<ArrowDeviceArrayStream> stream;
    (void)FletchingProducerExportStream("cpu", name, kBatches, kNever, &stream, nullptr);
    consumer.judge_stream(played, given, stream);
  });
}

// --- Tensors ---

template <class Function, class Raw>
struct TensorConsumer {
  const Target& target;

  /// The function takes the tensor, also if it fails.
  void give_tensor(Case& played, const Given& given, Raw* tensor) const {
    if (given.is_valid()) (void)validate(&tensor, consumer_layer(target));
    const int code = give(target, given, [&] { return function_of<Function>(target)(tensor); });
    judge_result(played, given, code);
  }

  void play_given(Run& run, std::int32_t party) const {
    each_given(run, party, [&](Case& played, const Given& given) {
      Raw* tensor = nullptr;
      (void)export_tensor(given.name.c_str(), &tensor);
      give_tensor(played, given, tensor);
    });
  }

  void play_corpus(Run& run, std::int32_t kind) const {
    each_of_corpus(run, kind, [&](Case& played, const Given& given) {
      Raw* tensor = nullptr;
      (void)export_data(given.name.c_str(), &tensor, nullptr);
      give_tensor(played, given, tensor);
    });
  }
};

// --- Data behind a gate ---

Given gated(const char* backend) {
  return {std::string("wait.") + backend, std::string(backend) + ", with a pending event",
          kFletchingHostileAccepted, false};
}

/// A stream of the reference producer whose last batch alone is behind the gate. The consumer may
/// keep it for longer than the gate exists.
struct GatedLast {
  FletchingProducerGate* gate = nullptr;
  Held<ArrowDeviceArrayStream> complete;
  std::int64_t left = kBatches;

  using Shared = std::shared_ptr<GatedLast>;
  static GatedLast& of(ArrowDeviceArrayStream* stream) {
    return **static_cast<Shared*>(stream->private_data);
  }
  static int get_schema(ArrowDeviceArrayStream* stream, ArrowSchema* out) {
    ArrowDeviceArrayStream& inner = of(stream).complete.value;
    return inner.get_schema(&inner, out);
  }
  static int get_next(ArrowDeviceArrayStream* stream, ArrowDeviceArray* out) {
    GatedLast& self = of(stream);
    ArrowDeviceArrayStream& inner = self.complete.value;
    if (--self.left != 0) return inner.get_next(&inner, out);
    if (self.gate == nullptr) return ECANCELED;
    Held<ArrowSchema> schema;
    return FletchingProducerExportArrayBehind(self.gate, "record_batch", &schema, out, nullptr);
  }
  static const char* get_last_error(ArrowDeviceArrayStream* stream) {
    ArrowDeviceArrayStream& inner = of(stream).complete.value;
    return inner.get_last_error(&inner);
  }
  static void release(ArrowDeviceArrayStream* stream) {
    delete static_cast<Shared*>(stream->private_data);
    stream->release = nullptr;
  }

  static ArrowDeviceArrayStream stream(const Shared& self) {
    const ArrowDeviceType type = self->complete.value.device_type;
    return {type, get_schema, get_next, get_last_error, release, new Shared(self)};
  }
};

/// At the level data the layer itself would wait and read.
Target without_data(Target target) {
  target.level = (std::min)(target.level, FLETCHING_VALIDATE_SHAPE);
  return target;
}

// --- Async streams ---

void give_producer(Case& played, const Target& target, const Given& given) {
  ArrowAsyncDeviceStreamHandler* handler = nullptr;
  const int code =
      give(target, given, [&] { return function_of<FletchingAsyncConsumer>(target)(&handler); });
  if (code != 0 || handler == nullptr) {
    return report(played, kCallFails, "error", "consumer",
                  "the function failed: expected 0 and a handler, got " + std::to_string(code));
  }
  if (given.is_valid()) {
    const FletchingValidateOptions options = consumer_layer(target);
    (void)FletchingValidateAsyncHandler(&handler, &options, nullptr);
  }
  (void)FletchingHostileStartProducer(given.name.c_str(), handler, nullptr);
}

}  // namespace

void play_array_consumer(Run& run, const Target& target) {
  ArrayConsumer<FletchingArrayConsumer, ArrowArray>{target}.play(run);
}

void play_device_array_consumer(Run& run, const Target& target) {
  ArrayConsumer<FletchingDeviceArrayConsumer, ArrowDeviceArray>{target}.play(run);
  const Target shallow = without_data(target);
  const ArrayConsumer<FletchingDeviceArrayConsumer, ArrowDeviceArray> consumer{shallow};
  play_waits(run, [&](Case& played, const char* backend) {
    const char* verdict = "";
    // A consumer of columns refuses a batch, and a consumer of batches refuses a column.
    for (const char* name : {"record_batch", "int32"}) {
      WaitTrial trial(played, backend);
      trial.run([&] {
        Held<ArrowSchema> schema;
        Held<ArrowDeviceArray> array;
        played.call("export", FletchingProducerExportArrayBehind, trial.gate(), name, &schema,
                    &array);
        if (played.is_wrong()) return ENOTSUP;
        return consumer.give_array(played, gated(backend), schema, array);
      });
      verdict = trial.judge();
      if (std::string_view(verdict) != "refuses") break;
    }
    return verdict;
  });
}

void play_stream_consumer(Run& run, const Target& target) {
  const StreamConsumer<FletchingStreamConsumer, ArrowArrayStream> consumer{target};
  consumer.play(run, kFletchingHostileStream);
  play_stream_corpus(run, consumer);
}

void play_device_stream_consumer(Run& run, const Target& target) {
  const StreamConsumer<FletchingDeviceStreamConsumer, ArrowDeviceArrayStream> consumer{target};
  consumer.play(run, kFletchingHostileStream);
  consumer.play(run, kFletchingHostileDeviceStream);
  play_stream_catalogue(run, consumer);
  const Target shallow = without_data(target);
  const StreamConsumer<FletchingDeviceStreamConsumer, ArrowDeviceArrayStream> giver{shallow};
  play_waits(run, [&](Case& played, const char* backend) {
    WaitTrial trial(played, backend);
    trial.run([&] {
      Held<ArrowDeviceArrayStream> stream;
      played.call("export", FletchingProducerExportStreamBehind, trial.gate(), "record_batch",
                  kBatches, kNever, &stream);
      if (played.is_wrong()) return ENOTSUP;
      return giver.give_stream(played, gated(backend), stream);
    });
    const char* const verdict = trial.judge();
    if (std::string_view(verdict) != "waits") return verdict;

    WaitTrial of_last(played, backend);
    std::weak_ptr<GatedLast> kept;
    of_last.run([&] {
      const auto late = std::make_shared<GatedLast>();
      late->gate = of_last.gate();
      kept = late;
      played.call("export", FletchingProducerExportStream, backend, "record_batch", kBatches - 1,
                  kNever, &late->complete);
      if (played.is_wrong()) return ENOTSUP;
      Held<ArrowDeviceArrayStream> stream;
      stream.value = GatedLast::stream(late);
      return giver.give_stream(played, gated(backend), stream);
    });
    const bool reads_early = of_last.reads_early();
    if (const auto late = kept.lock()) late->gate = nullptr;
    return reads_early ? "reads early" : verdict;
  });
}

void play_tensor_consumer(Run& run, const Target& target) {
  const TensorConsumer<FletchingTensorConsumer, DLManagedTensorVersioned> consumer{target};
  consumer.play_given(run, kFletchingHostileTensor);
  consumer.play_given(run, kFletchingHostileVersionedTensor);
  consumer.play_corpus(run, kFletchingCorpusTensor);
}

void play_legacy_tensor_consumer(Run& run, const Target& target) {
  const TensorConsumer<FletchingLegacyTensorConsumer, DLManagedTensor> consumer{target};
  consumer.play_given(run, kFletchingHostileTensor);
  consumer.play_corpus(run, kFletchingCorpusLegacyTensor);
}

void play_async_consumer(Run& run, const Target& target) {
  for (std::int32_t i = 0; i < FletchingHostileCaseCount(); ++i) {
    const Given given{FletchingHostileCaseName(i), FletchingHostileCaseDescription(i),
                      FletchingHostileCaseOutcome(i)};
    // A stalled producer waits for a cancel that nobody decides on.
    const bool is_played = FletchingHostileCaseParty(i) == kFletchingHostileProducer &&
                           given.outcome != kFletchingHostileStalled;
    if (!is_played) continue;
    play_case(run, given.name, [&](Case& played) {
      give_producer(played, target, given);
      report_mistakes(played, kAccount, "error", "consumer");
    });
  }
}

}  // namespace fletching::conformance
