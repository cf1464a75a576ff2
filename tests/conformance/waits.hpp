// SPDX-License-Identifier: Apache-2.0
//
// Whether a plain function waits for sync_event: it gets data behind a gate that opens when the
// function has returned, or can do nothing more before the event.
#ifndef FLETCHING_TESTS_CONFORMANCE_WAITS_HPP
#define FLETCHING_TESTS_CONFORMANCE_WAITS_HPP

#include <array>
#include <atomic>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <thread>

#include "gated.hpp"
#include "roles.hpp"

namespace fletching::conformance {

/// The devices with events of a vendor's runtime.
inline constexpr std::array kWaitDevices{"cuda",      "cuda_host", "cuda_managed", "rocm",
                                         "rocm_host", "opencl",    "vulkan"};

/// Names in /proc/self/task.
using Threads = std::set<std::string>;
Threads other_threads();

/// Returns when all other threads of the process wait for one another, and those in `idle` sleep.
/// Also returns after they have computed for a second or slept for 0.2 seconds, because a loop that
/// queries an event does neither.
void await_rest(const Threads& idle);

/// Makes the call on this thread. When the others are at rest, another thread calls `open` with
/// whether the call has returned.
template <class Call, class Open>
void call_behind_gate(const Threads& idle, const Call& call, const Open& open) {
  std::atomic<bool> has_returned = false;
  std::jthread opener([&] {
    await_rest(idle);
    open(has_returned.load());
  });
  call();
  has_returned = true;
}

/// One call of the function with data behind a shut gate, whose buffers are watched if the device
/// allows it.
class WaitTrial {
 public:
  WaitTrial(Case& played, const char* backend);
  WaitTrial(const WaitTrial&) = delete;
  WaitTrial& operator=(const WaitTrial&) = delete;

  [[nodiscard]] FletchingProducerGate* gate() const noexcept { return gate_.get(); }

  /// Makes the call on this thread, while another thread opens the gate. `call` returns the result
  /// of the function.
  template <class Call>
  void run(const Call& call) {
    idle_ = other_threads();
    call_behind_gate(
        idle_, [&] { code_ = call(); },
        [&](bool has_returned) {
          is_blocked_ = !has_returned;
          is_released_ = account_.problem().empty();
          (void)FletchingProducerGateOpen(gate(), nullptr);
        });
  }
  /// Call it when the structs are released. Reports a read before the event, or else a missing
  /// release.
  bool reads_early();
  /// Like reads_early, also reports an ignored event. Returns "waits", "reads early", "refuses",
  /// "ignores the event" or, if the reads are not watched, "unknown".
  const char* judge();

 private:
  void count_accesses();

  Case& played_;
  Account account_;
  Gate gate_;
  Threads idle_;  // before the call
  bool is_watched_;
  bool is_blocked_ = false;   // when the gate was opened
  bool is_released_ = false;  // when the gate was opened
  std::int32_t before_ = 0;
  std::int32_t after_ = 0;
  int code_ = 0;
};

/// Plays a case for each device. `trial(played, backend)` returns the verdict.
template <class Trial>
void play_waits(Run& run, const Trial& trial) {
  for (const char* backend : kWaitDevices) {
    play_case(run, std::string("wait.") + backend, [&](Case& played) {
      std::int32_t presence = FLETCHING_PRODUCER_ABSENT;
      FletchingMessage about{};
      (void)FletchingProducerBackendPresence(backend, &presence, &about);
      const bool is_there = presence != FLETCHING_PRODUCER_ABSENT;
      const char* const verdict = is_there ? trial(played, backend) : "absent";
      if (!is_there) played.absent();
      const bool is_refused = std::string_view(verdict) == "refuses" && !played.is_wrong();
      if (is_refused) played.not_supported();
      played.describe(verdict, about.text);
    });
  }
}

}  // namespace fletching::conformance

#endif  // FLETCHING_TESTS_CONFORMANCE_WAITS_HPP
