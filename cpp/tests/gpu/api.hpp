// SPDX-License-Identifier: Apache-2.0
//
// CUDA and HIP under common names, so that one test covers both. Of the headers under test this
// uses only the tables.
#ifndef FLETCHING_TESTS_GPU_API_HPP
#define FLETCHING_TESTS_GPU_API_HPP

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "runtimes/cuda.hpp"
#include "runtimes/hip.hpp"

namespace fletching::testing {

/// The current context when a test calls the library: device 0's context, where the test's memory
/// is; no context; or device 1's context. Set by FLETCHING_TEST_CURRENT: "own", "none" or "other".
enum class CurrentDevice : std::uint8_t { kOwn, kNone, kOther };
inline CurrentDevice current_device() {
  static const std::string_view text = [] {
    const char* const set = std::getenv("FLETCHING_TEST_CURRENT");
    return set != nullptr ? set : "own";
  }();
  if (text == "none") return CurrentDevice::kNone;
  EXPECT_TRUE(text == "own" || text == "other") << "FLETCHING_TEST_CURRENT: got " << text;
  return text == "other" ? CurrentDevice::kOther : CurrentDevice::kOwn;
}

/// Skip reason of a test that makes devices current itself.
inline constexpr const char* kChoosesItself = "it chooses the current device itself";

/// Makes device 0 current during the object's lifetime, for the test's own calls.
template <class Api, class Functions>
class ScopedDevice {
 public:
  ScopedDevice() {
    if (is_needed_) Api::enter();
  }
  ~ScopedDevice() {
    if (is_needed_) Api::leave();
  }
  ScopedDevice(const ScopedDevice&) = delete;
  ScopedDevice& operator=(const ScopedDevice&) = delete;
  const Functions* operator->() const { return &Api::api(); }

 private:
  const bool is_needed_ = current_device() != CurrentDevice::kOwn;
};

/// CUDA, with the primary context of the device.
struct CudaApi {
  static constexpr ArrowDeviceType kType = ARROW_DEVICE_CUDA;
  static constexpr ArrowDeviceType kHostType = ARROW_DEVICE_CUDA_HOST;
  static constexpr const char* kError = "CUDA_ERROR_LAUNCH_FAILED";
  static constexpr const char* kExchangeMode = "cuThreadExchangeStreamCaptureMode";
  static constexpr const char* kQuery = "cuEventQuery";
  static constexpr const char* kRecord = "cuEventRecord";
  static constexpr const char* kSynchronize = "cuEventSynchronize";
  using Event = cuda::CUevent;
  static constexpr const VendorRuntime& kRuntime = cuda::kRuntime;

  static const cuda::Functions& api() { return **cuda::functions(); }
  static ScopedDevice<CudaApi, cuda::Functions> inside() { return {}; }
  static void enter() { open_device(0); }
  static void leave() { close_device(0); }
  static Result<const cuda::Functions*> load() { return cuda::functions(); }

  static int devices() {
    std::int32_t count = 0;
    EXPECT_EQ(api().cu_init(0), 0);
    EXPECT_EQ(api().cu_device_get_count(&count), 0);
    return count;
  }
  static void open_device(int device) {
    cuda::CUcontext context = nullptr;
    EXPECT_EQ(api().cu_device_primary_ctx_retain(&context, device), 0);
    EXPECT_EQ(api().cu_ctx_push_current(context), 0);
  }
  static void close_device(int device) {
    cuda::CUcontext context = nullptr;
    EXPECT_EQ(api().cu_ctx_pop_current(&context), 0);
    EXPECT_EQ(api().cu_device_primary_ctx_release(device), 0);
  }
  /// Destroys the primary context; references to it remain.
  static void reset_device(int device) {
    const auto reset = reinterpret_cast<std::int32_t (*)(std::int32_t)>(
        find_symbol(find_library(kRuntime)->handle, "cuDevicePrimaryCtxReset_v2"));
    EXPECT_EQ(reset(device), 0);
  }
  /// Keeps the context until the process ends. A deferred release destroys its objects on a
  /// separate thread, possibly after the test, and a driver need not support events without their
  /// context.
  static void keep_device(int device) {
    cuda::CUcontext context = nullptr;
    EXPECT_EQ(api().cu_device_primary_ctx_retain(&context, device), 0);
  }
  static void forget_device(int device) {
    EXPECT_EQ(api().cu_device_primary_ctx_release(device), 0);
  }
  /// The calling thread's current context as a number.
  static std::intptr_t current() {
    cuda::CUcontext context = nullptr;
    EXPECT_EQ(api().cu_ctx_get_current(&context), 0);
    return reinterpret_cast<std::intptr_t>(context);
  }

