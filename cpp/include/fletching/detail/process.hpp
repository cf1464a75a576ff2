// SPDX-License-Identifier: Apache-2.0
//
// Process identity: threads and the vendors' runtimes do not survive a fork.
#ifndef FLETCHING_DETAIL_PROCESS_HPP
#define FLETCHING_DETAIL_PROCESS_HPP

#include <cstdint>

#if !defined(_WIN32) && !defined(__wasi__)
#include <unistd.h>
#endif

#include "fletching/version.h"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

/// Returns a number that differs in a child process after fork.
inline std::int64_t process_id() noexcept {
#if defined(_WIN32) || defined(__wasi__)
  return 0;  // no fork there
#else
  return ::getpid();
#endif
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_DETAIL_PROCESS_HPP
