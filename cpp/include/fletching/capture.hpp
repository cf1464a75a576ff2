// SPDX-License-Identifier: Apache-2.0
//
// What happens on a stream that is being captured into a CUDA or HIP graph.
#ifndef FLETCHING_CAPTURE_HPP
#define FLETCHING_CAPTURE_HPP

#include <cstdint>

#include "fletching/version.h"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {

/// What an operation does on a stream that is being captured into a CUDA or HIP graph. On any other
/// stream, and with any other runtime, it makes no difference.
enum class OnCapture : std::uint8_t {
  /// EBUSY, before a call that would invalidate the capture.
  kRefuse,
  /// The graph records the event, or waits for it, each time it is launched. The graph does not
  /// keep the event: the array must not be released before the graph and everything instantiated
  /// from it are destroyed. Before the first launch an event that the graph records counts as done:
  /// do not hand the array on before. ENOTSUP for a runtime without such events: CUDA has them from
  /// 11.1 on, ROCm from 7.0 on.
  kExternalEvent,
};

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_CAPTURE_HPP
