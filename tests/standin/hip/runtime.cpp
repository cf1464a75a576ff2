// SPDX-License-Identifier: Apache-2.0
// The functions of spec/runtimes.yaml that have no variant for per-thread default streams.
#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "../engine/errors.hpp"
#include "../engine/mode.hpp"
#include "face.hpp"

namespace fletching::standin::hip {

int& current_device() {
  static thread_local int device = 0;
  return device;
}

// Not counted as a reference: HIP keeps the context for the lifetime of the process.
std::shared_ptr<Context> current() {
  std::shared_ptr<Context> primary = engine().retain_primary(current_device(), false);
  primary->check();
  return primary;
}

std::shared_ptr<Stream> find(hipStream_t stream, DefaultStream null_means) {
  const bool legacy_of_cuda = address(stream) == 1;
  require(!legacy_of_cuda, Status::kInvalidHandle);
  const bool is_default = stream == nullptr || stream == hipStreamPerThread;
  return engine().stream(stream, null_means, is_default ? current() : nullptr);
}

namespace {

Condition condition(unsigned int flags) {
  switch (flags) {
    case hipStreamWaitValueGte:
      return Condition::kGreaterOrEqual;
    case hipStreamWaitValueEq:
      return Condition::kEqual;
    case hipStreamWaitValueAnd:
      return Condition::kAnd;
    case hipStreamWaitValueNor:
      return Condition::kNor;
    default:
      fail(Status::kInvalidValue);
  }
}

// hipMalloc of 0 bytes gives NULL.
void allocate(MemoryKind kind, void** pointer, std::size_t size) {
  require(pointer != nullptr, Status::kInvalidValue);
  const std::uintptr_t made = size == 0 ? 0 : engine().allocate(kind, size, current());
  *pointer = reinterpret_cast<void*>(made);
}

void give_back(const void* pointer, bool host) {
  if (pointer != nullptr) engine().free(address(pointer), host);
}

}  // namespace
}  // namespace fletching::standin::hip

using namespace fletching::standin;
using namespace fletching::standin::hip;
using fletching::standin::engine;

FLETCHING_STANDIN_EXPORT hipError_t hipInit(unsigned int flags) {
  return runtime(__func__, [&] { require(flags == 0, Status::kInvalidValue); });
}

FLETCHING_STANDIN_EXPORT hipError_t hipRuntimeGetVersion(int* version) {
  return static_cast<hipError_t>(call(__func__, [&] { store(version, kVersion); }));
}

FLETCHING_STANDIN_EXPORT hipError_t hipGetDeviceCount(int* count) {
  return static_cast<hipError_t>(call(__func__, [&] {
    store(count, engine().device_count());
    require(engine().device_count() > 0, Status::kNoDevice);
  }));
}

FLETCHING_STANDIN_EXPORT hipError_t hipGetDevice(int* device) {
  return runtime(__func__, [&] { store(device, current_device()); });
}

FLETCHING_STANDIN_EXPORT hipError_t hipSetDevice(int device) {
  return runtime(__func__, [&] {
    engine().check_device(device);
    current_device() = device;
  });
}

FLETCHING_STANDIN_EXPORT int hipGetStreamDeviceId(hipStream_t stream) {
  int device = -1;
  const hipError_t result = runtime(
      __func__, [&] { device = find(stream, DefaultStream::kLegacy)->context()->device(); });
  return result == hipSuccess ? device : -1;
}

FLETCHING_STANDIN_EXPORT hipError_t hipDeviceGet(hipDevice_t* device, int ordinal) {
  return runtime(__func__, [&] {
    engine().check_device(ordinal);
    store(device, ordinal);
  });
}

FLETCHING_STANDIN_EXPORT hipError_t hipDeviceGetName(char* name, int size, hipDevice_t device) {
  return runtime(__func__, [&] {
    require(name != nullptr && size > 0, Status::kInvalidValue);
    engine().check_device(device);
    const std::string text = device_name(device);
    const auto length = std::min(text.size(), static_cast<std::size_t>(size) - 1);
    std::memcpy(name, text.data(), length);
    name[length] = '\0';
  });
}

FLETCHING_STANDIN_EXPORT hipError_t hipDeviceGetAttribute(int* value,
                                                          hipDeviceAttribute_t attribute,
                                                          int device) {
  return runtime(__func__, [&] {
    engine().check_device(device);
    require(attribute == hipDeviceAttributeCanUseStreamWaitValue, Status::kInvalidValue);
    store(value, 1);
  });
}

FLETCHING_STANDIN_EXPORT hipError_t hipDevicePrimaryCtxGetState(hipDevice_t device,
                                                                unsigned int* flags, int* active) {
  return runtime(__func__, [&] {
    const bool is_active = engine().primary_active(device);
    store(flags, 0U);
    store(active, is_active ? 1 : 0);
  });
}

