// SPDX-License-Identifier: Apache-2.0
//
// Plain functions that produce: their structs are read by a polite consumer through the validation
// layer, then by the unusual consumers of the hostile peer.
#include <malloc.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <type_traits>

#include "fletching/roles.h"
#include "roles.hpp"
#include "streams.hpp"
#include "traced.hpp"

namespace fletching::conformance {
namespace {

constexpr std::int64_t kMostBatches = 1000;  // an endless stream is released after these
// More calls than malloc keeps freed blocks of one size in a thread's cache.
constexpr int kCallsPerRound = 32;
constexpr int kLeakRounds = 4;
constexpr int kManyRounds = 32;
constexpr int kRepeats = 4;
// malloc's smallest block. A process that grows by less per call does not leak a block in each: a
// just-in-time compiler, for example, allocates too.
constexpr std::size_t kSmallestBlock = 4 * sizeof(void*);
constexpr std::uint32_t kStress =
    FLETCHING_STRESS_POISON | FLETCHING_STRESS_MOVE | FLETCHING_STRESS_DELAY;

// Consumers of the peer that break a rule, or that use more threads than the texts promise.
constexpr std::array<std::string_view, 6> kExcluded{
    "array-consumer.release-twice",  "array-consumer.release-elsewhere",
    "array-consumer.child-in-place", "array-consumer.children-many-threads",
    "stream-consumer.release-twice", "stream-consumer.next-elsewhere"};

FletchingValidateOptions producer_layer(const Target& target, std::uint32_t stress) {
  FletchingValidateOptions options = layer(target.level, "producer");
  options.stress |= stress;
  return options;
}

/// Calls the function. Reports a result other than 0.
template <class Function, class... Out>
bool produce(Case& played, const Target& target, Out*... out) {
  const int code = traced_call(target.role, [&] { return function_of<Function>(target)(out...); });
  if (code == 0) return true;
  report(played, kCallFails, "error", "producer",
         "the function failed: expected 0, got " + std::to_string(code));
  return false;
}

void expect_wrapped(Case& played, int code, const FletchingMessage& message, const char* rule) {
  if (code != 0) report(played, rule, "error", "producer", message.text);
}

// --- Memory ---

/// Bytes that malloc has handed out, or 0 if the C library does not tell.
std::size_t allocated() noexcept {
#if defined(__GLIBC__)
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
#else
  return 0;
#endif
}

/// Reports a leak if the memory grows in each of several rounds. A first round fills the caches of
/// the library.
template <class Call>
void play_leaks(Run& run, const Target& target, const Call& call) {
  const auto round = [&] {
    for (int i = 0; i < kCallsPerRound; ++i) {
      note_call(target.role);
      call();
    }
  };
  play_case(run, "leak", [&](Case& played) {
    round();
    std::size_t before = allocated();
    std::size_t least = SIZE_MAX;
    for (int i = 0; i < kLeakRounds; ++i) {
      round();
      const std::size_t after = allocated();
      least = (std::min)(least, after > before ? after - before : 0);
      before = after;
    }
    if (least < kCallsPerRound * kSmallestBlock) return;
    // A cache may fill slowly, but a leak goes on.
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
      for (int i = 0; i < kManyRounds; ++i) round();
      const std::size_t after = allocated();
      if (after < before + least * kManyRounds / 2) return;
      before = after;
    }
    report(played, kLeak, "error", "producer",
           "every struct was released: expected the memory of each call to be freed, got about " +
               std::to_string(least / kCallsPerRound) + " bytes more after each");
  });
}

// --- Arrays ---

int wrap(const ArrowSchema& schema, ArrowArray& array, const FletchingValidateOptions& options,
         FletchingMessage& message) {
  return FletchingValidateArray(&schema, &array, &options, &message);
}
int wrap(const ArrowSchema& schema, ArrowDeviceArray& array,
         const FletchingValidateOptions& options, FletchingMessage& message) {
  return FletchingValidateDeviceArray(&schema, &array, &options, &message);
}

template <class Raw>
using ArrayProducer = std::conditional_t<std::is_same_v<Raw, ArrowArray>, FletchingArrayProducer,
                                         FletchingDeviceArrayProducer>;

/// A schema and an array of the function, behind the layer.
template <class Raw>
struct ProducedArray {
  Held<ArrowSchema> schema;
  Held<Raw> array;

