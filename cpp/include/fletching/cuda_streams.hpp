// SPDX-License-Identifier: Apache-2.0
//
// CUDA streams that wait for each other, as the CUDA Array Interface asks for.
#ifndef FLETCHING_CUDA_STREAMS_HPP
#define FLETCHING_CUDA_STREAMS_HPP

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <span>
#include <thread>
#include <utility>

#include "fletching/abi.h"
#include "fletching/detail/capturing.hpp"
#include "fletching/detail/cuda.hpp"
#include "fletching/detail/process.hpp"
#include "fletching/result.hpp"
#include "fletching/runtimes/cuda.hpp"
#include "fletching/sync_event.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {
namespace detail {

/// CUDA's functions, once the driver is initialized.
inline Result<const cuda::Functions*> cuda_driver() {
  Result<const cuda::Functions*> cuda = cuda::functions(Party::kProducer);
  if (!cuda) return cuda;
  Status initialized = cuda_status(**cuda, "cuInit", (*cuda)->cu_init(0));
  if (!initialized) return std::move(initialized).error();
  return cuda;
}

/// Runs `body(functions)`, which returns a Status, in the context of the stream, and in the mode in
/// which no other thread's capture is in its way.
template <class Body>
Status in_stream_context(void* stream, std::int64_t device_id, Body body) {
  Result<const cuda::Functions*> cuda = cuda_driver();
  if (!cuda) return std::move(cuda).error();
  RelaxedCaptures<CudaApi> relaxed(**cuda);
  return within(relaxed, relaxed.enter(), [&] {
    CudaScope scope(**cuda);
    return within(scope, scope.enter_stream(stream, device_id), [&] { return body(**cuda); });
  });
}

/// A stream that was named by one thread and is used when something is destroyed, on whatever
/// thread and in whatever process that is.
class NamedStream {
 public:
  explicit NamedStream(void* handle) noexcept : handle_(handle) {}

  /// In a child of fork it is the parent's, and nothing of the driver is called.
  [[nodiscard]] bool is_inherited() const noexcept { return process_ != process_id(); }

  /// On another thread the per-thread default stream is another one. The legacy default stream
  /// waits for every other thread's, and they for it (CUDA driver API, "Stream synchronization
  /// behavior").
  [[nodiscard]] void* handle() const noexcept {
    const bool is_elsewhere =
        handle_ == per_thread_stream() && std::this_thread::get_id() != thread_;
    return is_elsewhere ? legacy_stream() : handle_;
  }

 private:
  void* handle_;
  std::thread::id thread_ = std::this_thread::get_id();
  std::int64_t process_ = process_id();
};

/// Work that is still on the stream continues.
inline Status destroy_cuda_stream(void* stream) {
  return give_back([&](bool& is_tried) {
    return in_stream_context(stream, 0, [&](const cuda::Functions& cuda) {
      is_tried = true;
      return cuda_status(cuda, "cuStreamDestroy",
                         cuda.cu_stream_destroy(static_cast<cuda::CUstream>(stream)));
    });
  });
}

/// Destroys a stream of our own, but not the parent's in a child of fork.
class OwnedStream {
 public:
  explicit OwnedStream(void* handle) noexcept : handle_(handle) {}
  OwnedStream(OwnedStream&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)), process_(other.process_) {}
  OwnedStream(const OwnedStream&) = delete;
  OwnedStream& operator=(const OwnedStream&) = delete;
  OwnedStream& operator=(OwnedStream&&) = delete;
  ~OwnedStream() {
    if (handle_ == nullptr || process_ != process_id()) return;
    static_cast<void>(guarded([&] { return destroy_cuda_stream(handle_); }));
  }

 private:
  void* handle_;
  std::int64_t process_ = process_id();
};

/// A stream that the legacy default stream does not hold up.
inline Result<void*> make_cuda_stream(std::int64_t device_id) {
  cuda::CUstream stream = nullptr;
  Status made = guarded([&] {
    return in_stream_context(nullptr, device_id, [&](const cuda::Functions& cuda) {
      return cuda_status(cuda, "cuStreamCreate",
                         cuda.cu_stream_create(&stream, cuda::kCuStreamNonBlocking));
    });
  });
  if (made) return static_cast<void*>(stream);
  if (stream != nullptr) static_cast<void>(destroy_cuda_stream(stream));
  return std::move(made).error();
}

/// Blocks until the stream has nothing left to do, before something is freed that its work may
/// use. One failure may be left over from earlier work, so that it is tried twice.
inline Status finish_cuda_stream(void* stream, std::int64_t device_id) noexcept {
  const auto attempt = [&] {
    return guarded([&] {
      return in_stream_context(stream, device_id, [&](const cuda::Functions& cuda) {
        return cuda_status(cuda, "cuStreamSynchronize",
                           cuda.cu_stream_synchronize(static_cast<cuda::CUstream>(stream)));
      });
    });
  };
  Status status = attempt();
  return status ? std::move(status) : attempt();
}

/// Whether the stream is known to be captured into a graph.
inline bool is_stream_captured(void* stream, std::int64_t device_id) noexcept {
  const Status status = guarded([&] {
    return in_stream_context(stream, device_id, [&](const cuda::Functions& cuda) -> Status {
      const Result<bool> captured = is_captured<CudaApi>(cuda, stream, OnCapture::kRefuse);
      return captured.ok() ? Status() : captured.error();
    });
  });
  return !status.ok() && status.error().code() == EBUSY;
}

/// Lets each of `into` wait for what is on `stream` now. Some of them may do so after an error.
inline Status join_stream(std::span<void* const> into, void* stream, std::int64_t device_id) {
  if (std::ranges::all_of(into, [&](void* one) { return one == stream; })) return {};
  Result<RecordedEvent> recorded = CudaEvents::record(stream, device_id, OnCapture::kRefuse);
  if (!recorded) return std::move(recorded).error();
  const SyncEvent event(ARROW_DEVICE_CUDA, device_id, &recorded->event);
  Status waiting;
  for (void* one : into) {
    if (one != stream && waiting) waiting = event.wait_on(one);
  }
  // The waits keep what they need of the event, which can go at once.
  Status destroyed = CudaEvents::destroy(*recorded);
  return waiting ? std::move(destroyed) : std::move(waiting);
}

}  // namespace detail

/// Lets `into` wait for everything that is on `streams` now: who waits for `into` from then on has
/// waited for all of them. Returns while they are still pending.
///
/// The streams are CUstream or cudaStream_t, of one device or of several; NULL and 1 are the legacy
/// default stream, 2 the per-thread one. `device_id` selects a default stream's context when none
/// is current, see SyncEvent.
///
/// Errors: as of SyncEvent. Some of the streams may be joined then. Threads: any.
inline Status join_cuda_streams(void* into, std::span<void* const> streams,
                                std::int64_t device_id) noexcept {
  return detail::guarded([&]() -> Status {
    for (void* stream : streams) {
      Status joined = detail::join_stream({&into, 1}, stream, device_id);
      if (!joined) return joined;
    }
    return {};
  });
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_CUDA_STREAMS_HPP
