// fletching_roundtrip_devices_cpp: every backend of the reference producer, behind its gate,
// through the C++ library (tests/roundtrip/README.md).
//
//     fletching_roundtrip_devices_cpp [--without-chain | --chain] [BACKEND...]
//
// --chain runs nothing but the chain. Backends: those that are named, else all.
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "asserter.hpp"
#include "cells.hpp"
#include "device.hpp"
#include "fletching/async_adapters.hpp"
#include "fletching/owner.hpp"
#include "fletching/stream.hpp"
#include "fletching/stream_producer.hpp"
#include "gated.hpp"
#include "hops.hpp"
#include "producer.h"
#include "text.hpp"
#include "waiting.hpp"

namespace fletching::roundtrip {
namespace {

// One of each layout; devices.py has the same. The catalogue in full is what `cpu` is for, and the
// producer's own tests.
constexpr const char* kCases[] = {"int32",  "utf8",       "utf8_view",   "list",
                                  "struct", "dictionary", "dense_union", "record_batch"};
constexpr std::int64_t kBatches = 3;
constexpr std::int64_t kFailAt = 2;  // before the third
constexpr std::int64_t kNever = -1;

/// The releases that C++ has seen, by objects that it tied to them.
class Releases {
 public:
  template <class Raw>
  void hook(Asserter& asserter, Owner<Raw>& target) {
    asserter.require_success("attach", attach(target, Hook(this)));
    ++hooked_;
  }
  [[nodiscard]] std::int64_t hooked() const { return hooked_; }
  [[nodiscard]] std::int64_t seen() const { return seen_; }

 private:
  struct CountOne {
    void operator()(Releases* releases) const { ++releases->seen_; }
  };
  using Hook = std::unique_ptr<Releases, CountOne>;

  std::int64_t hooked_ = 0;
  std::int64_t seen_ = 0;
};

/// What one cell works with.
struct Run {
  Asserter& asserter;
  const Device& device;
  const char* name;  // of the case
  bool control;      // read without a wait, and see the old data
  bool fails;        // the stream does, midway
  Releases& releases;

