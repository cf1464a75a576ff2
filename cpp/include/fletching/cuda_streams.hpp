// SPDX-License-Identifier: Apache-2.0
//
// CUDA streams that wait for each other, as the CUDA Array Interface asks for.
#ifndef FLETCHING_CUDA_STREAMS_HPP
#define FLETCHING_CUDA_STREAMS_HPP

#include <cstdint>
#include <span>
#include <utility>

#include "fletching/abi.h"
#include "fletching/detail/cuda.hpp"
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

/// Runs `body(functions)`, which returns a Status, in the context of the stream.
template <class Body>
Status in_stream_context(void* stream, std::int64_t device_id, Body body) {
  Result<const cuda::Functions*> cuda = cuda_driver();
  if (!cuda) return std::move(cuda).error();
  CudaScope scope(**cuda);
  Status status = scope.enter_stream(stream, device_id);
  if (status) status = body(**cuda);
  return first_error(std::move(status), scope.leave());
}

/// Work that is still on the stream goes on.
inline Status destroy_cuda_stream(void* stream) {
  return give_back([&](bool& is_tried) {
    return in_stream_context(stream, 0, [&](const cuda::Functions& cuda) {
      is_tried = true;
      return cuda_status(cuda, "cuStreamDestroy",
                         cuda.cu_stream_destroy(static_cast<cuda::CUstream>(stream)));
    });
  });
}

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

/// Blocks until the stream has nothing left to do, before something is given back that its work may
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

/// Lets `into` wait for what is on `stream` now.
inline Status join_stream(void* into, void* stream, std::int64_t device_id) {
  if (into == stream) return {};
  Result<RecordedEvent> recorded = CudaEvents::record(stream, device_id, OnCapture::kRefuse);
  if (!recorded) return std::move(recorded).error();
  // The wait keeps what it needs of the event, which can go at once.
  Status waiting = SyncEvent(ARROW_DEVICE_CUDA, device_id, &recorded->event).wait_on(into);
  Status destroyed = CudaEvents::destroy(*recorded);
  return waiting ? std::move(destroyed) : std::move(waiting);
}

}  // namespace detail

/// Lets `into` wait for everything that is on `streams` now: who waits for `into` from then on has
/// waited for all of them. Returns while they are still pending.
///
/// The streams are CUstream or cudaStream_t, of one device or of several; NULL and 1 are the legacy
/// default stream, 2 the per-thread one. `device_id` is where a default stream's context comes from
/// when none is current, see SyncEvent.
///
/// Errors: as of SyncEvent. Some of the streams may be joined then. Threads: any.
inline Status join_cuda_streams(void* into, std::span<void* const> streams,
                                std::int64_t device_id) noexcept {
  return detail::guarded([&]() -> Status {
    for (void* stream : streams) {
      Status joined = detail::join_stream(into, stream, device_id);
      if (!joined) return joined;
    }
    return {};
  });
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_CUDA_STREAMS_HPP
