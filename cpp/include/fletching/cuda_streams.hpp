// SPDX-License-Identifier: Apache-2.0
//
// CUDA streams that wait for each other, as the CUDA Array Interface asks for.
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

/// A stream that was named by one thread and is used when something is destroyed, on whatever
/// thread, with whatever device current, and in whatever process that is.
class NamedStream {
 public:
  /// Errors: as of SyncEvent. May throw.
  static Result<NamedStream> make(FletchingStream stream) {
    Status resolved = in_core(&FletchingStreamResolve, &stream);
    if (!resolved) return std::move(resolved).error();
    return NamedStream(stream);
  }

  /// In a child of fork it is the parent's, and nothing of the driver is called.
  [[nodiscard]] bool is_inherited() const noexcept { return process_ != process_id(); }

  [[nodiscard]] const FletchingStream& get() const noexcept { return stream_; }

 private:
  explicit NamedStream(const FletchingStream& stream) noexcept : stream_(stream) {}

  FletchingStream stream_;
  std::int64_t process_ = process_id();
};

/// Destroys a stream of our own, but not the parent's in a child of fork.
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

/// Lets `into` wait for everything that is on `streams` now: who waits for `into` from then on has
/// waited for all of them. Returns while they are still pending.
///
/// The streams are of one device or of several; a default stream that names no device is of
/// `device_id`.
///
/// Errors: EINVAL for a stream of another runtime; as of SyncEvent. Some of the streams may be
/// joined then. Threads: any.
inline Status join_cuda_streams(Stream into, std::span<const Stream> streams,
                                std::int64_t device_id) noexcept {
  return detail::guarded([&]() -> Status {
    Status joined = detail::check_runtime("join_cuda_streams", into, ARROW_DEVICE_CUDA);
    for (const Stream& stream : streams) {
      if (joined) joined = detail::check_runtime("join_cuda_streams", stream, ARROW_DEVICE_CUDA);
      if (!joined) return joined;
      joined = detail::in_core(&FletchingStreamWaitFor, detail::cuda_stream(into, device_id),
                               detail::cuda_stream(stream, device_id));
    }
    return joined;
  });
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_CUDA_STREAMS_HPP