  [[nodiscard]] std::int64_t fail_at() const { return fails ? kFailAt : kNever; }
};

/// Before any release is hooked: a hook is another private_data.
void require_dumps(const Run& run, const Schema& schema, std::span<const DeviceArray> batches) {
  for (const DeviceArray& batch : batches) {
    require_dump(run.asserter, *schema, *batch.get());
  }
}

/// The batches as received, under hooks, then the steps of the direction.
void require_batches(const Run& run, Gated& gate, Schema& schema,
                     std::vector<DeviceArray>& batches) {
  run.releases.hook(run.asserter, schema);
  for (DeviceArray& batch : batches) run.releases.hook(run.asserter, batch);
  const auto require = run.control ? require_old_data_without_wait : require_waits;
  require(run.asserter, run.device, gate, run.name, batches);
  for (const DeviceArray& batch : batches) {
    FletchingMessage message{};
    const int code = FletchingProducerVerifyArray(run.device.backend(), run.name, schema.get(),
                                                  batch.get(), &message);
    run.asserter.require_success("verification", code, message);
  }
}

void run_array(const Run& run) {
  Gated gate(run.device);
  Schema schema;
  std::vector<DeviceArray> arrays(1);
  gate.export_array(run.name, schema.out(), arrays.front().out());
  require_dumps(run, schema, arrays);
  require_batches(run, gate, schema, arrays);
}

/// The errno value and the text are the producer's.
void require_failure(const Run& run, const Status& ended) {
  run.asserter.require(!ended.ok(), "the stream ends, and has to fail");
  run.asserter.require_equal("the errno value", ended.error().code(), EIO);
  const std::string text = std::string("case ") + run.name +
                           ": the stream fails on purpose before batch " + std::to_string(kFailAt);
  run.asserter.require(ended.error().message() == text,
                       "the text is '" + ended.error().message() + "', expected '" + text + "'");
}

/// The batches and the failure as a stream of ours: the producer has to find both unchanged.
void require_kept(const Run& run, ArrowDeviceType device, Schema schema,
                  std::vector<DeviceArray> batches, fletching::Error failure) {
  std::vector<Result<DeviceArray>> content;
  content.reserve(batches.size() + 1);
  for (DeviceArray& batch : batches) content.emplace_back(std::move(batch));
  content.emplace_back(std::move(failure));
  Result<DeviceArrayStream> stream =
      make_device_stream(std::move(schema), device, std::move(content));
  run.asserter.require_success("make_device_stream", stream);
  FletchingMessage message{};
  const int code = FletchingProducerVerifyStream(run.device.backend(), run.name, kBatches, kFailAt,
                                                 stream->get(), &message);
  run.asserter.require_success("verification of the stream", code, message);
}

/// Reads the stream to its end or its failure and releases it: the batches live on. `is_foreign`:
/// it hands out the producer's own structs.
void require_stream(const Run& run, Gated& gate, DeviceArrayStream stream, bool is_foreign) {
  StreamReader<ArrowDeviceArrayStream> reader(std::move(stream));
  const ArrowDeviceType device = reader.device_type();
  Result<Schema> schema = reader.schema();
  run.asserter.require_success("get_schema", schema);
  std::vector<DeviceArray> batches;
  Status ended;
  for (Result<DeviceArray>& batch : reader) {
    if (batch.ok()) {
      batches.push_back(*std::move(batch));
    } else {
      ended = std::move(batch).error();
    }
  }
  reader.release();
  run.asserter.require_equal("the number of batches", static_cast<std::int64_t>(batches.size()),
                             run.fails ? kFailAt : kBatches);
  if (is_foreign) require_dumps(run, *schema, batches);
  if (!run.fails) {
    run.asserter.require_success("get_next", ended);
    return require_batches(run, gate, *schema, batches);
  }
  require_failure(run, ended);
  require_batches(run, gate, *schema, batches);
  require_kept(run, device, *std::move(schema), std::move(batches), std::move(ended).error());
}

void run_stream(const Run& run) {
  Gated gate(run.device);
  DeviceArrayStream stream;
  gate.export_stream(run.name, kBatches, run.fail_at(), stream.out());
  require_stream(run, gate, std::move(stream), true);
}

void run_async(const Run& run) {
  Gated gate(run.device);
  // A failure overtakes what was asked for and is not read yet. One batch at a time: none is lost.
  Result<AsyncReader> async = AsyncReader::create(run.fails ? 1 : kBatches);
  run.asserter.require_success("AsyncReader", async);
  ArrowAsyncDeviceStreamHandler* handler = async->handler();
  FletchingMessage message{};
  const int code = FletchingProducerRunAsync(run.device.backend(), gate.get(), run.name, kBatches,
                                             run.fail_at(), handler, &message);
  if (code != 0) handler->release(handler);
  run.asserter.require_success("async", code, message);
  Result<DeviceArrayStream> stream = std::move(*async).open();
  run.asserter.require_success("on_schema", stream);
  require_stream(run, gate, *std::move(stream), false);
  FletchingProducerAwaitAsync();
}

/// Loaded once, by the first chain: the languages that FLETCHING_CHAIN names, such as "cpp go
/// rust".
const std::vector<Hop>& hops() {
  static const std::vector<Hop> loaded = [] {
    const char* const names = std::getenv("FLETCHING_CHAIN");
    std::istringstream words(names == nullptr ? "" : names);
    std::vector<Hop> made;
    for (std::string language; words >> language;) made.emplace_back(language);
    if (made.empty()) fail(EINVAL, "FLETCHING_CHAIN: names no language: expected \"cpp ...\"");
    return made;
  }();
  return loaded;
}

/// All of these, this program, and the first of them again, while the gate is shut.
void pass_chain(const Run& run, Schema& schema, DeviceArray& array) {
  const void* const event = array->sync_event;
  for (const Hop& hop : hops()) hop.send(schema, array);
  run.releases.hook(run.asserter, schema);
  run.releases.hook(run.asserter, array);
  hops().front().send(schema, array);
  run.asserter.require(array->sync_event == event, "sync_event is another pointer than before");
}

void run_chain(const Run& run) {
  std::vector<std::int64_t> before;
  for (const Hop& hop : hops()) before.push_back(hop.exported());
  {
    Gated gate(run.device);
    Schema schema;
    std::vector<DeviceArray> arrays(1);
    gate.export_array(run.name, schema.out(), arrays.front().out());
    require_dumps(run, schema, arrays);
    pass_chain(run, schema, arrays.front());
    require_batches(run, gate, schema, arrays);
  }
  for (std::size_t i = 0; i < before.size(); ++i) {
    const Hop& hop = hops()[i];
    const std::string& language = hop.language();
    run.asserter.require(hop.exported() > before[i], language + " exported nothing");
    run.asserter.require_equal("the number of releases in " + language, hop.released(),
                               hop.exported());
  }
}

struct Direction {
  const char* name;
  void (*work)(const Run&);
  bool control = false;
  bool fails = false;
};

constexpr Direction kDirections[] = {
    {"array", run_array},
    {"array_control", run_array, true},
    {"stream", run_stream},
    {"stream_control", run_stream, true},
    {"stream_failure", run_stream, false, true},
    {"stream_failure_control", run_stream, true, true},
    {"async", run_async},
    {"async_control", run_async, true},
    {"async_failure", run_async, false, true},
    {"async_failure_control", run_async, true, true},
    {"chain", run_chain},
};

/// Without queues there is nothing to see too early, and the cases have array and stream already.
bool concerns(const Direction& direction, const Device& device) {
  if (device.has_queues()) return true;
  return !direction.control && (direction.work == run_async || direction.work == run_chain);
}

void work_on(const Direction& direction, const Device& device, const char* name, Asserter& asserter,
             Releases& releases) {
  FletchingProducerAwaitAsync();  // a cell that failed may have left a stream behind
  FletchingProducerResetCounters();
  direction.work({asserter, device, name, direction.control, direction.fails, releases});
  asserter.require(releases.hooked() > 0, "nothing was hooked");
  asserter.require_equal("the number of releases in C++", releases.seen(), releases.hooked());
  require_producer_at_rest(asserter);
}

bool run_cell(const Direction& direction, const Device& device, const char* name) {
  Cell cell;
  cell.backend = device.backend();
  cell.subject_kind = "case";
  cell.subject = name;
  cell.direction = direction.name;
  cell.status = device.status();
  if (cell.status == "absent") {
    cell.reason = device.description();
  } else {
    Asserter asserter;
    Releases releases;
    const auto work = [&] { work_on(direction, device, name, asserter, releases); };
    cell.ok = guarded(cell.reason, work) == 0;
    cell.asserted = asserter.count();
    cell.releases = releases.seen();
    if (!cell.ok) {
      std::fprintf(stderr, "%s %s %s: %s\n", device.backend(), name, direction.name,
                   cell.reason.c_str());
    }
  }
  const std::string trouble = append_cell(cell);
  if (!trouble.empty()) std::fprintf(stderr, "%s\n", trouble.c_str());
  return (cell.ok || cell.status == "absent") && trouble.empty();
}

/// What of the directions is run.
enum class Chain : std::uint8_t { kWith, kWithout, kAlone };

bool is_chosen(const Direction& direction, Chain chain) {
  const bool is_chain = direction.work == run_chain;
  return chain == Chain::kWith || is_chain == (chain == Chain::kAlone);
}

int run_backend(const char* backend, Chain chain) {
  const Device device(backend);
  std::printf("%s: %s: %s\n", backend, device.status(), device.description().c_str());
  std::fflush(stdout);
  int failed = 0;
  for (const char* name : kCases) {
    for (const Direction& direction : kDirections) {
      if (!concerns(direction, device) || !is_chosen(direction, chain)) continue;
      failed += run_cell(direction, device, name) ? 0 : 1;
    }
  }
  return failed;
}

int run_all(std::span<char*> arguments) {
  Chain chain = Chain::kWith;
  std::vector<const char*> backends;
  for (const char* argument : arguments) {
    const std::string_view word = argument;
    if (word == "--without-chain") {
      chain = Chain::kWithout;
    } else if (word == "--chain") {
      chain = Chain::kAlone;
    } else {
      backends.push_back(argument);
    }
  }
  if (backends.empty()) {
    for (int i = 0; i < FletchingProducerBackendCount(); ++i) {
      backends.push_back(FletchingProducerBackendName(i));
    }
  }
  int failed = backends.empty() ? 1 : 0;
  for (const char* backend : backends) failed += run_backend(backend, chain);
  std::printf("%d cells failed\n", failed);
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace fletching::roundtrip

int main(int argc, char** argv) {
  const auto arguments = std::span(argv, static_cast<std::size_t>(argc)).subspan(1);
  std::string reason;
  int code = 1;
  fletching::roundtrip::guarded(reason, [&] { code = fletching::roundtrip::run_all(arguments); });
  if (!reason.empty()) std::fprintf(stderr, "%s\n", reason.c_str());
  return code;
}