  bool fill(Case& played, const Target& target, std::uint32_t stress) {
    if (!produce<ArrayProducer<Raw>>(played, target, &schema, &array)) {
      forget(schema.value);
      forget(array.value);
      return false;
    }
    trace(schema.value, "schema");
    trace(base_of(array.value), "array");
    const FletchingValidateOptions options = producer_layer(target, stress);
    FletchingMessage message{};
    expect_wrapped(played, FletchingValidateSchema(&schema, &options, &message), message,
                   "schema.release-set");
    expect_wrapped(played, wrap(schema.value, array.value, options, message), message,
                   "array.release-set");
    return !is_released(schema.value) && !is_released(array.value);
  }
};

/// Moves the struct and releases it at its new address.
template <class Raw>
void move_and_release(Raw& raw) {
  Raw moved = raw;
  forget(raw);
  release_left(moved);
}

ArrowDeviceArray as_device_array(const ArrowArray& array) {
  ArrowDeviceArray device{};
  device.array = array;
  device.device_id = -1;
  device.device_type = ARROW_DEVICE_CPU;
  return device;
}
ArrowDeviceArray as_device_array(const ArrowDeviceArray& array) { return array; }

template <class Raw>
void consume_array(Case& played, const Target& target) {
  ProducedArray<Raw> produced;
  if (!produced.fill(played, target, 0)) return;
  ArrowDeviceArray device = as_device_array(produced.array.value);
  forget(produced.array.value);
  FletchingMessage message{};
  const bool is_accepted = FletchingHostileConsumeArray(played.c_str(), &device, &message) == 0;
  if (!is_accepted && !played.is_wrong()) {
    report(played, kUnexpected, "warning", "producer", message.text);
  }
  report_mistakes(played, kUnexpected, "warning", "producer");
}

template <class Raw>
void play_array_producer_of(Run& run, const Target& target) {
  const auto release_both = [&](Case& played, bool is_array_first, std::uint32_t stress) {
    ProducedArray<Raw> produced;
    if (!produced.fill(played, target, stress)) return;
    if (is_array_first) move_and_release(produced.array.value);
    move_and_release(produced.schema.value);
    if (!is_array_first) move_and_release(produced.array.value);
  };
  play_case(run, "read", [&](Case& played) { release_both(played, false, 0); });
  play_case(run, "array-first", [&](Case& played) { release_both(played, true, 0); });
  play_case(run, "stress", [&](Case& played) { release_both(played, false, kStress); });
  for (std::int32_t i = 0; i < FletchingHostileCaseCount(); ++i) {
    const std::string name = FletchingHostileCaseName(i);
    if (FletchingHostileCaseParty(i) != kFletchingHostileArrayConsumer) continue;
    if (std::ranges::find(kExcluded, name) != kExcluded.end()) continue;
    play_case(run, name, [&](Case& played) { consume_array<Raw>(played, target); });
  }
  play_leaks(run, target, [&] {
    Held<ArrowSchema> schema;
    Held<Raw> array;
    const auto function = function_of<ArrayProducer<Raw>>(target);
    if (function(&schema, &array) == 0) return;
    forget(schema.value);
    forget(array.value);
  });
}

// --- Streams ---

int wrap(ArrowArrayStream& stream, const FletchingValidateOptions& options,
         FletchingMessage& message) {
  return FletchingValidateStream(&stream, &options, &message);
}
int wrap(ArrowDeviceArrayStream& stream, const FletchingValidateOptions& options,
         FletchingMessage& message) {
  return FletchingValidateDeviceStream(&stream, &options, &message);
}

int consume(const char* name, std::int64_t batches, ArrowArrayStream* stream,
            FletchingMessage* message) {
  return FletchingHostileConsumeStream(name, batches, stream, message);
}
int consume(const char* name, std::int64_t batches, ArrowDeviceArrayStream* stream,
            FletchingMessage* message) {
  return FletchingHostileConsumeDeviceStream(name, batches, stream, message);
}

template <class Raw>
using StreamProducer = std::conditional_t<std::is_same_v<Raw, ArrowArrayStream>,
                                          FletchingStreamProducer, FletchingDeviceStreamProducer>;

template <class Raw>
bool fill_stream(Case& played, const Target& target, std::uint32_t stress, Held<Raw>& stream) {
  if (!produce<StreamProducer<Raw>>(played, target, &stream)) {
    forget(stream.value);
    return false;
  }
  // A traced struct does not move with the stream.
  if (stress == 0) trace_stream(stream.value);
  FletchingMessage message{};
  const int code = wrap(stream.value, producer_layer(target, stress), message);
  expect_wrapped(played, code, message, kUnexpected);
  return code == 0;
}

/// The content of a stream. `batches` is negative if the stream did not end.
struct Content {
  std::int64_t batches = -1;
  bool failed = false;
};

template <class Raw>
void report_stream_error(Case& played, Raw& stream, const char* call, int code) {
  const Answer answer = last_error(played, stream, code);
  report(
      played, kCallFails, "warning", "producer",
      std::string(call) + " failed: expected 0, got " + std::to_string(code) + ": " + answer.text);
}

/// Reads the stream to its end through the layer, and releases each batch at another address.
template <class Raw>
Content read_politely(Case& played, Raw& stream) {
  Held<ArrowSchema> schema;
  Content content;
  if (const int code = stream.get_schema(&stream, &schema); code != 0) {
    forget(schema.value);
    report_stream_error(played, stream, "get_schema", code);
    content.failed = true;
    return content;
  }
  for (std::int64_t i = 0; i < kMostBatches; ++i) {
    Held<typename TracedStream<Raw>::Batch> batch;
    if (const int code = stream.get_next(&stream, &batch); code != 0) {
      forget(batch.value);
      report_stream_error(played, stream, "get_next", code);
      content.failed = true;
      return content;
    }
    if (is_released(batch.value)) {
      content.batches = i;
      return content;
    }
    move_and_release(batch.value);
  }
  return content;
}

template <class Raw>
void consume_stream(Case& played, const Target& target, const Content& content) {
  Held<Raw> stream;
  if (!fill_stream(played, target, 0, stream)) return;
  FletchingMessage message{};
  const int code = consume(played.c_str(), content.batches, &stream, &message);
  // The polite consumer has reported the error of a stream that fails.
  if (code != 0 && !content.failed && !played.is_wrong()) {
    report(played, kUnexpected, "warning", "producer", message.text);
  }
  report_mistakes(played, kUnexpected, "warning", "producer");
}

bool needs_an_end(std::string_view consumer) {
  return !consumer.ends_with(".outlive") && !consumer.ends_with(".unread");
}

template <class Raw>
void play_stream_producer_of(Run& run, const Target& target) {
  Content content;
  bool is_endless = false;
  const auto read = [&](Case& played, std::uint32_t stress) {
    Held<Raw> stream;
    if (!fill_stream(played, target, stress, stream)) return;
    content = read_politely(played, stream.value);
    is_endless = content.batches < 0 && !content.failed;
  };
  play_case(run, "read", [&](Case& played) { read(played, 0); });
  play_case(run, "stress", [&](Case& played) { read(played, kStress); });
  for (std::int32_t i = 0; i < FletchingHostileCaseCount(); ++i) {
    const std::string name = FletchingHostileCaseName(i);
    if (FletchingHostileCaseParty(i) != kFletchingHostileStreamConsumer) continue;
    if (std::ranges::find(kExcluded, name) != kExcluded.end()) continue;
    play_case(run, name, [&](Case& played) {
      if (is_endless && needs_an_end(name)) return played.not_supported();
      consume_stream<Raw>(played, target, content);
    });
  }
  play_leaks(run, target, [&] {
    Held<Raw> stream;
    if (function_of<StreamProducer<Raw>>(target)(&stream) != 0) {
      return forget(stream.value);
    }
    Held<ArrowSchema> schema;
    if (stream.value.get_schema(&stream, &schema) != 0) return forget(schema.value);
    for (std::int64_t n = 0; n < kMostBatches; ++n) {
      Held<typename TracedStream<Raw>::Batch> batch;
      if (stream.value.get_next(&stream, &batch) != 0) return forget(batch.value);
      if (is_released(batch.value)) return;
    }
  });
}

// --- Tensors ---

void delete_tensor(DLManagedTensorVersioned* tensor) {
  if (tensor != nullptr && tensor->deleter != nullptr) tensor->deleter(tensor);
}

void read_tensor(Case& played, const Target& target, std::uint32_t stress) {
  DLManagedTensorVersioned* tensor = nullptr;
  if (!produce<FletchingTensorProducer>(played, target, &tensor)) return;
  if (tensor == nullptr) {
    return report(played, kUnexpected, "error", "producer",
                  "the function returned 0: expected a tensor, got NULL");
  }
  const FletchingValidateOptions options = producer_layer(target, stress);
  FletchingMessage message{};
  expect_wrapped(played, FletchingValidateTensor(&tensor, &options, &message), message,
                 kUnexpected);
  note_call("deleter");
  delete_tensor(tensor);
  note_call("deleter returned");
}

}  // namespace

