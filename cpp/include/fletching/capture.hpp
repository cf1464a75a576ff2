// SPDX-License-Identifier: Apache-2.0
//
// Behavior on a stream that is being captured into a CUDA or HIP graph.
#ifndef FLETCHING_CAPTURE_HPP
#define FLETCHING_CAPTURE_HPP

#include <cstdint>

#include "fletching/version.h"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {

/// The behavior of an operation on a stream that is being captured into a CUDA or HIP graph. It has
/// no effect on other streams and with other runtimes.
enum class OnCapture : std::uint8_t {
  /// Returns EBUSY before any call that would invalidate the capture.
  kRefuse,
  /// The graph records the event, or waits for it, each time it is launched. The graph does not
  /// keep the event alive: do not release the array before the graph and everything instantiated
  /// from it are destroyed. Until the first launch, an event that the graph records counts as
  /// completed: do not pass the array on before. ENOTSUP for a runtime without external events:
  /// CUDA supports them from 11.1, ROCm from 7.0.
  kExternalEvent,
  /// For release_after and an array that the graph does not read: keeps the array until the capture
  /// has ended and the current work on the stream is done. The stream must live until then. An
  /// array that the graph reads must outlive the graph, because the graph may be launched later.
  /// Other operations behave as with kRefuse.
  kKeep,
};

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_CAPTURE_HPP
