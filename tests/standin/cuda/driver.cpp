// SPDX-License-Identifier: Apache-2.0
// The functions of spec/runtimes.yaml that take no stream. cuda.h declares each of them under the
// name that its macros produce.
#include <atomic>
#include <cstring>
#include <string>
#include <utility>

#include "../engine/errors.hpp"
#include "../engine/mode.hpp"
#include "face.hpp"

using namespace fletching::standin;
using fletching::standin::engine;

namespace fletching::standin::cuda {
namespace {

std::atomic<bool> initialized = false;

}  // namespace

void require_initialized() { require(initialized, Status::kNotInitialized); }

std::shared_ptr<Context> current() {
  const auto& contexts = current_contexts();
  return contexts.empty() ? nullptr : contexts.back();
}

std::shared_ptr<Context> require_current() {
  std::shared_ptr<Context> top = current();
  require(top != nullptr, Status::kInvalidContext);
  top->check();
  return top;
}

void require_some_context() {
  if (!as_driver()) require(current() != nullptr, Status::kInvalidContext);
}

std::shared_ptr<Stream> find(CUstream stream, DefaultStream null_means) {
  require_some_context();
  return engine().stream(stream, null_means, current());
}

}  // namespace fletching::standin::cuda

using namespace fletching::standin::cuda;

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuInit(unsigned int flags) {
  return static_cast<CUresult>(call(__func__, [&] {
    require(flags == 0, Status::kInvalidValue);
    require(engine().device_count() > 0, Status::kNoDevice);
    initialized = true;
  }));
}

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuDriverGetVersion(int* version) {
  return static_cast<CUresult>(call(__func__, [&] { store(version, CUDA_VERSION); }));
}

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuDeviceGetCount(int* count) {
  return driver(__func__, [&] { store(count, engine().device_count()); });
}

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuDeviceGet(CUdevice* device, int ordinal) {
  return driver(__func__, [&] {
    engine().check_device(ordinal);
    store(device, ordinal);
  });
}

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuDeviceGetName(char* name, int size, CUdevice device) {
  return driver(__func__, [&] {
    require(name != nullptr && size > 0, Status::kInvalidValue);
    engine().check_device(device);
    const std::string text = device_name(device);
    const auto length = std::min(text.size(), static_cast<std::size_t>(size) - 1);
    std::memcpy(name, text.data(), length);
    name[length] = '\0';
  });
}

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuDeviceGetAttribute(int* value,
                                                               CUdevice_attribute attribute,
                                                               CUdevice device) {
  return driver(__func__, [&] {
    engine().check_device(device);
    switch (attribute) {
      case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        return store(value, 0);  // no real device has 0.0
      case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
      case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
      case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
      case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
        return store(value, 1);
      default:
        fail(Status::kInvalidValue);
    }
  });
}

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuDevicePrimaryCtxGetState(CUdevice device,
                                                                     unsigned int* flags,
                                                                     int* active) {
  return driver(__func__, [&] {
    const bool is_active = engine().primary_active(device);
    store(flags, 0U);
    store(active, is_active ? 1 : 0);
  });
}

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext* context,
                                                                   CUdevice device) {
  return driver(__func__, [&] {
    require(context != nullptr, Status::kInvalidValue);
    *context = static_cast<CUcontext>(engine().handle_of(engine().retain_primary(device)));
  });
}

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice device) {
  return driver_freeing(__func__, [&] { engine().release_primary(device); });
}

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuCtxGetCurrent(CUcontext* context) {
  return driver(__func__, [&] {
    const auto top = current();
    store(context, top ? static_cast<CUcontext>(engine().handle_of(top)) : nullptr);
  });
}

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuCtxPushCurrent(CUcontext context) {
  return driver(__func__, [&] { current_contexts().push_back(engine().context(context)); });
}

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuCtxPopCurrent(CUcontext* context) {
  return driver_freeing(__func__, [&] {
    auto& contexts = current_contexts();
    require(!contexts.empty(), Status::kInvalidContext);
    if (context) *context = static_cast<CUcontext>(engine().handle_of(contexts.back()));
    contexts.pop_back();
  });
}

