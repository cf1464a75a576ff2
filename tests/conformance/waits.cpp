// SPDX-License-Identifier: Apache-2.0
#include "waits.hpp"

#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <fstream>

namespace fletching::conformance {
namespace {

constexpr const char* kRule = "sync-event.waited-before-access";
constexpr int kLooks = 20;
constexpr useconds_t kPause = 500;  // microseconds between looks, to leave the processor idle
constexpr double kMostSeconds = 1;  // of processor time
constexpr int kMostRests = 50;      // for a release on another thread

double seconds(clockid_t clock) noexcept {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

/// Processor time of the other threads.
double others_seconds() noexcept {
  return seconds(CLOCK_PROCESS_CPUTIME_ID) - seconds(CLOCK_THREAD_CPUTIME_ID);
}

bool others_sleep() noexcept {
  const std::string own = std::to_string(gettid());
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", error)) {
    if (task.path().filename() == own) continue;
    std::string text;
    std::getline(std::ifstream(task.path() / "stat"), text);
    // The state follows the name, which may contain parentheses.
    const std::size_t end = text.rfind(") ");
    if (end != std::string::npos && (text[end + 2] == 'R' || text[end + 2] == 'D')) return false;
  }
  return true;
}

}  // namespace

void await_rest() noexcept {
  const double begin = others_seconds();
  for (int asleep = 0; asleep < kLooks && others_seconds() - begin < kMostSeconds;) {
    asleep = others_sleep() ? asleep + 1 : 0;
    usleep(kPause);
  }
}

WaitTrial::WaitTrial(Case& played, const char* backend)
    : played_(played),
      gate_(make_gate(played, backend)),
      is_watched_(FletchingProducerGateWatch(gate(), nullptr) == 0) {}

void WaitTrial::count_accesses() {
  if (!is_watched_) return;
  played_.call("accesses", FletchingProducerGateAccesses, gate(), &before_, &after_);
}

const char* WaitTrial::judge() {
  count_accesses();  // waits for the event
  await_rest();      // work behind it may still read
  count_accesses();
  if (before_ > 0) {
    report(played_, kRule, "error", "consumer",
           "the data was read while sync_event was pending: expected a wait before the first read");
    return "reads early";
  }
  if (code_ != 0) return "refuses";
  for (int i = 0; i < kMostRests && !account_.problem().empty(); ++i) await_rest();
  if (const std::string problem = account_.problem(); !problem.empty() && !played_.is_wrong()) {
    report(played_, kAccount, "error", "consumer", problem);
  }
  if (after_ > 0 || is_blocked_) return "waits";
  if (!is_watched_) return "unknown";
  report(played_, kRule, "note", "consumer",
         std::string("the function returned 0 while sync_event was pending, read nothing, and ") +
             (is_released_ ? "released the data before" : "kept the data until after") +
             " the event: expected a wait, unless it needs no data");
  return "ignores the event";
}

}  // namespace fletching::conformance
