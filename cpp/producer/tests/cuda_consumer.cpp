// Uses NVIDIA's cuda.h and the library that the producer has loaded.
#include <cuda.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include "consumers.hpp"

namespace {

template <class Function>
Function* find(const char* symbol) {
  void* library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  EXPECT_NE(library, nullptr) << dlerror();
  return reinterpret_cast<Function*>(dlsym(library, symbol));
}

// Makes the primary context of the first device current during the object's lifetime.
class ScopedContext {
 public:
  ScopedContext() {
    CUcontext context = nullptr;
    EXPECT_EQ(find<decltype(cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain")(&context, 0),
              CUDA_SUCCESS);
    EXPECT_EQ(find<decltype(cuCtxPushCurrent)>("cuCtxPushCurrent_v2")(context), CUDA_SUCCESS);
  }
  ~ScopedContext() {
    CUcontext context = nullptr;
    EXPECT_EQ(find<decltype(cuCtxPopCurrent)>("cuCtxPopCurrent_v2")(&context), CUDA_SUCCESS);
    EXPECT_EQ(find<decltype(cuDevicePrimaryCtxRelease)>("cuDevicePrimaryCtxRelease_v2")(0),
              CUDA_SUCCESS);
  }
  ScopedContext(const ScopedContext&) = delete;
  ScopedContext& operator=(const ScopedContext&) = delete;
};

CUevent event_at(void* sync_event) { return *static_cast<CUevent*>(sync_event); }

}  // namespace

Consumer cuda_consumer(std::string backend) {
  return {std::move(backend),
          [](void* event) {
            const ScopedContext current;
            const CUresult status = find<decltype(cuEventQuery)>("cuEventQuery")(event_at(event));
            EXPECT_TRUE(status == CUDA_SUCCESS || status == CUDA_ERROR_NOT_READY) << status;
            return status == CUDA_SUCCESS;
          },
          [](void* event) {
            const ScopedContext current;
            EXPECT_EQ(find<decltype(cuEventSynchronize)>("cuEventSynchronize")(event_at(event)),
                      CUDA_SUCCESS);
          },
          [](void* event, void* stream) {
            const ScopedContext current;
            EXPECT_EQ(find<decltype(cuStreamWaitEvent)>("cuStreamWaitEvent")(
                          static_cast<CUstream>(stream), event_at(event), CU_EVENT_WAIT_DEFAULT),
                      CUDA_SUCCESS);
          }};
}
