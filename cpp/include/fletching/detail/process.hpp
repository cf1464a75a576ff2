// SPDX-License-Identifier: Apache-2.0
//
// The process, and what must not be done in a child of fork: threads and the vendors' runtimes do
// not survive it.
#ifndef FLETCHING_DETAIL_PROCESS_HPP
#define FLETCHING_DETAIL_PROCESS_HPP

#include <atomic>
#include <cstdint>

#if !defined(_WIN32)
#include <unistd.h>
#endif

#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

/// A number that is another one in a child of fork.
inline std::int64_t process_id() noexcept {
#if defined(_WIN32)
  return 0;  // there is no fork
#else
  return ::getpid();
#endif
}

/// How many events this process has inherited by fork and left alone when their arrays were
/// released.
FLETCHING_DETAIL_LOCAL inline std::atomic<std::int64_t>& inherited_events() noexcept {
  static std::atomic<std::int64_t> count{0};
  return count;
}

/// Counts one, and warns of the first on stderr.
inline void leave_inherited_event() noexcept {
  if (inherited_events().fetch_add(1) != 0) return;
#if !defined(_WIN32)
  // Nothing of stdio: its lock may be held by a thread that the child does not have.
  static constexpr char kWarning[] =
      "fletching: warning: release in a child of fork: the event is not destroyed, because the "
      "vendor's runtime does not survive a fork (printed once, and counted)\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kWarning, sizeof kWarning - 1);
#endif
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_DETAIL_PROCESS_HPP