FLETCHING_STANDIN_EXPORT hipError_t hipPointerGetAttribute(void* data,
                                                           hipPointer_attribute attribute,
                                                           hipDeviceptr_t pointer) {
  return runtime(__func__, [&] {
    require(data != nullptr, Status::kInvalidValue);
    const auto found = engine().memory.find(address(pointer));
    require(found != nullptr, Status::kInvalidValue);
    switch (attribute) {
      case HIP_POINTER_ATTRIBUTE_CONTEXT:
        return store(static_cast<hipCtx_t*>(data),
                     static_cast<hipCtx_t>(engine().handle_of(found->context)));
      case HIP_POINTER_ATTRIBUTE_MEMORY_TYPE:
        return store(
            static_cast<unsigned int*>(data),
            static_cast<unsigned int>(found->kind == MemoryKind::kHost ? hipMemoryTypeHost
                                                                       : hipMemoryTypeDevice));
      case HIP_POINTER_ATTRIBUTE_DEVICE_POINTER:
        return store(static_cast<hipDeviceptr_t*>(data), pointer);
      case HIP_POINTER_ATTRIBUTE_HOST_POINTER:
        require(found->kind != MemoryKind::kDevice, Status::kInvalidValue);
        return store(static_cast<void**>(data), pointer);
      case HIP_POINTER_ATTRIBUTE_IS_MANAGED:
        return store(static_cast<bool*>(data), found->kind == MemoryKind::kManaged);
      case HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        return store(static_cast<int*>(data), found->context->device());
      default:
        fail(Status::kInvalidValue);
    }
  });
}

FLETCHING_STANDIN_EXPORT hipError_t hipEventQuery(hipEvent_t event) {
  return runtime(__func__, [&] { engine().query(*engine().event(event)); });
}

FLETCHING_STANDIN_EXPORT hipError_t hipEventSynchronize(hipEvent_t event) {
  return runtime(__func__, [&] { engine().synchronize(*engine().event(event)); });
}

FLETCHING_STANDIN_EXPORT hipError_t hipEventCreateWithFlags(hipEvent_t* event, unsigned int flags) {
  return runtime(__func__, [&] {
    constexpr unsigned int kKnown = hipEventBlockingSync | hipEventDisableTiming |
                                    hipEventInterprocess | hipEventReleaseToDevice |
                                    hipEventReleaseToSystem;
    require(event != nullptr && (flags & ~kKnown) == 0, Status::kInvalidValue);
    const bool timing = (flags & hipEventDisableTiming) == 0;
    *event = static_cast<hipEvent_t>(engine().create_event(current(), timing));
  });
}

FLETCHING_STANDIN_EXPORT hipError_t hipEventDestroy(hipEvent_t event) {
  return runtime_freeing(__func__, [&] { engine().destroy_event(event); });
}

FLETCHING_STANDIN_EXPORT hipError_t hipEventRecordWithFlags(hipEvent_t event, hipStream_t stream,
                                                            unsigned int flags) {
  return runtime(__func__, [&] {
    require(flags == 0 || flags == kExternal, Status::kInvalidValue);
    engine().record(event, *find(stream, DefaultStream::kLegacy), flags == kExternal);
  });
}

FLETCHING_STANDIN_EXPORT hipError_t hipStreamIsCapturing(hipStream_t stream,
                                                         hipStreamCaptureStatus* status) {
  return runtime(__func__, [&] {
    const auto found = find(stream, DefaultStream::kLegacy);
    store(status, static_cast<hipStreamCaptureStatus>(engine().captures.status(*found)));
  });
}

FLETCHING_STANDIN_EXPORT hipError_t hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode* mode) {
  return runtime(__func__, [&] {
    require(mode != nullptr, Status::kInvalidValue);
    const int wanted = number_of(*mode);
    require(wanted >= 0 && wanted <= static_cast<int>(CaptureMode::kRelaxed),
            Status::kInvalidValue);
    *mode = static_cast<hipStreamCaptureMode>(
        exchange_thread_capture_mode(static_cast<CaptureMode>(wanted)));
  });
}

FLETCHING_STANDIN_EXPORT hipError_t hipStreamCreateWithFlags(hipStream_t* stream,
                                                             unsigned int flags) {
  return runtime(__func__, [&] {
    require(stream != nullptr, Status::kInvalidValue);
    require(flags == hipStreamDefault || flags == hipStreamNonBlocking, Status::kInvalidValue);
    const bool non_blocking = flags == hipStreamNonBlocking;
    *stream = static_cast<hipStream_t>(engine().create_stream(current(), non_blocking));
  });
}

FLETCHING_STANDIN_EXPORT hipError_t hipStreamDestroy(hipStream_t stream) {
  return runtime_freeing(__func__, [&] {
    const auto found = engine().handles.find<Stream>(stream);
    if (as_driver() && found != nullptr) engine().synchronize(*found);
    engine().destroy_stream(stream);
  });
}

