// SPDX-License-Identifier: Apache-2.0
// Functions that spec/runtimes.yaml does not name: the functions that nanoarrow's CUDA device
// calls, second contexts, captures and graphs, the time between events, and the plain copies of
// tests.
#include "../engine/errors.hpp"
#include "face.hpp"

using namespace fletching::standin;
using namespace fletching::standin::cuda;
using fletching::standin::engine;

namespace {

std::shared_ptr<Stream> find(CUstream stream) {
  return fletching::standin::cuda::find(stream, DefaultStream::kLegacy);
}

// For functions whose documentation does not demand a current context.
std::shared_ptr<Stream> find_any(CUstream stream) {
  return engine().stream(stream, DefaultStream::kLegacy, current());
}

void copy_and_wait(CUdeviceptr to, CUdeviceptr from, size_t size) {
  const auto stream = find(nullptr);
  engine().copy(*stream, to, from, size);
  engine().synchronize(*stream);
}

}  // namespace

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuCtxCreate(CUcontext* context, CUctxCreateParams* params,
                                                      unsigned int, CUdevice device) {
  return driver(__func__, [&] {
    require(context != nullptr && params == nullptr, Status::kInvalidValue);
    void* handle = engine().create_context(device);
    current_contexts().push_back(engine().context(handle));
    *context = static_cast<CUcontext>(handle);
  });
}

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuCtxDestroy(CUcontext context) {
  return driver_freeing(__func__, [&] {
    const auto ended = engine().context(context);
    engine().destroy_context(context);
    auto& contexts = current_contexts();
    if (!contexts.empty() && contexts.back() == ended) contexts.pop_back();
  });
}

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuCtxSetCurrent(CUcontext context) {
  return driver(__func__, [&] {
    auto next = context ? engine().context(context) : nullptr;
    auto& contexts = current_contexts();
    if (!contexts.empty()) contexts.pop_back();
    if (next) contexts.push_back(std::move(next));
  });
}

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuEventElapsedTime(float* milliseconds, CUevent from,
                                                             CUevent to) {
  return driver(__func__, [&] {
    store(milliseconds, engine().elapsed_milliseconds(*engine().event(from), *engine().event(to)));
  });
}

// Accepts size 0 and returns NULL: nanoarrow allocates 0 bytes, and its tests pass on real drivers.
FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuMemAllocHost(void** pointer, size_t size) {
  return driver(__func__, [&] {
    require(pointer != nullptr, Status::kInvalidValue);
    const auto context = require_current();
    const std::uintptr_t made = size == 0 ? 0 : engine().allocate(MemoryKind::kHost, size, context);
    *pointer = reinterpret_cast<void*>(made);
  });
}

// Allocates immediately; the stand-in has no pools.
FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuMemAllocAsync(CUdeviceptr* pointer, size_t size,
                                                          CUstream stream) {
  return driver(__func__, [&] {
    require(pointer != nullptr, Status::kInvalidValue);
    *pointer = engine().memory.allocate(MemoryKind::kDevice, size, find(stream)->context());
  });
}

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from,
                                                            size_t size, CUstream stream) {
  return driver(__func__, [&] {
    require(size == 0 || (engine().memory.find(to) && engine().memory.find(from)),
            Status::kInvalidValue);
    engine().copy(*find(stream), to, from, size);
  });
}

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context,
                                                            CUdeviceptr from,
                                                            CUcontext from_context, size_t size,
                                                            CUstream stream) {
  return driver(__func__, [&] {
    engine().context(to_context)->check();
    engine().context(from_context)->check();
    engine().copy(*find(stream), to, from, size);
  });
}

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuMemcpyHtoD(CUdeviceptr to, const void* from,
                                                       size_t size) {
  return driver(__func__, [&] { copy_and_wait(to, reinterpret_cast<CUdeviceptr>(from), size); });
}

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuMemcpyDtoH(void* to, CUdeviceptr from, size_t size) {
  return driver(__func__, [&] { copy_and_wait(reinterpret_cast<CUdeviceptr>(to), from, size); });
}

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuDevicePrimaryCtxReset(CUdevice device) {
  return driver(__func__, [&] { engine().reset_primary(device); });
}

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuStreamBeginCapture(CUstream stream,
                                                               CUstreamCaptureMode mode) {
  return driver(__func__, [&] {
    const int wanted = number_of(mode);
    require(wanted >= 0 && wanted <= static_cast<int>(CaptureMode::kRelaxed),
            Status::kInvalidValue);
    engine().captures.begin(find_any(stream), static_cast<CaptureMode>(wanted));
  });
}

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  return driver(__func__, [&] {
    store(graph, CUgraph{});
    *graph = static_cast<CUgraph>(engine().end_capture(*find_any(stream)));
  });
}

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuGraphInstantiate(CUgraphExec* executable, CUgraph graph,
                                                             unsigned long long flags) {
  return driver(__func__, [&] {
    require(executable != nullptr && flags == 0, Status::kInvalidValue);
    *executable = static_cast<CUgraphExec>(engine().instantiate(graph));
  });
}

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuGraphLaunch(CUgraphExec executable, CUstream stream) {
  return driver(__func__, [&] { engine().launch(executable, *find_any(stream)); });
}

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuGraphDestroy(CUgraph graph) {
  return driver_freeing(__func__, [&] { engine().destroy_graph(graph); });
}

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuGraphExecDestroy(CUgraphExec executable) {
  return driver_freeing(__func__, [&] { engine().destroy_executable(executable); });
}
