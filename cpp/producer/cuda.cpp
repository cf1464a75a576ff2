// CUDA driver API: device, pinned and managed memory of the first device.
#include "runtimes/cuda.hpp"

#include <iterator>

#include "gpu.hpp"

namespace fletching::producer {
namespace {

using namespace fletching::cuda;

// Initialized when the device is found; not used earlier.
struct Root {
  const Functions* functions = nullptr;
  CUdevice device = 0;
  CUcontext context = nullptr;  // the primary context; one reference, never released
  CUfunction kernels[std::size(kKernelNames)] = {};
};
Root g_root;

[[noreturn]] void fail_call(const Functions& functions, const char* function, CUresult status) {
  const char* name = nullptr;
  const char* text = nullptr;
  functions.cu_get_error_name(status, &name);
  functions.cu_get_error_string(status, &text);
  fail(EIO, std::string(function) + ": failed: got " + (name != nullptr ? name : "the error") +
                " (" + std::to_string(status) + ")" +
                (text != nullptr ? std::string(": ") + text : ""));
}

void check(const char* function, CUresult status) {
  if (status != kCudaSuccess) fail_call(*g_root.functions, function, status);
}

CUdeviceptr address_of(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

struct CudaApi {
  using Stream = CUstream;
  using Event = CUevent;

  // Makes the primary context current for this thread during the object's lifetime.
  struct Current {
    Current() { check("cuCtxPushCurrent", push()); }
    explicit Current(std::nothrow_t) noexcept : pushed(push() == kCudaSuccess) {
      if (!pushed) pushed = push() == kCudaSuccess;
    }
    ~Current() {
      CUcontext before = nullptr;
      if (pushed) g_root.functions->cu_ctx_pop_current(&before);
    }
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;

    static CUresult push() noexcept {
      return g_root.functions->cu_ctx_push_current(g_root.context);
    }

    bool pushed = true;
  };

  static Device open();
  static bool has_managed_memory() {
    int32_t has = 0;
    check("cuDeviceGetAttribute", g_root.functions->cu_device_get_attribute(
                                      &has, kCuDeviceAttributeManagedMemory, g_root.device));
    return has != 0;
  }

  static void* allocate(MemoryKind kind, size_t bytes) {
    const Functions& cu = *g_root.functions;
    CUdeviceptr address = 0;
    void* host = nullptr;
    switch (kind) {
      case MemoryKind::kDevice:
        check("cuMemAlloc", cu.cu_mem_alloc(&address, bytes));
        break;
      case MemoryKind::kManaged:
        check("cuMemAllocManaged", cu.cu_mem_alloc_managed(&address, bytes, kCuMemAttachGlobal));
        break;
      case MemoryKind::kPinned:
        check(
            "cuMemHostAlloc",
            cu.cu_mem_host_alloc(&host, bytes, kCuMemhostallocPortable | kCuMemhostallocDevicemap));
        return host;
    }
    return reinterpret_cast<void*>(address);
  }
  static void free(MemoryKind kind, void* memory) noexcept {
    if (kind == MemoryKind::kPinned) {
      g_root.functions->cu_mem_free_host(memory);
    } else {
      g_root.functions->cu_mem_free(address_of(memory));
    }
  }

  static void* contents(const void* memory) {
    return stand_in_contents<Functions>(kRuntime, memory);
  }
  static void* new_word() { return allocate(MemoryKind::kPinned, sizeof(uint32_t)); }
  static void free_word(void* word) noexcept { free(MemoryKind::kPinned, word); }

  static Stream new_stream() {
    Stream stream = nullptr;
    check("cuStreamCreate", g_root.functions->cu_stream_create(&stream, kCuStreamNonBlocking));
    return stream;
  }
  static void destroy_stream(Stream stream) noexcept {
    g_root.functions->cu_stream_destroy(stream);
  }
  static void finish(Stream stream) {
    check("cuStreamSynchronize", g_root.functions->cu_stream_synchronize(stream));
  }
  static bool is_idle(Stream stream) {
    const CUresult status = g_root.functions->cu_stream_query(stream);
    if (status == kCudaErrorNotReady) return false;
    check("cuStreamQuery", status);
    return true;
  }
  // With unified addressing, host and device use the same address for pinned memory.
  static void wait_value(Stream stream, void* word, uint32_t value) {
    if (g_root.functions->cu_stream_wait_value32 == nullptr) {
      fail(ENOTSUP, "gate: the driver has no cuStreamWaitValue32: expected CUDA 11.7 or later");
    }
    CUdeviceptr address = 0;
    check("cuMemHostGetDevicePointer",
          g_root.functions->cu_mem_host_get_device_pointer(&address, word, 0));
    check("cuStreamWaitValue32",
          g_root.functions->cu_stream_wait_value32(stream, address, value, kCuStreamWaitValueEq));
  }
  static void copy(void* to, const void* from, size_t bytes, Stream stream) {
    check("cuMemcpyAsync",
          g_root.functions->cu_memcpy_async(address_of(to), address_of(from), bytes, stream));
  }
  static void launch(Kernel kernel, uint32_t blocks, uint32_t threads, Stream stream,
                     void** arguments) {
    check("cuLaunchKernel",
          g_root.functions->cu_launch_kernel(g_root.kernels[static_cast<size_t>(kernel)], blocks, 1,
                                             1, threads, 1, 1, 0, stream, arguments, nullptr));
  }

  static Event new_event() {
    Event event = nullptr;
    check("cuEventCreate", g_root.functions->cu_event_create(&event, kCuEventDisableTiming));
    return event;
  }
  static void record(Event event, Stream stream) {
    check("cuEventRecord", g_root.functions->cu_event_record(event, stream));
  }
  static void synchronize(Event event) {
    check("cuEventSynchronize", g_root.functions->cu_event_synchronize(event));
  }
  static void destroy_event(Event event) noexcept { g_root.functions->cu_event_destroy(event); }
};

std::string describe(const Functions& cu) {
  char name[256] = {};
  int32_t version = 0;
  int32_t major = 0;
  int32_t minor = 0;
  check("cuDeviceGetName", cu.cu_device_get_name(name, sizeof name - 1, g_root.device));
  check("cuDriverGetVersion", cu.cu_driver_get_version(&version));
  check(
      "cuDeviceGetAttribute",
      cu.cu_device_get_attribute(&major, kCuDeviceAttributeComputeCapabilityMajor, g_root.device));
  check(
      "cuDeviceGetAttribute",
      cu.cu_device_get_attribute(&minor, kCuDeviceAttributeComputeCapabilityMinor, g_root.device));
  return std::string(name) + ", compute capability " + std::to_string(major) + "." +
         std::to_string(minor) + ", driver for CUDA " + std::to_string(version / 1000) + "." +
         std::to_string(version % 1000 / 10);
}

// Holds one reference to the primary context until the process ends: foreign arrays live in it.
Device CudaApi::open() {
  Result<const Functions*> functions = cuda::functions();
  if (!functions) fail(functions.error().code(), functions.error().message());
  const Functions& cu = **functions;
  g_root.functions = &cu;
  check("cuInit", cu.cu_init(0));
  int32_t count = 0;
  check("cuDeviceGetCount", cu.cu_device_get_count(&count));
  if (count == 0) fail(ENODEV, "cuDeviceGetCount: no device: expected one or more");
  check("cuDeviceGet", cu.cu_device_get(&g_root.device, 0));
  const Presence presence = is_stand_in<Functions>(kRuntime) ? Presence::kStandIn : Presence::kReal;
  const void* image = kernel_for(presence, kCudaImage, "nvcc");
  Device device{presence, describe(cu)};
  check("cuDevicePrimaryCtxRetain",
        cu.cu_device_primary_ctx_retain(&g_root.context, g_root.device));
  CUmodule module = nullptr;
  try {
    const CudaApi::Current current;
    check("cuModuleLoadData", cu.cu_module_load_data(&module, image));
    for (size_t i = 0; i < std::size(kKernelNames); ++i) {
      check("cuModuleGetFunction",
            cu.cu_module_get_function(&g_root.kernels[i], module, kKernelNames[i]));
    }
    prime<CudaApi>();
  } catch (...) {
    if (module != nullptr) {
      const CudaApi::Current current(std::nothrow);
      cu.cu_module_unload(module);
    }
    cu.cu_device_primary_ctx_release(g_root.device);
    throw;
  }
  return device;
}

}  // namespace

Backend* cuda_backend() { return the_gpu<CudaApi, MemoryKind::kDevice>("cuda", ARROW_DEVICE_CUDA); }
Backend* cuda_host_backend() {
  return the_gpu<CudaApi, MemoryKind::kPinned>("cuda_host", ARROW_DEVICE_CUDA_HOST);
}
Backend* cuda_managed_backend() {
  return the_gpu<CudaApi, MemoryKind::kManaged>("cuda_managed", ARROW_DEVICE_CUDA_MANAGED);
}

}  // namespace fletching::producer
