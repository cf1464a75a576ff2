// SPDX-License-Identifier: Apache-2.0
//
// Calls in any order on validated streams and handlers, with right and wrong answers: the layer
// must not crash, and every schema and array must be released once.
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "fletching/abi.h"
#include "fletching/validate.h"
#include "require.hpp"

namespace {

using fletching::fuzz::Input;
using fletching::fuzz::require;

/// The state of one input.
struct FuzzState {
  explicit FuzzState(Input given) : input(given) {}

  bool odds(unsigned of) { return input.take<std::uint8_t>() % of == 1; }
  int code() {
    static constexpr int kCodes[] = {0, 0, 0, 0, EIO, ENOMEM, -1, 5000};
    return kCodes[input.take<std::uint8_t>() % 8];
  }

  Input input;
  std::int64_t live = 0;
  std::int64_t findings = 0;
};
FuzzState* g_play = nullptr;

void report(void* /*context*/, const FletchingFinding* finding) {
  require(*finding->rule != '\0' && *finding->message != '\0', "a finding has a rule and a text");
  require(*finding->party != '\0' && finding->history != nullptr, "a party and a history");
  ++g_play->findings;
}

FletchingValidateOptions options() {
  const auto level = static_cast<std::int32_t>(g_play->input.take<std::uint8_t>() % 2);
  // Rare, because a thread for every release is slow.
  const auto stress =
      g_play->input.take<std::uint8_t>() %
      (g_play->odds(32) ? FLETCHING_STRESS_REPORT_AT_EXIT : FLETCHING_STRESS_THREAD);
  return {sizeof(FletchingValidateOptions), level, report, nullptr, stress};
}

template <class Base>
void release_counted(Base* self) {
  --g_play->live;
  self->release = nullptr;
}

/// Fills a valid struct, a released one, or one with a wrong member.
void fill(ArrowSchema& out) {
  static constexpr const char* kTexts[] = {"i", "+s", "u", "\xff", "", nullptr, "+m", "l"};
  static constexpr const char* kBlocks[] = {nullptr, "\0\0\0\0", "\xff\xff\xff\xff", nullptr};
  out = {};
  if (g_play->odds(16)) return;
  out.format = kTexts[g_play->input.take<std::uint8_t>() % 8];
  out.name = kTexts[g_play->input.take<std::uint8_t>() % 8];
  out.metadata = kBlocks[g_play->input.take<std::uint8_t>() % 4];
  out.flags = g_play->input.take<std::uint8_t>() % 16;
  out.n_children = g_play->odds(8) ? 1 : 0;
  out.release = &release_counted<ArrowSchema>;
  ++g_play->live;
}
void fill(ArrowArray& out) {
  static const void* buffers[3] = {};
  out = {};
  if (g_play->odds(8)) return;
  out.length =
      g_play->input.take<std::int8_t>();  // NOLINT(bugprone-signed-char-misuse): may be < 0
  out.null_count = g_play->odds(8) ? 9 : 0;
  out.n_buffers = g_play->input.take<std::uint8_t>() % 4;
  out.buffers = g_play->odds(8) ? nullptr : buffers;
  out.release = &release_counted<ArrowArray>;
  ++g_play->live;
}
void fill(ArrowDeviceArray& out) {
  out = {};
  fill(out.array);
  out.device_id = g_play->odds(4) ? 0 : -1;
  out.device_type = g_play->odds(8) ? 0 : ARROW_DEVICE_CPU;
}

ArrowArray& base(ArrowArray& array) { return array; }
ArrowArray& base(ArrowDeviceArray& array) { return array.array; }
ArrowSchema& base(ArrowSchema& schema) { return schema; }

/// Structs of the consumer, each with its copy: releasing both is a finding.
template <class Raw>
struct HeldStructs {
  ~HeldStructs() {
    for (Raw& raw : list) drop(raw);
  }
  void drop(Raw& raw) {
    auto& struct_ = base(raw);
    auto copy = struct_;
    if (struct_.release != nullptr) struct_.release(&struct_);
    if (copy.release != nullptr && g_play->odds(8)) copy.release(&copy);
  }
  void drop_one() {
    if (!list.empty()) drop(list[g_play->input.take<std::uint8_t>() % list.size()]);
  }
  std::vector<Raw> list;
};

// --- Streams ---

template <class Raw, class Batch>
void play_stream() {
  static Raw* wrapped = nullptr;
  Raw raw{};
  raw.get_schema = [](Raw*, ArrowSchema* out) {
    const int code = g_play->code();
    if (code == 0) fill(*out);
    return code;
  };
  raw.get_next = [](Raw*, Batch* out) {
    Batch nested{};
    if (g_play->odds(16)) (void)wrapped->get_next(wrapped, &nested);
    const int code = g_play->code();
    if (code == 0) fill(*out);
    return code;
  };
  raw.get_last_error = [](Raw*) -> const char* {
    return g_play->odds(3) ? nullptr : (g_play->odds(3) ? "\xff" : "text");
  };
  raw.release = [](Raw* self) {
    --g_play->live;
    if (!g_play->odds(8)) self->release = nullptr;
  };
  ++g_play->live;
  const FletchingValidateOptions chosen = options();
  int code = 0;
  if constexpr (requires { raw.device_type; }) {
    raw.device_type = ARROW_DEVICE_CPU;
    code = FletchingValidateDeviceStream(&raw, &chosen, nullptr);
  } else {
    code = FletchingValidateStream(&raw, &chosen, nullptr);
  }
  require(code == 0, "the stream is wrapped");
  wrapped = &raw;
  HeldStructs<ArrowSchema> schemas;
  HeldStructs<Batch> batches;
  while (!g_play->input.empty()) {
    const auto call = g_play->input.take<std::uint8_t>() % 8;
    if (call < 2) {
      ArrowSchema schema{};
      if (raw.get_schema(&raw, &schema) == 0) schemas.list.push_back(schema);
    } else if (call < 4) {
      Batch batch{};
      if (raw.get_next(&raw, &batch) == 0) batches.list.push_back(batch);
    } else if (call == 4) {
      (void)raw.get_last_error(&raw);
    } else if (call == 5) {
      batches.drop_one();
    } else if (call == 6) {
      schemas.drop_one();
    } else if (raw.release != nullptr && g_play->odds(8)) {
      raw.release(&raw);
    }
  }
  if (raw.release != nullptr) raw.release(&raw);
}

// --- Async streams ---

struct Async {
  HeldStructs<ArrowSchema> schemas;
  HeldStructs<ArrowDeviceArray> batches;
  std::vector<ArrowAsyncTask> tasks;
  ArrowAsyncDeviceStreamHandler consumer{};
  ArrowAsyncProducer producer{};

