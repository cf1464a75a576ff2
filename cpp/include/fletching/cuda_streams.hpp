// SPDX-License-Identifier: Apache-2.0
//
// CUDA streams that wait for each other, as required by the CUDA Array Interface.
#ifndef FLETCHING_CUDA_STREAMS_HPP
#define FLETCHING_CUDA_STREAMS_HPP

#include <cstdint>
#include <span>
#include <utility>

#include "fletching/abi.h"
#include "fletching/cuda.h"
#include "fletching/detail/core.hpp"
#include "fletching/detail/process.hpp"
#include "fletching/device_stream.hpp"
#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {
namespace detail {

inline FletchingStream cuda_stream(const Stream& stream, std::int64_t device_id) noexcept {
  return core_stream(stream, ARROW_DEVICE_CUDA, device_id);
}

/// A stream with its context resolved on creation. It may be used later by a destructor on any
/// thread, with any current device, and in any process.
class NamedStream {
 public:
  /// Errors: as for SyncEvent. May throw.
  static Result<NamedStream> make(FletchingStream stream) {
    Status resolved = in_core(&FletchingStreamResolve, &stream);
    if (!resolved) return std::move(resolved).error();
    return NamedStream(stream);
  }

  /// Whether this is a child of fork. The stream then belongs to the parent, and the driver must
  /// not be called.
  [[nodiscard]] bool is_inherited() const noexcept { return process_ != process_id(); }

  [[nodiscard]] const FletchingStream& get() const noexcept { return stream_; }

 private:
  explicit NamedStream(const FletchingStream& stream) noexcept : stream_(stream) {}

  FletchingStream stream_;
  std::int64_t process_ = process_id();
};

/// Owns a stream and destroys it, except in a child of fork, where it belongs to the parent.
class OwnedStream {
 public:
  explicit OwnedStream(const FletchingStream& stream) noexcept : stream_(stream) {}
  OwnedStream(OwnedStream&& other) noexcept
      : stream_(std::exchange(other.stream_, {})), process_(other.process_) {}
  OwnedStream(const OwnedStream&) = delete;
  OwnedStream& operator=(const OwnedStream&) = delete;
  OwnedStream& operator=(OwnedStream&&) = delete;
  ~OwnedStream() {
    if (stream_.handle == nullptr || process_ != process_id()) return;
    static_cast<void>(FletchingCudaStreamDestroy(stream_, nullptr));
  }

 private:
  FletchingStream stream_;
  std::int64_t process_ = process_id();
};

}  // namespace detail

/// Makes later work on `into` wait for the current work on all `streams`. Does not block.
///
/// The streams may be on different devices. A default stream without a device is on `device_id`.
///
/// Errors: EINVAL for a stream of another runtime; otherwise as for SyncEvent. On error some of the
/// streams may already be joined. Threads: any.
inline Status join_cuda_streams(Stream into, std::span<const Stream> streams,
                                std::int64_t device_id) noexcept {
  return detail::in_operation("join_cuda_streams", [&]() -> Status {
    Status joined = detail::check_runtime(into, ARROW_DEVICE_CUDA);
    for (const Stream& stream : streams) {
      if (joined) joined = detail::check_runtime(stream, ARROW_DEVICE_CUDA);
      if (!joined) return joined;
      joined = detail::in_core(&FletchingStreamWaitFor, detail::cuda_stream(into, device_id),
                               detail::cuda_stream(stream, device_id));
    }
    return joined;
  });
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_CUDA_STREAMS_HPP
