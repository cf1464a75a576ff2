// SPDX-License-Identifier: Apache-2.0
//
// Devices of the reference producer: passes arrays, streams and async streams, whose data is
// written when a gate opens, through the subject. Each case has a negative control without a wait.
#include <algorithm>
#include <cerrno>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chain.hpp"
#include "device_cases.hpp"
#include "ext_dev.h"
#include "fletching/waiter.h"
#include "gated.hpp"
#include "producer.h"
#include "streams.hpp"
#include "vulkan_handles.h"

namespace fletching::conformance {
namespace {

bool has_queues(std::string_view backend) { return backend != "cpu"; }

/// The inputs of a case.
struct Scenario {
  Case& played;
  const FletchingSubject& subject;
  const char* backend;
  const char* name;  // name of the producer's case
  bool is_control;   // read without a wait, and expect the old data
  std::int64_t fail_at;
  FletchingProducerGate* gate;  // NULL if the backend has no queues
};

/// The subject's output. Valid after the stream it came from is released.
struct Received {
  Held<ArrowSchema> schema;
  std::deque<Held<ArrowDeviceArray>> batches;
};

void expect_ready(const Scenario& scenario, ArrowDeviceArray* array, bool expected) {
  std::int32_t ready = -1;
  must(scenario.played, scenario.subject, scenario.subject.is_ready, array, &ready);
  if (ready == (expected ? 1 : 0)) return;
  scenario.played.wrong(std::string("is_ready: expected ") + (expected ? "1" : "0") + ", got " +
                        std::to_string(ready));
}

void expect_nothing_to_wait_for(const Scenario& scenario, Received& received) {
  for (auto& [array] : received.batches) {
    if (array.sync_event != nullptr) scenario.played.wrong("sync_event: expected NULL");
    expect_ready(scenario, &array, true);
    must(scenario.played, scenario.subject, scenario.subject.wait_on, &array, nullptr);
    must(scenario.played, scenario.subject, scenario.subject.synchronize, &array);
  }
}

void open(const Scenario& scenario) {
  scenario.played.call("opening the gate", FletchingProducerGateOpen, scenario.gate);
}

void read(const Scenario& scenario, const Queue& queue, Received& received) {
  for (auto& [array] : received.batches) {
    scenario.played.call("read", FletchingProducerQueueRead, queue.get(), scenario.name, &array);
  }
}

/// Opens the gate before a queue that reads behind it is destroyed.
class ScopedGateOpener {
 public:
  explicit ScopedGateOpener(const Scenario& scenario) : scenario_(scenario) {}
  ScopedGateOpener(const ScopedGateOpener&) = delete;
  ScopedGateOpener& operator=(const ScopedGateOpener&) = delete;
  ~ScopedGateOpener() { open(scenario_); }

