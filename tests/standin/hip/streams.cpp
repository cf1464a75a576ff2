// SPDX-License-Identifier: Apache-2.0
// The functions with a variant for per-thread default streams. Compiled twice: as they are, and
// with HIP_API_PER_THREAD_DEFAULT_STREAM, where the macros of HIP's header name the _spt variants.
#include "face.hpp"

using namespace fletching::standin;
using namespace fletching::standin::hip;
using fletching::standin::engine;

namespace {

#ifdef HIP_API_PER_THREAD_DEFAULT_STREAM
constexpr DefaultStream kNullMeans = DefaultStream::kPerThread;
#else
constexpr DefaultStream kNullMeans = DefaultStream::kLegacy;
#endif

}  // namespace

FLETCHING_STANDIN_EXPORT hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event,
                                                       unsigned int flags) {
  return runtime(__func__, [&] {
    require(flags == 0 || flags == kExternal, Status::kInvalidValue);
    engine().wait_on(*find(stream, kNullMeans), event, flags == kExternal);
  });
}

FLETCHING_STANDIN_EXPORT hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream) {
  return runtime(__func__, [&] { engine().record(event, *find(stream, kNullMeans), false); });
}

FLETCHING_STANDIN_EXPORT hipError_t hipStreamSynchronize(hipStream_t stream) {
  return runtime(__func__, [&] { engine().synchronize(*find(stream, kNullMeans)); });
}

FLETCHING_STANDIN_EXPORT hipError_t hipStreamQuery(hipStream_t stream) {
  return runtime(__func__, [&] { engine().query(*find(stream, kNullMeans)); });
}

FLETCHING_STANDIN_EXPORT hipError_t hipMemcpyAsync(void* to, const void* from, size_t size,
                                                   hipMemcpyKind kind, hipStream_t stream) {
  return runtime(__func__, [&] {
    require(kind >= hipMemcpyHostToHost && kind <= hipMemcpyDefault, Status::kInvalidValue);
    engine().copy(*find(stream, kNullMeans), address(to), address(from), size);
  });
}