void play_array_producer(Run& run, const Target& target) {
  play_array_producer_of<ArrowArray>(run, target);
}

void play_device_array_producer(Run& run, const Target& target) {
  play_array_producer_of<ArrowDeviceArray>(run, target);
}

void play_stream_producer(Run& run, const Target& target) {
  play_stream_producer_of<ArrowArrayStream>(run, target);
}

void play_device_stream_producer(Run& run, const Target& target) {
  play_stream_producer_of<ArrowDeviceArrayStream>(run, target);
}

void play_tensor_producer(Run& run, const Target& target) {
  play_case(run, "read", [&](Case& played) { read_tensor(played, target, 0); });
  play_case(run, "stress",
            [&](Case& played) { read_tensor(played, target, FLETCHING_STRESS_POISON); });
  play_leaks(run, target, [&] {
    DLManagedTensorVersioned* tensor = nullptr;
    if (function_of<FletchingTensorProducer>(target)(&tensor) == 0) delete_tensor(tensor);
  });
}

void play_async_producer(Run& run, const Target& target) {
  for (std::int32_t i = 0; i < FletchingHostileCaseCount(); ++i) {
    const std::string name = FletchingHostileCaseName(i);
    if (FletchingHostileCaseParty(i) != kFletchingHostileHandler) continue;
    if (name.ends_with("-null")) continue;  // the handler itself breaks a rule
    play_case(run, name, [&](Case& played) {
      ArrowAsyncDeviceStreamHandler* handler = nullptr;
      FletchingMessage message{};
      const FletchingValidateOptions options = producer_layer(target, 0);
      (void)FletchingHostileOpenHandler(played.c_str(), -1, &handler, &message);
      (void)FletchingValidateAsyncHandler(&handler, &options, &message);
      const bool is_started = produce<FletchingAsyncProducer>(played, target, handler);
      if (!is_started && handler->release != nullptr) handler->release(handler);
      report_mistakes(played, kUnexpected, "warning", "producer");
    });
  }
}

}  // namespace fletching::conformance