  static void* make_stream() {
    cuda::CUstream stream = nullptr;
    EXPECT_EQ(inside()->cu_stream_create(&stream, cuda::kCuStreamNonBlocking), 0);
    return stream;
  }
  /// Creates a stream that synchronizes with the legacy default stream.
  static void* make_blocking_stream() {
    cuda::CUstream stream = nullptr;
    EXPECT_EQ(inside()->cu_stream_create(&stream, cuda::kCuStreamDefault), 0);
    return stream;
  }
  static void destroy_stream(void* stream) {
    EXPECT_EQ(inside()->cu_stream_synchronize(of(stream)), 0);
    EXPECT_EQ(inside()->cu_stream_destroy(of(stream)), 0);
  }
  static void synchronize(void* stream) {
    EXPECT_EQ(inside()->cu_stream_synchronize(of(stream)), 0);
  }
  static bool is_idle(void* stream) {
    const cuda::CUresult answer = inside()->cu_stream_query(of(stream));
    EXPECT_TRUE(answer == 0 || answer == cuda::kCudaErrorNotReady) << "no answer, but " << answer;
    return answer == 0;
  }

  static Event make_event() {
    Event event = nullptr;
    EXPECT_EQ(inside()->cu_event_create(&event, cuda::kCuEventDisableTiming), 0);
    return event;
  }
  static void record(Event event, void* stream) {
    EXPECT_EQ(inside()->cu_event_record(event, of(stream)), 0);
  }
  static void destroy_event(Event event) { EXPECT_EQ(inside()->cu_event_destroy(event), 0); }

  static std::uintptr_t allocate() {
    cuda::CUdeviceptr memory = 0;
    EXPECT_EQ(inside()->cu_mem_alloc(&memory, sizeof(std::int32_t)), 0);
    return memory;
  }
  static void free(std::uintptr_t memory) { EXPECT_EQ(inside()->cu_mem_free(memory), 0); }
  static void* allocate_pinned() {
    void* memory = nullptr;
    EXPECT_EQ(
        inside()->cu_mem_host_alloc(&memory, sizeof(std::int32_t), cuda::kCuMemhostallocDevicemap),
        0);
    return memory;
  }
  static void free_pinned(void* memory) { EXPECT_EQ(inside()->cu_mem_free_host(memory), 0); }
  /// The memory for wait_for_word.
  static void* allocate_word() { return allocate_pinned(); }
  static void free_word(void* word) { free_pinned(word); }

  static void fill(std::uintptr_t memory, std::uint8_t byte, void* stream) {
    EXPECT_EQ(inside()->cu_memset_d8_async(memory, byte, sizeof(std::int32_t), of(stream)), 0);
  }
  static void read(void* pinned, std::uintptr_t memory, void* stream) {
    EXPECT_EQ(inside()->cu_memcpy_dtoh_async(pinned, memory, sizeof(std::int32_t), of(stream)), 0);
  }
  static void wait_for_word(void* stream, void* word) {
    cuda::CUdeviceptr address = 0;
    EXPECT_EQ(inside()->cu_mem_host_get_device_pointer(&address, word, 0), 0);
    EXPECT_EQ(inside()->cu_stream_wait_value32(of(stream), address, 1, cuda::kCuStreamWaitValueGeq),
              0);
  }

 private:
  static cuda::CUstream of(void* stream) { return static_cast<cuda::CUstream>(stream); }
};

/// HIP, with the calling thread's device.
struct HipApi {
  static constexpr ArrowDeviceType kType = ARROW_DEVICE_ROCM;
  static constexpr ArrowDeviceType kHostType = ARROW_DEVICE_ROCM_HOST;
  static constexpr const char* kError = "hipErrorLaunchFailure";
  static constexpr const char* kExchangeMode = "hipThreadExchangeStreamCaptureMode";
  static constexpr const char* kQuery = "hipEventQuery";
  static constexpr const char* kRecord = "hipEventRecord";
  static constexpr const char* kSynchronize = "hipEventSynchronize";
  using Event = hip::hipEvent_t;
  static constexpr const VendorRuntime& kRuntime = hip::kRuntime;

  static const hip::Functions& api() { return **hip::functions(); }
  static ScopedDevice<HipApi, hip::Functions> inside() { return {}; }
  static void enter() {
    outside() = static_cast<int>(current());
    open_device(0);
  }
  static void leave() { open_device(outside()); }
  static Result<const hip::Functions*> load() { return hip::functions(); }

