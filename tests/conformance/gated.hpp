// SPDX-License-Identifier: Apache-2.0
//
// The reference producer's gates and a consumer's queues (cpp/producer/gate.h), for use in a case.
#ifndef FLETCHING_TESTS_CONFORMANCE_GATED_HPP
#define FLETCHING_TESTS_CONFORMANCE_GATED_HPP

#include <cstdint>
#include <memory>
#include <string>

#include "gate.h"
#include "producer.h"
#include "run.hpp"

namespace fletching::conformance {

template <auto Function>
struct Destroy {
  void operator()(auto* object) const { Function(object, nullptr); }
};
/// Opened on destruction at the latest.
using Gate = std::unique_ptr<FletchingProducerGate, Destroy<FletchingProducerGateDestroy>>;
/// The destructor waits for the queued work, so the gate must be open, and the arrays that the
/// queue reads must be valid.
using Queue = std::unique_ptr<FletchingProducerQueue, Destroy<FletchingProducerQueueDestroy>>;

inline Gate make_gate(Case& played, const char* backend) {
  FletchingProducerGate* gate = nullptr;
  played.call("gate", FletchingProducerGateCreate, backend, &gate);
  return Gate(gate);
}

inline Queue make_queue(Case& played, const char* backend) {
  FletchingProducerQueue* queue = nullptr;
  played.call("queue", FletchingProducerQueueCreate, backend, &queue);
  return Queue(queue);
}

/// Valid until the next call with the queue.
inline void* handle(const Queue& queue) { return FletchingProducerQueueHandle(queue.get()); }

inline bool is_idle(Case& played, const Queue& queue) {
  std::int32_t idle = 1;
  played.call("query", FletchingProducerQueueIsIdle, queue.get(), &idle);
  return idle != 0;
}

/// Compares the bytes that were read: `expected` is FLETCHING_PRODUCER_OLD or _NEW.
inline void verify(Case& played, const char* what, const Queue& queue, std::int32_t expected) {
  std::int64_t bytes = 0;
  played.call(what, FletchingProducerQueueVerify, queue.get(), expected, &bytes);
  if (bytes == 0) played.wrong("no byte was compared");
}

inline bool is_present(const char* backend) {
  std::int32_t presence = FLETCHING_PRODUCER_ABSENT;
  FletchingMessage message{};
  return FletchingProducerBackendPresence(backend, &presence, &message) == 0 &&
         presence != FLETCHING_PRODUCER_ABSENT;
}

/// Counts the structs that the producer exports and the subject releases during a case.
class Account {
 public:
  Account() noexcept {
    FletchingProducerResetCounters();
    const FletchingProducerCounters counters = read();
    left_ = counters.exported - counters.released;
  }
  /// Returns "" if everything is released, or else the expected and actual number of releases.
  [[nodiscard]] std::string problem() const {
    const FletchingProducerCounters counters = read();
    const std::int64_t expected = counters.exported - left_;
    if (counters.released == expected) return "";
    return "expected " + std::to_string(expected) + " releases, got " +
           std::to_string(counters.released);
  }
  void expect_released(Case& played) const {
    if (const std::string text = problem(); !text.empty()) played.wrong(text);
  }

 private:
  static FletchingProducerCounters read() noexcept {
    FletchingProducerCounters counters{};
    FletchingProducerReadCounters(&counters);
    return counters;
  }

  std::int64_t left_;  // left over from earlier cases
};

/// Calls a function of the subject that must succeed.
template <class Function, class... Arguments>
void must(Case& played, const FletchingSubject& subject, Function function,
          Arguments... arguments) {
  const Answer answer = ask(subject, function, arguments...);
  played.answered(answer, true);
  played.expect_accepted(answer);
}

}  // namespace fletching::conformance

#endif  // FLETCHING_TESTS_CONFORMANCE_GATED_HPP
