// SPDX-License-Identifier: Apache-2.0
//
// Checks that the subject waits for the event of an array whose data is written when the suite
// opens a gate (cpp/producer/gate.h). Each case has a negative control.
#include <array>
#include <thread>

#include "fletching/events.h"
#include "gated.hpp"
#include "producer.h"
#include "waits.hpp"

namespace fletching::conformance {
namespace {

// vulkan and ext_dev need more than a stream for a wait.
constexpr std::array kBackends{"cuda", "cuda_host", "cuda_managed", "rocm", "rocm_host", "opencl"};
constexpr const char* kCase = "record_batch";

/// An array behind a shut gate, and queues that read it.
class Scenario {
 public:
  Scenario(Case& played, const char* backend) : played_(played), backend_(backend) {
    gate_ = make_gate(played_, backend);
    played_.call("export", FletchingProducerExportArrayBehind, gate_.get(), kCase, &schema_.value,
                 &array_.value);
  }
  Scenario(const Scenario&) = delete;
  Scenario& operator=(const Scenario&) = delete;
  ~Scenario() { open(); }

  [[nodiscard]] ArrowDeviceArray* array() noexcept { return &array_.value; }

  Queue make_queue() { return fletching::conformance::make_queue(played_, backend_); }
  void open() { played_.call("opening the gate", FletchingProducerGateOpen, gate_.get()); }
  void read(const Queue& queue) {
    played_.call("read", FletchingProducerQueueRead, queue.get(), kCase, &array_.value);
  }
  void verify(const char* what, const Queue& queue, std::int32_t expected) {
    fletching::conformance::verify(played_, what, queue, expected);
  }
  /// Negative control: a queue that does not wait must see the old data. While it completes, an
  /// earlier read that does not wait would complete too.
  void control() {
    const Queue unwaited = make_queue();
    read(unwaited);
    verify("the queue that does not wait", unwaited, FLETCHING_PRODUCER_OLD);
  }
  void expect_blocked(const Queue& queue) {
    if (is_idle(played_, queue)) {
      played_.wrong("expected a stream that waits for the event, got an idle one");
    }
  }

 private:
  Case& played_;
  const char* backend_;
  Gate gate_;
  Held<ArrowSchema> schema_;
  Held<ArrowDeviceArray> array_;
};

void play_wait_on(Case& played, const FletchingSubject& subject, const char* backend) {
  Scenario scenario(played, backend);
  const Queue queue = scenario.make_queue();
  must(played, subject, subject.wait_on, scenario.array(), handle(queue));
  scenario.read(queue);
  scenario.control();
  scenario.expect_blocked(queue);
  scenario.open();
  scenario.verify("the stream that waits", queue, FLETCHING_PRODUCER_NEW);
}

void play_is_ready(Case& played, const FletchingSubject& subject, const char* backend) {
  Scenario scenario(played, backend);
  std::int32_t ready = -1;
  must(played, subject, subject.is_ready, scenario.array(), &ready);
  if (ready != 0) played.wrong("shut gate: expected 0, got " + std::to_string(ready));
  scenario.open();
  played.call("wait", FletchingDeviceArraySynchronize, scenario.array());
  must(played, subject, subject.is_ready, scenario.array(), &ready);
  if (ready != 1) played.wrong("open gate: expected 1, got " + std::to_string(ready));
}

void play_synchronize(Case& played, const FletchingSubject& subject, const char* backend) {
  Scenario scenario(played, backend);
  scenario.control();
  bool is_early = false;
  call_behind_gate(
      other_threads(), [&] { must(played, subject, subject.synchronize, scenario.array()); },
      [&](bool has_returned) {
        is_early = has_returned;
        scenario.open();
      });
  if (is_early) played.wrong("expected a wait until the gate opens, got a return before");
  const Queue queue = scenario.make_queue();
  scenario.read(queue);
  scenario.verify("after the wait", queue, FLETCHING_PRODUCER_NEW);
}

/// The gate blocks the work on the subject's stream, and so the event that it records.
void play_export(Case& played, const FletchingSubject& subject, const char* backend) {
  Scenario scenario(played, backend);
  const Queue work = scenario.make_queue();
  const Queue queue = scenario.make_queue();
  must(played, subject, subject.wait_on, scenario.array(), handle(work));
  scenario.array()->sync_event = nullptr;  // its wait is already on the stream
  must(played, subject, subject.export_with_event, scenario.array(), handle(work));
  const FletchingStream waiting{handle(queue), -1, nullptr, 0};
  played.call("wait of a consumer", FletchingDeviceArrayWaitOn, scenario.array(), waiting,
              FLETCHING_CAPTURE_REFUSE);
  scenario.read(queue);
  scenario.control();
  scenario.expect_blocked(queue);
  scenario.open();
  scenario.verify("the stream of a consumer", queue, FLETCHING_PRODUCER_NEW);
}

std::int64_t live_arrays() {
  FletchingProducerCounters counters{};
  FletchingProducerReadCounters(&counters);
  return counters.live_arrays;
}

void play_release_after(Case& played, const FletchingSubject& subject, const char* backend) {
  const std::int64_t others = live_arrays();
  Scenario scenario(played, backend);
  const std::int64_t all = live_arrays();
  const Queue queue = scenario.make_queue();
  must(played, subject, subject.wait_on, scenario.array(), handle(queue));
  scenario.read(queue);
  const Threads idle = other_threads();
  must(played, subject, subject.release_after, scenario.array(), handle(queue));
  await_rest(idle);
  if (live_arrays() != all) played.wrong("expected no release before the stream is done");
  if (scenario.array()->array.release != nullptr)
    played.wrong("expected an array that is moved in");
  scenario.open();
  scenario.verify("the stream that reads", queue, FLETCHING_PRODUCER_NEW);
  // If the array is never released, the run is reported as hanging.
  while (!played.is_wrong() && live_arrays() != others) std::this_thread::yield();
}

struct Operation {
  const char* name;
  bool (*is_supported)(const FletchingSubject& subject);
  void (*play)(Case& played, const FletchingSubject& subject, const char* backend);
};

constexpr Operation kOperations[] = {
    {"wait-on", [](const FletchingSubject& s) { return s.wait_on != nullptr; }, play_wait_on},
    {"is-ready", [](const FletchingSubject& s) { return s.is_ready != nullptr; }, play_is_ready},
    {"synchronize", [](const FletchingSubject& s) { return s.synchronize != nullptr; },
     play_synchronize},
    {"export-with-event",
     [](const FletchingSubject& s) {
       return s.wait_on != nullptr && s.export_with_event != nullptr;
     },
     play_export},
    {"release-after",
     [](const FletchingSubject& s) { return s.wait_on != nullptr && s.release_after != nullptr; },
     play_release_after},
};

}  // namespace

void play_events(Run& run) {
  for (const char* backend : kBackends) {
    for (const Operation& operation : kOperations) {
      const std::string name = std::string(backend) + "." + operation.name;
      if (!run.begin(name.c_str())) continue;
      Case played(run, name);
      if (!operation.is_supported(run.subject)) {
        played.not_supported();
      } else if (!is_present(backend)) {
        played.absent();
      } else {
        operation.play(played, run.subject, backend);
      }
    }
  }
}

}  // namespace fletching::conformance
