// SPDX-License-Identifier: Apache-2.0
#include "waits.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace fletching::conformance {
namespace {

constexpr const char* kRule = "sync-event.waited-before-access";
constexpr int kLooks = 20;
constexpr int kMostSleeps = 400;       // looks at threads that sleep: 0.2 seconds or longer
constexpr useconds_t kPause = 500;     // microseconds between looks, to leave the processor idle
constexpr double kMostSeconds = 1;     // of processor time
constexpr double kMostPerLook = 0.01;  // more is a pause of the machine
constexpr int kMostRests = 50;         // for a release on another thread

double seconds(clockid_t clock) noexcept {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

/// Processor time of the other threads.
double others_seconds() noexcept {
  return seconds(CLOCK_PROCESS_CPUTIME_ID) - seconds(CLOCK_THREAD_CPUTIME_ID);
}

std::string first_line(const std::filesystem::path& file) {
  std::string text;
  std::getline(std::ifstream(file), text);
  return text;
}

/// The state follows the name, which may contain parentheses.
bool runs(const std::filesystem::path& task) {
  const std::string text = first_line(task / "stat");
  const std::size_t end = text.rfind(") ");
  return end != std::string::npos && (text[end + 2] == 'R' || text[end + 2] == 'D');
}

/// Whether a thread that sleeps waits for another thread, not for a time or another process.
bool waits_for_thread(const std::filesystem::path& task) {
  std::istringstream text(first_line(task / "syscall"));
  std::string number, address, operation, value, timeout;
  text >> number >> address >> operation >> value >> timeout;
  return number == std::to_string(SYS_futex) && timeout == "0x0";
}

/// Returns false if not all threads were seen.
template <class Look>
bool each_other_thread(const Look& look) {
  const std::string own = std::to_string(gettid());
  std::error_code error;
  std::filesystem::directory_iterator task("/proc/self/task", error);
  for (; !error && task != std::filesystem::directory_iterator(); task.increment(error)) {
    if (task->path().filename() != own) look(task->path());
  }
  return !error;
}

enum class Rest { kRuns, kSleeps, kWaits };

Rest rest_of_others(const Threads& idle) {
  Rest rest = Rest::kWaits;
  const bool is_whole = each_other_thread([&](const std::filesystem::path& task) {
    if (runs(task)) {
      rest = Rest::kRuns;
    } else if (rest == Rest::kWaits && !idle.contains(task.filename()) && !waits_for_thread(task)) {
      rest = Rest::kSleeps;
    }
  });
  return is_whole ? rest : Rest::kSleeps;
}

}  // namespace

Threads other_threads() {
  Threads threads;
  (void)each_other_thread(
      [&](const std::filesystem::path& task) { threads.insert(task.filename()); });
  return threads;
}

void await_rest(const Threads& idle) {
  double before = others_seconds();
  double computed = 0;
  int sleeps = 0;
  for (int looks = 0; looks < kLooks && computed < kMostSeconds;) {
    const double now = others_seconds();
    computed += (std::min)(now - before, kMostPerLook);
    before = now;
    const Rest rest = rest_of_others(idle);
    if (rest == Rest::kSleeps) ++sleeps;
    const bool is_at_rest = rest == Rest::kWaits || (rest == Rest::kSleeps && sleeps > kMostSleeps);
    looks = is_at_rest ? looks + 1 : 0;
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

bool WaitTrial::reads_early() {
  count_accesses();   // waits for the event
  await_rest(idle_);  // work behind it may still read
  // A release that came later would count as one of the next trial.
  for (int i = 0; i < kMostRests && !account_.problem().empty(); ++i) await_rest(idle_);
  count_accesses();
  if (before_ != 0) {
    report(played_, kRule, "error", "consumer",
           "the data was read while sync_event was pending: expected a wait before the first read");
  } else if (const std::string problem = account_.problem();
             !problem.empty() && !played_.is_wrong()) {
    report(played_, kAccount, "error", "consumer", problem);
  }
  return before_ != 0;
}

const char* WaitTrial::judge() {
  if (reads_early()) return "reads early";
  if (code_ != 0) return "refuses";
  if (after_ > 0 || is_blocked_) return "waits";
  if (!is_watched_) return "unknown";
  report(played_, kRule, "note", "consumer",
         std::string("the function returned 0 while sync_event was pending, read nothing, and ") +
             (is_released_ ? "released the data before" : "kept the data until after") +
             " the event: expected a wait, unless it needs no data");
  return "ignores the event";
}

}  // namespace fletching::conformance
