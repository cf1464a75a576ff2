#include "watch.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <string>

#include "message.hpp"

#if defined(__linux__)
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

namespace fletching::producer {
namespace {

enum class Seen { kNot, kBefore, kAfter };

struct Range {
  std::atomic<uintptr_t> begin{0};
  size_t bytes = 0;
  std::atomic<Seen> seen{Seen::kNot};
};

// Read by the signal handler, which may run on any thread.
std::array<Range, 1024> g_ranges;
std::atomic<size_t> g_count{0};
std::atomic<bool> g_is_open{false};
std::atomic<bool> g_is_used{false};
struct sigaction g_earlier;

bool allow(const Range& range) noexcept {
  void* begin = reinterpret_cast<void*>(range.begin.load());
  return mprotect(begin, range.bytes, PROT_READ | PROT_WRITE) == 0;
}

// The access is repeated after the return.
void on_fault(int signal, siginfo_t* info, void* context) {
  const int code = errno;
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  for (size_t i = 0; i < g_count; ++i) {
    Range& range = g_ranges[i];
    if (address - range.begin >= range.bytes) continue;
    Seen expected = Seen::kNot;
    range.seen.compare_exchange_strong(expected, g_is_open ? Seen::kAfter : Seen::kBefore);
    if (!allow(range)) break;
    errno = code;
    return;
  }
  if ((g_earlier.sa_flags & SA_SIGINFO) != 0) {
    return g_earlier.sa_sigaction(signal, info, context);
  }
  if (g_earlier.sa_handler != SIG_DFL && g_earlier.sa_handler != SIG_IGN) {
    return g_earlier.sa_handler(signal);
  }
  sigaction(signal, &g_earlier, nullptr);
  if (info->si_code <= 0) raise(signal);  // sent by a process, so the access is not repeated
}

int32_t count(Seen seen) noexcept {
  const auto end = g_ranges.begin() + static_cast<std::ptrdiff_t>(g_count.load());
  return static_cast<int32_t>(
      std::count_if(g_ranges.begin(), end, [&](const Range& each) { return each.seen == seen; }));
}

}  // namespace

Watch::Watch() {
  if (sysconf(_SC_PAGESIZE) != kPageBytes) fail(ENOTSUP, "watch: pages: expected 4096 bytes");
  if (g_is_used.exchange(true)) fail(EBUSY, "watch: in use: expected one watched gate at a time");
  g_is_open = false;
  struct sigaction action{};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;  // Go needs its own stack
  sigaction(SIGSEGV, &action, &g_earlier);
}

Watch::~Watch() {
  for (size_t i = 0; i < g_count; ++i) allow(g_ranges[i]);
  g_count = 0;
  sigaction(SIGSEGV, &g_earlier, nullptr);
  g_is_used = false;
}

void Watch::add(const Pages& pages) {
  const size_t at = g_count;
  if (at == g_ranges.size()) fail(ENOMEM, "watch: too many buffers: expected at most 1024");
  g_ranges[at].begin = reinterpret_cast<uintptr_t>(pages.begin);
  g_ranges[at].bytes = pages.bytes;
  g_ranges[at].seen = Seen::kNot;
  g_count = at + 1;
  if (mprotect(pages.begin, pages.bytes, PROT_NONE) != 0) {
    fail(errno, "watch: mprotect: failed: expected whole pages");
  }
}

void Watch::open() noexcept { g_is_open = true; }

Accesses Watch::accesses() const noexcept { return {count(Seen::kBefore), count(Seen::kAfter)}; }

}  // namespace fletching::producer

#else

namespace fletching::producer {

Watch::Watch() { fail(ENOTSUP, "watch: not available: expected Linux"); }
Watch::~Watch() = default;
void Watch::add(const Pages&) {}
void Watch::open() noexcept {}
Accesses Watch::accesses() const noexcept { return {}; }

}  // namespace fletching::producer
#endif
