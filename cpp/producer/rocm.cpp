// ROCm through HIP: device and pinned memory of the first device.
#include "fletching/runtimes/hip.hpp"

#include <iterator>

#include "gpu.hpp"

namespace fletching::producer {
namespace {

using namespace fletching::hip;

// Set when the device was found, and used only after that.
struct Root {
  const Functions* functions = nullptr;
  int32_t device = 0;
  hipFunction_t kernels[std::size(kKernelNames)] = {};
};
Root g_root;

void Check(const char* function, hipError_t status) {
  if (status == kHipSuccess) return;
  const char* name = g_root.functions->hip_get_error_name(status);
  const char* text = g_root.functions->hip_get_error_string(status);
  Fail(EIO, std::string(function) + " gave " + (name != nullptr ? name : "the error") + " (" +
                std::to_string(status) + ")" + (text != nullptr ? std::string(": ") + text : ""));
}

struct HipApi {
  using Stream = hipStream_t;
  using Event = hipEvent_t;

  // The device of the calling thread as long as the object lives.
  struct Current {
    Current() {
      Check("hipGetDevice", g_root.functions->hip_get_device(&before));
      Check("hipSetDevice", Set(g_root.device));
    }
    explicit Current(std::nothrow_t) noexcept {
      const Functions& hip = *g_root.functions;
      for (int attempt = 0; attempt < 2; ++attempt) {
        if (hip.hip_get_device(&before) == kHipSuccess && Set(g_root.device) == kHipSuccess) return;
      }
    }
    ~Current() {
      if (Set(before) != kHipSuccess) Set(before);
    }
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;

    hipError_t Set(int32_t device) const noexcept {
      return before == g_root.device ? kHipSuccess : g_root.functions->hip_set_device(device);
    }

    int32_t before = g_root.device;  // until it is known: the thread stays where it is
  };

  static Device Open();
  static bool HasManagedMemory() { return false; }  // none that Arrow has a device type for

  static void* Allocate(MemoryKind kind, size_t bytes) {
    const Functions& hip = *g_root.functions;
    void* memory = nullptr;
    switch (kind) {
      case MemoryKind::kDevice:
        Check("hipMalloc", hip.hip_malloc(&memory, bytes));
        break;
      case MemoryKind::kManaged:
        Fail(ENOTSUP, "Arrow has no device type for the managed memory of HIP");
      case MemoryKind::kPinned:
        Check("hipHostMalloc",
              hip.hip_host_malloc(&memory, bytes, kHipHostMallocPortable | kHipHostMallocMapped));
        break;
    }
    return memory;
  }
  static void Free(MemoryKind kind, void* memory) noexcept {
    if (kind == MemoryKind::kPinned) {
      g_root.functions->hip_host_free(memory);
    } else {
      g_root.functions->hip_free(memory);
    }
  }

  // A stream of HIP waits for signal memory alone, of 8 bytes; not every device's does.
  static void* NewWord() {
    const Functions& hip = *g_root.functions;
    int32_t can_wait = 0;
    Check("hipDeviceGetAttribute",
          hip.hip_device_get_attribute(&can_wait, kHipDeviceAttributeCanUseStreamWaitValue,
                                       g_root.device));
    if (can_wait == 0) Fail(ENOTSUP, "no stream of this device waits for a word: no gate");
    void* word = nullptr;
    Check("hipExtMallocWithFlags",
          hip.hip_ext_malloc_with_flags(&word, sizeof(uint64_t), kHipMallocSignalMemory));
    return word;
  }
  static void FreeWord(void* word) noexcept { g_root.functions->hip_free(word); }

  static Stream NewStream() {
    Stream stream = nullptr;
    Check("hipStreamCreateWithFlags",
          g_root.functions->hip_stream_create_with_flags(&stream, kHipStreamNonBlocking));
    return stream;
  }
  static void DestroyStream(Stream stream) noexcept {
    g_root.functions->hip_stream_destroy(stream);
  }
  static void Finish(Stream stream) {
    Check("hipStreamSynchronize", g_root.functions->hip_stream_synchronize(stream));
  }
  static bool IsIdle(Stream stream) {
    const hipError_t status = g_root.functions->hip_stream_query(stream);
    if (status == kHipErrorNotReady) return false;
    Check("hipStreamQuery", status);
    return true;
  }
  static void WaitValue(Stream stream, void* word, uint32_t value) {
    Check("hipStreamWaitValue32", g_root.functions->hip_stream_wait_value32(
                                      stream, word, value, kHipStreamWaitValueEq, UINT32_MAX));
  }
  static void Copy(void* to, const void* from, size_t bytes, Stream stream) {
    Check("hipMemcpyAsync",
          g_root.functions->hip_memcpy_async(to, from, bytes, kHipMemcpyDefault, stream));
  }
  static void Launch(Kernel kernel, uint32_t blocks, uint32_t threads, Stream stream,
                     void** arguments) {
    Check("hipModuleLaunchKernel", g_root.functions->hip_module_launch_kernel(
                                       g_root.kernels[static_cast<size_t>(kernel)], blocks, 1, 1,
                                       threads, 1, 1, 0, stream, arguments, nullptr));
  }

  static Event NewEvent() {
    Event event = nullptr;
    Check("hipEventCreateWithFlags",
          g_root.functions->hip_event_create_with_flags(&event, kHipEventDisableTiming));
    return event;
  }
  static void Record(Event event, Stream stream) {
    Check("hipEventRecord", g_root.functions->hip_event_record(event, stream));
  }
  static void Synchronize(Event event) {
    Check("hipEventSynchronize", g_root.functions->hip_event_synchronize(event));
  }
  static void DestroyEvent(Event event) noexcept { g_root.functions->hip_event_destroy(event); }
};

std::string Describe(const Functions& hip) {
  char name[256] = {};
  int32_t version = 0;
  Check("hipDeviceGetName", hip.hip_device_get_name(name, sizeof name - 1, g_root.device));
  Check("hipRuntimeGetVersion", hip.hip_runtime_get_version(&version));
  return std::string(name) + ", HIP runtime " + std::to_string(version);
}

Device HipApi::Open() {
  Result<const Functions*> functions = hip::functions(Party::kProducer);
  if (!functions) Fail(functions.error().code(), functions.error().message());
  const Functions& hip = **functions;
  g_root.functions = &hip;
  Check("hipInit", hip.hip_init(0));
  int32_t count = 0;
  Check("hipGetDeviceCount", hip.hip_get_device_count(&count));
  if (count == 0) Fail(ENODEV, "hipGetDeviceCount found no device");
  const Presence presence = IsStandIn<Functions>(kRuntime) ? Presence::kStandIn : Presence::kReal;
  const void* image = KernelFor(presence, kHipImage, "hipcc");
  Device device{presence, Describe(hip)};
  const HipApi::Current current;
  hipModule_t module = nullptr;
  Check("hipModuleLoadData", hip.hip_module_load_data(&module, image));
  try {
    for (size_t i = 0; i < std::size(kKernelNames); ++i) {
      Check("hipModuleGetFunction",
            hip.hip_module_get_function(&g_root.kernels[i], module, kKernelNames[i]));
    }
    Prime<HipApi>();
  } catch (...) {
    hip.hip_module_unload(module);
    throw;
  }
  return device;
}

}  // namespace

Backend* RocmBackend() { return TheGpu<HipApi, MemoryKind::kDevice>("rocm", ARROW_DEVICE_ROCM); }
Backend* RocmHostBackend() {
  return TheGpu<HipApi, MemoryKind::kPinned>("rocm_host", ARROW_DEVICE_ROCM_HOST);
}

}  // namespace fletching::producer
