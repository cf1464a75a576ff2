// SPDX-License-Identifier: Apache-2.0
// The functions that take a stream. Compiled twice: as they are, and with
// CUDA_API_PER_THREAD_DEFAULT_STREAM, where the macros of cuda.h name the _ptsz variants and NULL
// is the calling thread's default stream.
#include "face.hpp"

using namespace fletching::standin;
using namespace fletching::standin::cuda;
using fletching::standin::engine;

namespace {

#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
constexpr DefaultStream kNullMeans = DefaultStream::kPerThread;
#else
constexpr DefaultStream kNullMeans = DefaultStream::kLegacy;
#endif

std::shared_ptr<Stream> find(CUstream stream) {
  return fletching::standin::cuda::find(stream, kNullMeans);
}

Condition condition(unsigned int flags) {
  switch (flags & ~static_cast<unsigned int>(CU_STREAM_WAIT_VALUE_FLUSH)) {
    case CU_STREAM_WAIT_VALUE_GEQ:
      return Condition::kGreaterOrEqualSigned;
    case CU_STREAM_WAIT_VALUE_EQ:
      return Condition::kEqual;
    case CU_STREAM_WAIT_VALUE_AND:
      return Condition::kAnd;
    case CU_STREAM_WAIT_VALUE_NOR:
      return Condition::kNor;
    default:
      fail(Status::kInvalidValue);
  }
}

}  // namespace

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuStreamGetCtx(CUstream stream, CUcontext* context) {
  return driver(__func__, [&] {
    require(context != nullptr, Status::kInvalidValue);
    const auto found = engine().stream(stream, kNullMeans, current());
    engine().captures.refuse_invalidated(*found);
    *context = static_cast<CUcontext>(engine().handle_of(found->context()));
  });
}

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuStreamWaitEvent(CUstream stream, CUevent event,
                                                            unsigned int flags) {
  return driver(__func__, [&] {
    require(flags == CU_EVENT_WAIT_DEFAULT || flags == CU_EVENT_WAIT_EXTERNAL,
            Status::kInvalidValue);
    engine().wait_on(*find(stream), event, flags == CU_EVENT_WAIT_EXTERNAL);
  });
}

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuEventRecord(CUevent event, CUstream stream) {
  return driver(__func__, [&] { engine().record(event, *find(stream), false); });
}

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuEventRecordWithFlags(CUevent event, CUstream stream,
                                                                 unsigned int flags) {
  return driver(__func__, [&] {
    require(flags == CU_EVENT_RECORD_DEFAULT || flags == CU_EVENT_RECORD_EXTERNAL,
            Status::kInvalidValue);
    engine().record(event, *find(stream), flags == CU_EVENT_RECORD_EXTERNAL);
  });
}

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuStreamIsCapturing(CUstream stream,
                                                              CUstreamCaptureStatus* status) {
  return driver(__func__, [&] {
    const auto found = engine().stream(stream, kNullMeans, current());
    store(status, static_cast<CUstreamCaptureStatus>(engine().captures.status(*found)));
  });
}

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuStreamSynchronize(CUstream stream) {
  return driver(__func__, [&] { engine().synchronize(*find(stream)); });
}

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuStreamQuery(CUstream stream) {
  return driver(__func__, [&] { engine().query(*find(stream)); });
}

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuStreamWaitValue32(CUstream stream, CUdeviceptr address,
                                                              cuuint32_t value,
                                                              unsigned int flags) {
  return driver(__func__, [&] {
    engine().wait_value(*find(stream), {address, value, ~std::uint32_t{0}, condition(flags)});
  });
}

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from,
                                                        size_t size, CUstream stream) {
  return driver(__func__, [&] { engine().copy(*find(stream), to, from, size); });
}

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuMemcpyHtoDAsync(CUdeviceptr to, const void* from,
                                                            size_t size, CUstream stream) {
  return driver(__func__, [&] {
    require(size == 0 || engine().memory.find(to), Status::kInvalidValue);
    engine().copy(*find(stream), to, reinterpret_cast<CUdeviceptr>(from), size);
  });
}

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuMemcpyDtoHAsync(void* to, CUdeviceptr from, size_t size,
                                                            CUstream stream) {
  return driver(__func__, [&] {
    require(size == 0 || engine().memory.find(from), Status::kInvalidValue);
    engine().copy(*find(stream), reinterpret_cast<CUdeviceptr>(to), from, size);
  });
}

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuMemsetD8Async(CUdeviceptr to, unsigned char value,
                                                          size_t size, CUstream stream) {
  return driver(__func__, [&] { engine().fill(*find(stream), to, value, size); });
}

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuLaunchKernel(CUfunction function, unsigned int grid_x,
                                                         unsigned int grid_y, unsigned int grid_z,
                                                         unsigned int block_x, unsigned int block_y,
                                                         unsigned int block_z, unsigned int,
                                                         CUstream stream, void** arguments,
                                                         void** extra) {
  return driver(__func__, [&] {
    require(extra == nullptr, Status::kInvalidValue);
    const std::uint64_t threads = threads_of({grid_x, grid_y, grid_z}, {block_x, block_y, block_z});
    engine().launch(function, *find(stream), threads, arguments);
  });
}