  void control() const {
    ArrowAsyncProducer* const shown = consumer.producer;
    if (shown == nullptr) return;
    if (g_play->odds(3)) {
      shown->cancel(shown);
    } else {
      shown->request(shown, g_play->input.take<std::int8_t>());
    }
  }
  void extract() {
    if (tasks.empty()) return;
    ArrowAsyncTask task = tasks[g_play->input.take<std::uint8_t>() % tasks.size()];
    ArrowDeviceArray batch{};
    const bool is_dropped = g_play->odds(4);
    const int code = task.extract_data(&task, is_dropped ? nullptr : &batch);
    if (code == 0 && !is_dropped) batches.list.push_back(batch);
  }
};
Async* g_async = nullptr;

void make_consumer(ArrowAsyncDeviceStreamHandler& consumer) {
  using Handler = ArrowAsyncDeviceStreamHandler;
  consumer.on_schema = [](Handler*, ArrowSchema* schema) {
    if (g_play->odds(4)) g_async->control();
    if (schema->release == nullptr || g_play->odds(8)) return 0;
    g_async->schemas.list.push_back(*schema);
    schema->release = nullptr;
    return g_play->code();
  };
  consumer.on_next_task = [](Handler*, ArrowAsyncTask* task, const char*) {
    if (g_play->odds(4)) g_async->control();
    const int code = g_play->code();
    if (task != nullptr && (code == 0 || g_play->odds(8))) g_async->tasks.push_back(*task);
    if (g_play->odds(4)) g_async->extract();
    return code;
  };
  consumer.on_error = [](Handler*, int, const char*, const char*) {
    if (g_play->odds(8)) g_async->control();
  };
  consumer.release = [](Handler* self) {
    --g_play->live;
    self->release = nullptr;
  };
}

void call_handler(ArrowAsyncDeviceStreamHandler* handler) {
  static constexpr const char* kBlocks[] = {nullptr, "\0\0\0\0", "\xff\xff\xff\xff", nullptr};
  const char* const block = kBlocks[g_play->input.take<std::uint8_t>() % 4];
  const auto call = g_play->input.take<std::uint8_t>() % 8;
  if (call == 0) {
    ArrowSchema schema{};
    fill(schema);
    (void)handler->on_schema(handler, &schema);
    if (schema.release != nullptr) schema.release(&schema);
  } else if (call < 5) {
    ArrowAsyncTask task{};
    if (!g_play->odds(16)) {
      task.extract_data = [](ArrowAsyncTask*, ArrowDeviceArray* out) {
        const int code = g_play->code();
        if (code == 0 && out != nullptr) fill(*out);
        return code;
      };
    }
    const bool is_end = g_play->odds(8) || task.extract_data == nullptr;
    (void)handler->on_next_task(handler, is_end ? nullptr : &task, block);
  } else if (call == 5) {
    handler->on_error(handler, g_play->code(), g_play->odds(3) ? nullptr : "text", block);
  } else if (call == 6 && g_play->odds(8)) {
    handler->release(handler);
  } else {
    g_async->control();
  }
}

void play_async() {
  Async async;
  g_async = &async;
  make_consumer(async.consumer);
  ++g_play->live;
  async.producer = {ARROW_DEVICE_CPU, [](ArrowAsyncProducer*, std::int64_t) {},
                    [](ArrowAsyncProducer*) {}, nullptr, nullptr};
  ArrowAsyncDeviceStreamHandler* handler = &async.consumer;
  const FletchingValidateOptions chosen = options();
  require(FletchingValidateAsyncHandler(&handler, &chosen, nullptr) == 0, "the handler is wrapped");
  if (!g_play->odds(16)) handler->producer = &async.producer;
  while (!g_play->input.empty()) {
    if (g_play->odds(4)) {
      async.extract();
    } else {
      call_handler(handler);
    }
  }
  if (async.consumer.release != nullptr) handler->release(handler);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kMost =
      200;  // a byte here is a call, which costs more than in other targets
  if (size > kMost) return -1;
  FuzzState play(Input(data, size));
  g_play = &play;
  const auto kind = play.input.take<std::uint8_t>() % 3;
  if (kind == 0) {
    play_stream<ArrowArrayStream, ArrowArray>();
  } else if (kind == 1) {
    play_stream<ArrowDeviceArrayStream, ArrowDeviceArray>();
  } else {
    play_async();
  }
  require(play.live == 0, "everything is released once");
  return 0;
}