 private:
  const Scenario& scenario_;
};

/// Expects old data in a queue that did not wait, and new data in a queue that did.
void play_waits(const Scenario& scenario, Received& received) {
  Case& played = scenario.played;
  const Queue careful = make_queue(played, scenario.backend);
  const Queue careless = make_queue(played, scenario.backend);
  const ScopedGateOpener open_at_last(scenario);
  for (auto& [array] : received.batches) {
    if (array.sync_event == nullptr) played.wrong("sync_event: expected an event, got NULL");
    expect_ready(scenario, &array, false);
    if (scenario.is_control) continue;
    must(played, scenario.subject, scenario.subject.wait_on, &array, handle(careful));
    played.call("read", FletchingProducerQueueRead, careful.get(), scenario.name, &array);
  }
  read(scenario, careless, received);
  verify(played, "the queue that does not wait", careless, FLETCHING_PRODUCER_OLD);
  if (scenario.is_control) return;
  if (is_idle(played, careful)) played.wrong("expected a queue that waits, got an idle one");
  open(scenario);
  verify(played, "the queue that waits", careful, FLETCHING_PRODUCER_NEW);
  for (auto& [array] : received.batches) {
    must(played, scenario.subject, scenario.subject.synchronize, &array);
    expect_ready(scenario, &array, true);
  }
}

/// Checks that the subject waits for its output and does not change the data.
void judge(const Scenario& scenario, Received& received) {
  if (scenario.played.is_wrong() || received.batches.empty()) return;
  if (has_queues(scenario.backend)) {
    play_waits(scenario, received);
  } else {
    expect_nothing_to_wait_for(scenario, received);
  }
  for (auto& [array] : received.batches) {
    scenario.played.call("array", FletchingProducerVerifyArray, scenario.backend, scenario.name,
                         &received.schema.value, &array);
  }
}

void play_array(const Scenario& scenario) {
  Received received;
  Held<ArrowSchema> schema;
  Held<ArrowDeviceArray> array;
  scenario.played.call("export", FletchingProducerExportArrayBehind, scenario.gate, scenario.name,
                       &schema.value, &array.value);
  const ArrowDeviceArray taken = array.value;
  ArrowDeviceArray& out = received.batches.emplace_back().value;
  must(scenario.played, scenario.subject, scenario.subject.array, &schema.value, &array.value,
       &received.schema.value, &out);
  scenario.played.passed(taken.array, out.array);
  judge(scenario, received);
}

/// Reads the subject's stream and releases it; its batches must stay valid. The failure of an async
/// stream may overtake batches that were requested and not read yet.
void play_out(const Scenario& scenario, Held<ArrowDeviceArrayStream>& out, bool is_async) {
  if (scenario.played.is_wrong()) return;
  const std::int64_t expected = scenario.fail_at == kNever ? kBatches : kFailAt;
  ArrowDeviceArrayStream& stream = out.value;
  (void)validate(stream, FLETCHING_VALIDATE_SHAPE);
  Received received;
  Answer ended{stream.get_schema(&stream, &received.schema.value), {}};
  while (ended.code == 0) {
    ArrowDeviceArray batch{};
    if (ended.code = stream.get_next(&stream, &batch); ended.code != 0) {
      ended = last_error(scenario.played, stream, ended.code);
    } else if (is_released(batch)) {
      break;
    } else {
      received.batches.emplace_back().value = batch;
    }
  }
  release_left(stream);
  const bool fails = scenario.fail_at != kNever;
  const auto batches = static_cast<std::int64_t>(received.batches.size());
  if (batches > expected || (batches < expected && !(fails && is_async))) {
    scenario.played.wrong("expected " + std::to_string(expected) + " batches, got " +
                          std::to_string(batches));
  }
  const std::string text = std::string("case ") + scenario.name +
                           ": the stream fails on purpose before batch " + std::to_string(kFailAt);
  if (fails ? ended.code != EIO || ended.text != text : ended.code != 0) {
    scenario.played.wrong("got errno " + std::to_string(ended.code) + ": " + ended.text);
  }
  judge(scenario, received);
}

void play_stream(const Scenario& scenario) {
  Held<ArrowDeviceArrayStream> in;
  Held<ArrowDeviceArrayStream> out;
  scenario.played.call("export", FletchingProducerExportStreamBehind, scenario.gate, scenario.name,
                       kBatches, scenario.fail_at, &in.value);
  const ArrowDeviceArrayStream taken = in.value;
  must(scenario.played, scenario.subject, scenario.subject.device_stream, &in.value, &out.value);
  scenario.played.passed(taken, out.value);
  play_out(scenario, out, false);
}

int start_async(void* context, ArrowAsyncDeviceStreamHandler* handler) {
  const auto& scenario = *static_cast<const Scenario*>(context);
  return FletchingProducerRunAsync(scenario.backend, scenario.gate, scenario.name, kBatches,
                                   scenario.fail_at, handler, nullptr);
}

void play_async(const Scenario& scenario) {
  Held<ArrowDeviceArrayStream> out;
  Scenario copy = scenario;
  must(scenario.played, scenario.subject, scenario.subject.receive, &start_async,
       static_cast<void*>(&copy), &out.value);
  scenario.played.passed(ArrowDeviceArrayStream{}, out.value);
  play_out(scenario, out, true);
  release_left(out.value);
  FletchingProducerAwaitAsync();
}

/// Passes the output through a subject, which releases its input.
void pass(const Scenario& scenario, const FletchingSubject& through, Received& received) {
  Held<ArrowSchema> schema;
  Held<ArrowDeviceArray> array;
  std::swap(schema.value, received.schema.value);
  std::swap(array.value, received.batches.front().value);
  must(scenario.played, through, through.array, &schema.value, &array.value, &received.schema.value,
       &received.batches.front().value);
}

/// Passes an array behind the shut gate through a chain, the subject, and the chain's first
/// subject.
void play_chain(const Scenario& scenario) {
  Received received;
  ArrowDeviceArray& array = received.batches.emplace_back().value;
  if (has_queues(scenario.backend)) {
    scenario.played.call("export", FletchingProducerExportArrayBehind, scenario.gate, scenario.name,
                         &received.schema.value, &array);
  } else {
    scenario.played.call("export", FletchingProducerExportArray, scenario.backend, scenario.name,
                         &received.schema.value, &array);
  }
  const void* const event = array.sync_event;
  const std::vector<Link> chain = links(scenario.subject);
  for (const Link& link : chain) {
    if (link.subject == nullptr) scenario.played.wrong(link.name + ": " + link.problem);
    if (scenario.played.is_wrong()) return;
    pass(scenario, *link.subject, received);
  }
  const ArrowArray taken = array.array;
  pass(scenario, scenario.subject, received);
  scenario.played.passed(taken, array.array);
  pass(scenario, *chain.front().subject, received);
  if (array.sync_event != event) scenario.played.wrong("sync_event: expected the exported pointer");
  judge(scenario, received);
}

struct Direction {
  const char* name;
  void (*play)(const Scenario& scenario);
  bool (*is_supported)(const FletchingSubject& subject);
  bool is_control = false;
  bool fails = false;
};

bool has_array(const FletchingSubject& subject) { return subject.array != nullptr; }
bool has_stream(const FletchingSubject& subject) { return subject.device_stream != nullptr; }
bool has_async(const FletchingSubject& subject) { return subject.receive != nullptr; }

constexpr Direction kDirections[] = {
    {"array", play_array, has_array},
    {"array-control", play_array, has_array, true},
    {"stream", play_stream, has_stream},
    {"stream-control", play_stream, has_stream, true},
    {"stream-failure", play_stream, has_stream, false, true},
    {"stream-failure-control", play_stream, has_stream, true, true},
    {"async", play_async, has_async},
    {"async-control", play_async, has_async, true},
    {"async-failure", play_async, has_async, false, true},
    {"async-failure-control", play_async, has_async, true, true},
    {"chain", play_chain, has_array},
};

/// Without queues no read can be too early, and the catalogue groups cover arrays and streams.
bool concerns(const Direction& direction, std::string_view backend) {
  if (has_queues(backend)) return true;
  return direction.play == play_chain || (direction.play == play_async && !direction.is_control);
}

bool can_wait(const FletchingSubject& subject, std::string_view backend) {
  if (subject.is_ready == nullptr || subject.wait_on == nullptr || subject.synchronize == nullptr) {
    return false;
  }
  if (backend == "vulkan") return subject.use_vulkan != nullptr;
  return backend != "ext_dev" || subject.register_waiter != nullptr;
}

const FletchingExtDevEvent* ext_dev(void* event) {
  return static_cast<const FletchingExtDevEvent*>(event);
}

constexpr FletchingWaiter kExtDev{
    [](void*, void* event, std::int64_t, FletchingMessage*) {
      ext_dev(event)->synchronize(ext_dev(event));
      return 0;
    },
    [](void*, void* event, std::int64_t, void* stream, FletchingMessage*) {
      return ext_dev(event)->wait_on(ext_dev(event), static_cast<FletchingExtDevQueue*>(stream));
    },
    [](void*, void* event, std::int64_t, int* ready, FletchingMessage*) {
      *ready = ext_dev(event)->query(ext_dev(event));
      return 0;
    },
    nullptr};

/// Gives the subject the waiter or handles that it needs in addition to a stream.
void prepare(Case& played, const FletchingSubject& subject, std::string_view backend) {
  if (backend == "ext_dev") {
    must(played, subject, subject.register_waiter, ArrowDeviceType{ARROW_DEVICE_EXT_DEV}, &kExtDev);
  }
  if (backend == "vulkan") {
    FletchingProducerVulkan handles{};
    played.call("handles", FletchingProducerVulkanHandles, &handles);
    must(played, subject, subject.use_vulkan, handles.device, handles.queue, handles.set_stages,
         reinterpret_cast<void*>(handles.get_device_proc_addr));
  }
}

void play(Case& played, const FletchingSubject& subject, const char* backend, const char* name,
          const Direction& direction) {
  const Account account;
  {
    const Gate gate = has_queues(backend) ? make_gate(played, backend) : nullptr;
    prepare(played, subject, backend);
    if (played.is_wrong()) return;
    direction.play({played, subject, backend, name, direction.is_control,
                    direction.fails ? kFailAt : kNever, gate.get()});
  }
  account.expect_released(played);
}

}  // namespace

void play_devices(Run& run) {
  const bool has_chain = !links(run.subject).empty();
  for (std::int32_t i = 0; const char* backend = FletchingProducerBackendName(i); ++i) {
    const bool is_there = is_present(backend);
    for (const char* name : producer::kDeviceCases) {
      for (const Direction& direction : kDirections) {
        if (!concerns(direction, backend) || (direction.play == play_chain && !has_chain)) continue;
        const std::string full = std::string(backend) + "." + name + "." + direction.name;
        if (!run.begin(full.c_str())) continue;
        Case played(run, full);
        std::string cell = direction.name;
        std::ranges::replace(cell, '-', '_');
        played.is_cell({backend, name, cell});
        if (!direction.is_supported(run.subject) || !can_wait(run.subject, backend)) {
          played.not_supported();
        } else if (!is_there) {
          played.absent();
        } else {
          play(played, run.subject, backend, name, direction);
        }
      }
    }
  }
}

}  // namespace fletching::conformance