FLETCHING_STANDIN_EXPORT hipError_t hipStreamWaitValue32(hipStream_t stream, void* pointer,
                                                         uint32_t value, unsigned int flags,
                                                         uint32_t mask) {
  return runtime(__func__, [&] {
    const auto word = engine().memory.find(address(pointer));
    require(word && word->kind == MemoryKind::kSignal, Status::kInvalidValue);
    engine().wait_value(*find(stream, DefaultStream::kLegacy),
                        {address(pointer), value, mask, condition(flags)});
  });
}

FLETCHING_STANDIN_EXPORT hipError_t hipMalloc(void** pointer, size_t size) {
  return runtime(__func__, [&] { allocate(MemoryKind::kDevice, pointer, size); });
}

// Signal memory is one word of 8 bytes; the other flags have no effect in the stand-in.
FLETCHING_STANDIN_EXPORT hipError_t hipExtMallocWithFlags(void** pointer, size_t size,
                                                          unsigned int flags) {
  return runtime(__func__, [&] {
    const bool is_signal = flags == hipMallocSignalMemory;
    require(is_signal || flags == hipDeviceMallocDefault || flags == hipDeviceMallocFinegrained,
            Status::kInvalidValue);
    require(!is_signal || size == sizeof(std::uint64_t), Status::kInvalidValue);
    allocate(is_signal ? MemoryKind::kSignal : MemoryKind::kDevice, pointer, size);
  });
}

FLETCHING_STANDIN_EXPORT hipError_t hipFree(void* pointer) {
  return runtime_freeing(__func__, [&] { give_back(pointer, false); });
}

FLETCHING_STANDIN_EXPORT hipError_t hipMallocManaged(void** pointer, size_t size,
                                                     unsigned int flags) {
  return runtime(__func__, [&] {
    require(flags == hipMemAttachGlobal || flags == hipMemAttachHost, Status::kInvalidValue);
    allocate(MemoryKind::kManaged, pointer, size);
  });
}

FLETCHING_STANDIN_EXPORT hipError_t hipHostMalloc(void** pointer, size_t size, unsigned int flags) {
  return runtime(__func__, [&] {
    constexpr unsigned int kKnown = hipHostMallocPortable | hipHostMallocMapped |
                                    hipHostMallocWriteCombined | hipHostMallocNumaUser |
                                    hipHostMallocCoherent | hipHostMallocNonCoherent;
    require((flags & ~kKnown) == 0, Status::kInvalidValue);
    allocate(MemoryKind::kHost, pointer, size);
  });
}

FLETCHING_STANDIN_EXPORT hipError_t hipHostFree(void* pointer) {
  return runtime_freeing(__func__, [&] { give_back(pointer, true); });
}

// Host and device share one address range.
FLETCHING_STANDIN_EXPORT hipError_t hipHostGetDevicePointer(void** device, void* pointer,
                                                            unsigned int flags) {
  return runtime(__func__, [&] {
    require(device != nullptr && flags == 0, Status::kInvalidValue);
    const auto found = engine().memory.find(address(pointer));
    require(found && found->kind == MemoryKind::kHost, Status::kInvalidValue);
    *device = pointer;
  });
}

FLETCHING_STANDIN_EXPORT hipError_t hipMemsetAsync(void* to, int value, size_t size,
                                                   hipStream_t stream) {
  return runtime(__func__, [&] {
    engine().fill(*find(stream, DefaultStream::kLegacy), address(to),
                  static_cast<std::uint8_t>(value), size);
  });
}

FLETCHING_STANDIN_EXPORT hipError_t hipMemGetInfo(size_t* free, size_t* total) {
  return runtime(__func__, [&] {
    require(free != nullptr && total != nullptr, Status::kInvalidValue);
    *free = engine().memory.free_bytes(current()->device());
    *total = Memory::kDeviceBytes;
  });
}

FLETCHING_STANDIN_EXPORT hipError_t hipModuleLoadData(hipModule_t* module, const void* image) {
  return runtime(__func__, [&] {
    require(module != nullptr, Status::kInvalidValue);
    *module = static_cast<hipModule_t>(engine().load_module(image, current()));
  });
}

FLETCHING_STANDIN_EXPORT hipError_t hipModuleUnload(hipModule_t module) {
  return runtime_freeing(__func__, [&] { engine().unload_module(module); });
}

FLETCHING_STANDIN_EXPORT hipError_t hipModuleGetFunction(hipFunction_t* function,
                                                         hipModule_t module, const char* name) {
  return runtime(__func__, [&] {
    require(function != nullptr, Status::kInvalidValue);
    *function = static_cast<hipFunction_t>(engine().function(module, name));
  });
}

FLETCHING_STANDIN_EXPORT hipError_t hipModuleLaunchKernel(
    hipFunction_t function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
    unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int,
    hipStream_t stream, void** arguments, void** extra) {
  return runtime(__func__, [&] {
    require(extra == nullptr, Status::kInvalidValue);
    const std::uint64_t threads = threads_of({grid_x, grid_y, grid_z}, {block_x, block_y, block_z});
    engine().launch(function, *find(stream, DefaultStream::kLegacy), threads, arguments);
  });
}
