// HIP: device and pinned memory of the first ROCm device.
#include "runtimes/hip.hpp"

#include <iterator>

#include "gpu.hpp"

namespace fletching::producer {
namespace {

using namespace fletching::hip;

// Initialized when the device is found; not used earlier.
struct Root {
  const Functions* functions = nullptr;
  int32_t device = 0;
  hipFunction_t kernels[std::size(kKernelNames)] = {};
};
Root g_root;

void check(const char* function, hipError_t status) {
  if (status == kHipSuccess) return;
  const char* name = g_root.functions->hip_get_error_name(status);
  const char* text = g_root.functions->hip_get_error_string(status);
  fail(EIO, std::string(function) + ": failed: got " + (name != nullptr ? name : "the error") +
                " (" + std::to_string(status) + ")" +
                (text != nullptr ? std::string(": ") + text : ""));
}

struct HipApi {
  using Stream = hipStream_t;
  using Event = hipEvent_t;

  // Makes the device current for the calling thread during the object's lifetime.
  struct Current {
    Current() {
      check("hipGetDevice", g_root.functions->hip_get_device(&before));
      check("hipSetDevice", set(g_root.device));
    }
    explicit Current(std::nothrow_t) noexcept {
      const Functions& hip = *g_root.functions;
      for (int attempt = 0; attempt < 2; ++attempt) {
        if (hip.hip_get_device(&before) == kHipSuccess && set(g_root.device) == kHipSuccess) return;
      }
    }
    ~Current() {
      if (set(before) != kHipSuccess) set(before);
    }
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;

    hipError_t set(int32_t device) const noexcept {
      return before == g_root.device ? kHipSuccess : g_root.functions->hip_set_device(device);
    }

    int32_t before = g_root.device;  // until the current one is known: a failure changes nothing
  };

  static Device open();
  static bool has_managed_memory() { return false; }  // Arrow has no device type for it

  static void* allocate(MemoryKind kind, size_t bytes) {
    const Functions& hip = *g_root.functions;
    void* memory = nullptr;
    switch (kind) {
      case MemoryKind::kDevice:
        check("hipMalloc", hip.hip_malloc(&memory, bytes));
        break;
      case MemoryKind::kManaged:
        fail(ENOTSUP, "managed memory of HIP: not supported: Arrow has no device type for it");
      case MemoryKind::kPinned:
        check("hipHostMalloc",
              hip.hip_host_malloc(&memory, bytes, kHipHostMallocPortable | kHipHostMallocMapped));
        break;
    }
    return memory;
  }
  static void free(MemoryKind kind, void* memory) noexcept {
    if (kind == MemoryKind::kPinned) {
      g_root.functions->hip_host_free(memory);
    } else {
      g_root.functions->hip_free(memory);
    }
  }

  // HIP streams can only wait on 8 bytes of signal memory, which not every device supports.
  static void* contents(const void* memory) {
    return stand_in_contents<Functions>(kRuntime, memory);
  }
  static void* new_word() {
    const Functions& hip = *g_root.functions;
    int32_t can_wait = 0;
    check("hipDeviceGetAttribute",
          hip.hip_device_get_attribute(&can_wait, kHipDeviceAttributeCanUseStreamWaitValue,
                                       g_root.device));
    if (can_wait == 0)
      fail(ENOTSUP, "gate: not supported: the device cannot wait for a word in memory");
    void* word = nullptr;
    check("hipExtMallocWithFlags",
          hip.hip_ext_malloc_with_flags(&word, sizeof(uint64_t), kHipMallocSignalMemory));
    return word;
  }
  static void free_word(void* word) noexcept { g_root.functions->hip_free(word); }

  static Stream new_stream() {
    Stream stream = nullptr;
    check("hipStreamCreateWithFlags",
          g_root.functions->hip_stream_create_with_flags(&stream, kHipStreamNonBlocking));
    return stream;
  }
  static void destroy_stream(Stream stream) noexcept {
    g_root.functions->hip_stream_destroy(stream);
  }
  static void finish(Stream stream) {
    check("hipStreamSynchronize", g_root.functions->hip_stream_synchronize(stream));
  }
  static bool is_idle(Stream stream) {
    const hipError_t status = g_root.functions->hip_stream_query(stream);
    if (status == kHipErrorNotReady) return false;
    check("hipStreamQuery", status);
    return true;
  }
  static void wait_value(Stream stream, void* word, uint32_t value) {
    check("hipStreamWaitValue32", g_root.functions->hip_stream_wait_value32(
                                      stream, word, value, kHipStreamWaitValueEq, UINT32_MAX));
  }
  static void copy(void* to, const void* from, size_t bytes, Stream stream) {
    check("hipMemcpyAsync",
          g_root.functions->hip_memcpy_async(to, from, bytes, kHipMemcpyDefault, stream));
  }
  static void launch(Kernel kernel, uint32_t blocks, uint32_t threads, Stream stream,
                     void** arguments) {
    check("hipModuleLaunchKernel", g_root.functions->hip_module_launch_kernel(
                                       g_root.kernels[static_cast<size_t>(kernel)], blocks, 1, 1,
                                       threads, 1, 1, 0, stream, arguments, nullptr));
  }

  static Event new_event() {
    Event event = nullptr;
    check("hipEventCreateWithFlags",
          g_root.functions->hip_event_create_with_flags(&event, kHipEventDisableTiming));
    return event;
  }
  static void record(Event event, Stream stream) {
    check("hipEventRecord", g_root.functions->hip_event_record(event, stream));
  }
  static void synchronize(Event event) {
    check("hipEventSynchronize", g_root.functions->hip_event_synchronize(event));
  }
  static void destroy_event(Event event) noexcept { g_root.functions->hip_event_destroy(event); }
};

std::string describe(const Functions& hip) {
  char name[256] = {};
  int32_t version = 0;
  check("hipDeviceGetName", hip.hip_device_get_name(name, sizeof name - 1, g_root.device));
  check("hipRuntimeGetVersion", hip.hip_runtime_get_version(&version));
  return std::string(name) + ", HIP runtime " + std::to_string(version);
}

Device HipApi::open() {
  Result<const Functions*> functions = hip::functions();
  if (!functions) fail(functions.error().code(), functions.error().message());
  const Functions& hip = **functions;
  g_root.functions = &hip;
  check("hipInit", hip.hip_init(0));
  int32_t count = 0;
  check("hipGetDeviceCount", hip.hip_get_device_count(&count));
  if (count == 0) fail(ENODEV, "hipGetDeviceCount: no device: expected one or more");
  const Presence presence = is_stand_in<Functions>(kRuntime) ? Presence::kStandIn : Presence::kReal;
  const void* image = kernel_for(presence, kHipImage, "hipcc");
  Device device{presence, describe(hip)};
  const HipApi::Current current;
  hipModule_t module = nullptr;
  check("hipModuleLoadData", hip.hip_module_load_data(&module, image));
  try {
    for (size_t i = 0; i < std::size(kKernelNames); ++i) {
      check("hipModuleGetFunction",
            hip.hip_module_get_function(&g_root.kernels[i], module, kKernelNames[i]));
    }
    prime<HipApi>();
  } catch (...) {
    hip.hip_module_unload(module);
    throw;
  }
  return device;
}

}  // namespace

Backend* rocm_backend() { return the_gpu<HipApi, MemoryKind::kDevice>("rocm", ARROW_DEVICE_ROCM); }
Backend* rocm_host_backend() {
  return the_gpu<HipApi, MemoryKind::kPinned>("rocm_host", ARROW_DEVICE_ROCM_HOST);
}

}  // namespace fletching::producer
