// CUDA through its driver API: device, pinned and managed memory of the first device.
#include "fletching/runtimes/cuda.hpp"

#include <iterator>

#include "gpu.hpp"

namespace fletching::producer {
namespace {

using namespace fletching::cuda;

// Set when the device was found, and used only after that.
struct Root {
  const Functions* functions = nullptr;
  CUdevice device = 0;
  CUcontext context = nullptr;  // the primary one; one reference, never given back
  CUfunction kernels[std::size(kKernelNames)] = {};
};
Root g_root;

[[noreturn]] void FailCall(const Functions& functions, const char* function, CUresult status) {
  const char* name = nullptr;
  const char* text = nullptr;
  functions.cu_get_error_name(status, &name);
  functions.cu_get_error_string(status, &text);
  Fail(EIO, std::string(function) + " gave " + (name != nullptr ? name : "the error") + " (" +
                std::to_string(status) + ")" + (text != nullptr ? std::string(": ") + text : ""));
}

void Check(const char* function, CUresult status) {
  if (status != kCudaSuccess) FailCall(*g_root.functions, function, status);
}

CUdeviceptr AddressOf(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

struct CudaApi {
  using Stream = CUstream;
  using Event = CUevent;

  // The primary context, current for this thread as long as the object lives.
  struct Current {
    Current() { Check("cuCtxPushCurrent", Push()); }
    explicit Current(std::nothrow_t) noexcept : pushed(Push() == kCudaSuccess) {
      if (!pushed) pushed = Push() == kCudaSuccess;
    }
    ~Current() {
      CUcontext before = nullptr;
      if (pushed) g_root.functions->cu_ctx_pop_current(&before);
    }
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;

    static CUresult Push() noexcept {
      return g_root.functions->cu_ctx_push_current(g_root.context);
    }

    bool pushed = true;
  };

  static Device Open();
  static bool HasManagedMemory() {
    int32_t has = 0;
    Check("cuDeviceGetAttribute", g_root.functions->cu_device_get_attribute(
                                      &has, kCuDeviceAttributeManagedMemory, g_root.device));
    return has != 0;
  }

  static void* Allocate(MemoryKind kind, size_t bytes) {
    const Functions& cu = *g_root.functions;
    CUdeviceptr address = 0;
    void* host = nullptr;
    switch (kind) {
      case MemoryKind::kDevice:
        Check("cuMemAlloc", cu.cu_mem_alloc(&address, bytes));
        break;
      case MemoryKind::kManaged:
        Check("cuMemAllocManaged", cu.cu_mem_alloc_managed(&address, bytes, kCuMemAttachGlobal));
        break;
      case MemoryKind::kPinned:
        Check(
            "cuMemHostAlloc",
            cu.cu_mem_host_alloc(&host, bytes, kCuMemhostallocPortable | kCuMemhostallocDevicemap));
        return host;
    }
    return reinterpret_cast<void*>(address);
  }
  static void Free(MemoryKind kind, void* memory) noexcept {
    if (kind == MemoryKind::kPinned) {
      g_root.functions->cu_mem_free_host(memory);
    } else {
      g_root.functions->cu_mem_free(AddressOf(memory));
    }
  }

  static void* NewWord() { return Allocate(MemoryKind::kPinned, sizeof(uint32_t)); }
  static void FreeWord(void* word) noexcept { Free(MemoryKind::kPinned, word); }

  static Stream NewStream() {
    Stream stream = nullptr;
    Check("cuStreamCreate", g_root.functions->cu_stream_create(&stream, kCuStreamNonBlocking));
    return stream;
  }
  static void DestroyStream(Stream stream) noexcept { g_root.functions->cu_stream_destroy(stream); }
  static void Finish(Stream stream) {
    Check("cuStreamSynchronize", g_root.functions->cu_stream_synchronize(stream));
  }
  static bool IsIdle(Stream stream) {
    const CUresult status = g_root.functions->cu_stream_query(stream);
    if (status == kCudaErrorNotReady) return false;
    Check("cuStreamQuery", status);
    return true;
  }
  // With unified addressing the same address leads to pinned memory from both sides.
  static void WaitValue(Stream stream, void* word, uint32_t value) {
    if (g_root.functions->cu_stream_wait_value32 == nullptr) {
      Fail(ENOTSUP, "the driver has no cuStreamWaitValue32, which CUDA 11.7 has: no gate");
    }
    CUdeviceptr address = 0;
    Check("cuMemHostGetDevicePointer",
          g_root.functions->cu_mem_host_get_device_pointer(&address, word, 0));
    Check("cuStreamWaitValue32",
          g_root.functions->cu_stream_wait_value32(stream, address, value, kCuStreamWaitValueEq));
  }
  static void Copy(void* to, const void* from, size_t bytes, Stream stream) {
    Check("cuMemcpyAsync",
          g_root.functions->cu_memcpy_async(AddressOf(to), AddressOf(from), bytes, stream));
  }
  static void Launch(Kernel kernel, uint32_t blocks, uint32_t threads, Stream stream,
                     void** arguments) {
    Check("cuLaunchKernel",
          g_root.functions->cu_launch_kernel(g_root.kernels[static_cast<size_t>(kernel)], blocks, 1,
                                             1, threads, 1, 1, 0, stream, arguments, nullptr));
  }

  static Event NewEvent() {
    Event event = nullptr;
    Check("cuEventCreate", g_root.functions->cu_event_create(&event, kCuEventDisableTiming));
    return event;
  }
  static void Record(Event event, Stream stream) {
    Check("cuEventRecord", g_root.functions->cu_event_record(event, stream));
  }
  static void Synchronize(Event event) {
    Check("cuEventSynchronize", g_root.functions->cu_event_synchronize(event));
  }
  static void DestroyEvent(Event event) noexcept { g_root.functions->cu_event_destroy(event); }
};

std::string Describe(const Functions& cu) {
  char name[256] = {};
  int32_t version = 0;
  int32_t major = 0;
  int32_t minor = 0;
  Check("cuDeviceGetName", cu.cu_device_get_name(name, sizeof name - 1, g_root.device));
  Check("cuDriverGetVersion", cu.cu_driver_get_version(&version));
  Check(
      "cuDeviceGetAttribute",
      cu.cu_device_get_attribute(&major, kCuDeviceAttributeComputeCapabilityMajor, g_root.device));
  Check(
      "cuDeviceGetAttribute",
      cu.cu_device_get_attribute(&minor, kCuDeviceAttributeComputeCapabilityMinor, g_root.device));
  return std::string(name) + ", compute capability " + std::to_string(major) + "." +
         std::to_string(minor) + ", driver for CUDA " + std::to_string(version / 1000) + "." +
         std::to_string(version % 1000 / 10);
}

// The primary context has one reference for as long as the process runs: foreign arrays live in it.
Device CudaApi::Open() {
  Result<const Functions*> functions = cuda::functions(Party::kProducer);
  if (!functions) Fail(functions.error().code(), functions.error().message());
  const Functions& cu = **functions;
  g_root.functions = &cu;
  Check("cuInit", cu.cu_init(0));
  int32_t count = 0;
  Check("cuDeviceGetCount", cu.cu_device_get_count(&count));
  if (count == 0) Fail(ENODEV, "cuDeviceGetCount found no device");
  Check("cuDeviceGet", cu.cu_device_get(&g_root.device, 0));
  const Presence presence = IsStandIn<Functions>(kRuntime) ? Presence::kStandIn : Presence::kReal;
  const void* image = KernelFor(presence, kCudaImage, "nvcc");
  Device device{presence, Describe(cu)};
  Check("cuDevicePrimaryCtxRetain",
        cu.cu_device_primary_ctx_retain(&g_root.context, g_root.device));
  CUmodule module = nullptr;
  try {
    const CudaApi::Current current;
    Check("cuModuleLoadData", cu.cu_module_load_data(&module, image));
    for (size_t i = 0; i < std::size(kKernelNames); ++i) {
      Check("cuModuleGetFunction",
            cu.cu_module_get_function(&g_root.kernels[i], module, kKernelNames[i]));
    }
    Prime<CudaApi>();
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

Backend* CudaBackend() { return TheGpu<CudaApi, MemoryKind::kDevice>("cuda", ARROW_DEVICE_CUDA); }
Backend* CudaHostBackend() {
  return TheGpu<CudaApi, MemoryKind::kPinned>("cuda_host", ARROW_DEVICE_CUDA_HOST);
}
Backend* CudaManagedBackend() {
  return TheGpu<CudaApi, MemoryKind::kManaged>("cuda_managed", ARROW_DEVICE_CUDA_MANAGED);
}

}  // namespace fletching::producer