  static int devices() {
    std::int32_t count = 0;
    (void)api().hip_init(0);
    (void)api().hip_get_device_count(&count);
    return count;
  }
  static void open_device(int device) { EXPECT_EQ(api().hip_set_device(device), 0); }
  static void close_device(int /*device*/) { EXPECT_EQ(api().hip_set_device(0), 0); }
  static void keep_device(int /*device*/) {}  // HIP's contexts live until the process ends
  static void forget_device(int /*device*/) {}
  static std::intptr_t current() {
    std::int32_t device = -1;
    EXPECT_EQ(api().hip_get_device(&device), 0);
    return device;
  }

  static void* make_stream() {
    hip::hipStream_t stream = nullptr;
    EXPECT_EQ(inside()->hip_stream_create_with_flags(&stream, hip::kHipStreamNonBlocking), 0);
    return stream;
  }
  static void* make_blocking_stream() {
    hip::hipStream_t stream = nullptr;
    EXPECT_EQ(inside()->hip_stream_create_with_flags(&stream, hip::kHipStreamDefault), 0);
    return stream;
  }
  static void destroy_stream(void* stream) {
    EXPECT_EQ(inside()->hip_stream_synchronize(of(stream)), 0);
    EXPECT_EQ(inside()->hip_stream_destroy(of(stream)), 0);
  }
  static void synchronize(void* stream) {
    EXPECT_EQ(inside()->hip_stream_synchronize(of(stream)), 0);
  }
  static bool is_idle(void* stream) {
    const hip::hipError_t answer = inside()->hip_stream_query(of(stream));
    EXPECT_TRUE(answer == 0 || answer == hip::kHipErrorNotReady) << "no answer, but " << answer;
    return answer == 0;
  }

  static Event make_event() {
    Event event = nullptr;
    EXPECT_EQ(inside()->hip_event_create_with_flags(&event, hip::kHipEventDisableTiming), 0);
    return event;
  }
  static void record(Event event, void* stream) {
    EXPECT_EQ(inside()->hip_event_record(event, of(stream)), 0);
  }
  static void destroy_event(Event event) { EXPECT_EQ(inside()->hip_event_destroy(event), 0); }

  static std::uintptr_t allocate() {
    void* memory = nullptr;
    EXPECT_EQ(inside()->hip_malloc(&memory, sizeof(std::int32_t)), 0);
    return reinterpret_cast<std::uintptr_t>(memory);
  }
  static void free(std::uintptr_t memory) { EXPECT_EQ(inside()->hip_free(address(memory)), 0); }
  static void* allocate_pinned() {
    void* memory = nullptr;
    EXPECT_EQ(inside()->hip_host_malloc(&memory, sizeof(std::int32_t), hip::kHipHostMallocMapped),
              0);
    return memory;
  }
  static void free_pinned(void* memory) { EXPECT_EQ(inside()->hip_host_free(memory), 0); }
  /// HIP streams can wait only on such memory.
  static void* allocate_word() {
    void* word = nullptr;
    EXPECT_EQ(inside()->hip_ext_malloc_with_flags(&word, 8, hip::kHipMallocSignalMemory), 0);
    return word;
  }
  static void free_word(void* word) { EXPECT_EQ(inside()->hip_free(word), 0); }

  static void fill(std::uintptr_t memory, std::uint8_t byte, void* stream) {
    EXPECT_EQ(inside()->hip_memset_async(address(memory), byte, sizeof(std::int32_t), of(stream)),
              0);
  }
  static void read(void* pinned, std::uintptr_t memory, void* stream) {
    EXPECT_EQ(inside()->hip_memcpy_async(pinned, address(memory), sizeof(std::int32_t),
                                         hip::kHipMemcpyDeviceToHost, of(stream)),
              0);
  }
  static void wait_for_word(void* stream, void* word) {
    EXPECT_EQ(
        inside()->hip_stream_wait_value32(of(stream), word, 1, hip::kHipStreamWaitValueGte, ~0U),
        0);
  }

 private:
  static int& outside() {
    thread_local int device = 0;
    return device;
  }
  static hip::hipStream_t of(void* stream) { return static_cast<hip::hipStream_t>(stream); }
  static void* address(std::uintptr_t memory) { return reinterpret_cast<void*>(memory); }
};

}  // namespace fletching::testing

#endif  // FLETCHING_TESTS_GPU_API_HPP