// A real driver may crash on a destroyed context; if it does not, it returns an error.
FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuCtxGetId(CUcontext context, unsigned long long* id) {
  return driver(__func__, [&] {
    const auto found =
        context == nullptr ? require_current() : engine().handles.find<Context>(context);
    require(found != nullptr, Status::kContextIsDestroyed);
    store(id, static_cast<unsigned long long>(found->id()));
  });
}

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI
cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  return driver(__func__, [&] {
    require(mode != nullptr, Status::kInvalidValue);
    const int wanted = number_of(*mode);
    require(wanted >= 0 && wanted <= static_cast<int>(CaptureMode::kRelaxed),
            Status::kInvalidValue);
    *mode = static_cast<CUstreamCaptureMode>(
        exchange_thread_capture_mode(static_cast<CaptureMode>(wanted)));
  });
}

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuCtxGetDevice(CUdevice* device) {
  return driver(__func__, [&] { store(device, require_current()->device()); });
}

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuPointerGetAttribute(void* data,
                                                                CUpointer_attribute attribute,
                                                                CUdeviceptr pointer) {
  return driver(__func__, [&] {
    require(data != nullptr, Status::kInvalidValue);
    const auto found = engine().memory.find(pointer);
    require(found != nullptr, Status::kInvalidValue);
    const bool on_device = found->kind != MemoryKind::kHost;
    switch (attribute) {
      case CU_POINTER_ATTRIBUTE_CONTEXT:
        return store(static_cast<CUcontext*>(data),
                     static_cast<CUcontext>(engine().handle_of(found->context)));
      case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        return store(
            static_cast<unsigned int*>(data),
            static_cast<unsigned int>(on_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST));
      case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        // The address in the current context, which must be able to access the memory.
        require(current() != nullptr, Status::kInvalidContext);
        require(current()->device() == found->context->device(), Status::kInvalidValue);
        return store(static_cast<CUdeviceptr*>(data), pointer);
      case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        require(found->kind != MemoryKind::kDevice, Status::kInvalidValue);
        return store(static_cast<void**>(data), reinterpret_cast<void*>(pointer));
      case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        return store(static_cast<unsigned int*>(data),
                     found->kind == MemoryKind::kManaged ? 1U : 0U);
      case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        return store(static_cast<int*>(data), found->context->device());
      default:
        fail(Status::kInvalidValue);
    }
  });
}

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuEventQuery(CUevent event) {
  return driver(__func__, [&] { engine().query(*engine().event(event)); });
}

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuEventSynchronize(CUevent event) {
  return driver(__func__, [&] {
    require_some_context();
    engine().synchronize(*engine().event(event));
  });
}

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuEventCreate(CUevent* event, unsigned int flags) {
  return driver(__func__, [&] {
    constexpr unsigned int kKnown =
        CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
    require(event != nullptr && (flags & ~kKnown) == 0, Status::kInvalidValue);
    const bool timing = (flags & CU_EVENT_DISABLE_TIMING) == 0;
    *event = static_cast<CUevent>(engine().create_event(require_current(), timing));
  });
}

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuEventDestroy(CUevent event) {
  return driver_freeing(__func__, [&] {
    require_some_context();
    engine().destroy_event(event);
  });
}

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuStreamCreate(CUstream* stream, unsigned int flags) {
  return driver(__func__, [&] {
    require(stream != nullptr, Status::kInvalidValue);
    require(flags == CU_STREAM_DEFAULT || flags == CU_STREAM_NON_BLOCKING, Status::kInvalidValue);
    const bool non_blocking = flags == CU_STREAM_NON_BLOCKING;
    *stream = static_cast<CUstream>(engine().create_stream(require_current(), non_blocking));
  });
}

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuStreamDestroy(CUstream stream) {
  return driver_freeing(__func__, [&] {
    require_some_context();
    engine().destroy_stream(stream);
  });
}

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuMemAlloc(CUdeviceptr* pointer, size_t size) {
  return driver(__func__, [&] {
    require(pointer != nullptr, Status::kInvalidValue);
    *pointer = engine().allocate(MemoryKind::kDevice, size, require_current());
  });
}

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuMemFree(CUdeviceptr pointer) {
  return driver_freeing(__func__, [&] {
    require_some_context();
    engine().free(pointer, false);
  });
}

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuMemAllocManaged(CUdeviceptr* pointer, size_t size,
                                                            unsigned int flags) {
  return driver(__func__, [&] {
    require(pointer != nullptr, Status::kInvalidValue);
    require(flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST, Status::kInvalidValue);
    *pointer = engine().allocate(MemoryKind::kManaged, size, require_current());
  });
}

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuMemHostAlloc(void** pointer, size_t size,
                                                         unsigned int flags) {
  return driver(__func__, [&] {
    constexpr unsigned int kKnown =
        CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
    require(pointer != nullptr && (flags & ~kKnown) == 0, Status::kInvalidValue);
    *pointer =
        reinterpret_cast<void*>(engine().allocate(MemoryKind::kHost, size, require_current()));
  });
}

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuMemFreeHost(void* pointer) {
  return driver_freeing(__func__, [&] {
    require_some_context();
    engine().free(reinterpret_cast<std::uintptr_t>(pointer), true);
  });
}

// Host and device share one address range.
FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuMemHostGetDevicePointer(CUdeviceptr* device,
                                                                    void* pointer,
                                                                    unsigned int flags) {
  return driver(__func__, [&] {
    require(device != nullptr && flags == 0, Status::kInvalidValue);
    require_current();
    const auto address = reinterpret_cast<CUdeviceptr>(pointer);
    const auto found = engine().memory.find(address);
    require(found && found->kind == MemoryKind::kHost, Status::kInvalidValue);
    *device = address;
  });
}

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuMemGetInfo(size_t* free, size_t* total) {
  return driver(__func__, [&] {
    require(free != nullptr && total != nullptr, Status::kInvalidValue);
    *free = engine().memory.free_bytes(require_current()->device());
    *total = Memory::kDeviceBytes;
  });
}

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuModuleLoadData(CUmodule* module, const void* image) {
  return driver(__func__, [&] {
    require(module != nullptr, Status::kInvalidValue);
    *module = static_cast<CUmodule>(engine().load_module(image, require_current()));
  });
}

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuModuleUnload(CUmodule module) {
  return driver_freeing(__func__, [&] {
    require_some_context();
    engine().unload_module(module);
  });
}

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuModuleGetFunction(CUfunction* function, CUmodule module,
                                                              const char* name) {
  return driver(__func__, [&] {
    require(function != nullptr, Status::kInvalidValue);
    require_some_context();
    *function = static_cast<CUfunction>(engine().function(module, name));
  });
}
