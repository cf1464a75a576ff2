// Against NVIDIA's cuda.h. The library is the one that the producer has loaded.
#include <cuda.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include "consumers.hpp"

namespace {

template <class Function>
Function* Find(const char* symbol) {
  void* library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  EXPECT_NE(library, nullptr) << dlerror();
  return reinterpret_cast<Function*>(dlsym(library, symbol));
}

// The primary context of the first device, current as long as the object lives.
class Current {
 public:
  Current() {
    CUcontext context = nullptr;
    EXPECT_EQ(Find<decltype(cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain")(&context, 0),
              CUDA_SUCCESS);
    EXPECT_EQ(Find<decltype(cuCtxPushCurrent)>("cuCtxPushCurrent_v2")(context), CUDA_SUCCESS);
  }
  ~Current() {
    CUcontext context = nullptr;
    EXPECT_EQ(Find<decltype(cuCtxPopCurrent)>("cuCtxPopCurrent_v2")(&context), CUDA_SUCCESS);
    EXPECT_EQ(Find<decltype(cuDevicePrimaryCtxRelease)>("cuDevicePrimaryCtxRelease_v2")(0),
              CUDA_SUCCESS);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
};

CUevent EventAt(void* sync_event) { return *static_cast<CUevent*>(sync_event); }

}  // namespace

Consumer CudaConsumer(std::string backend) {
  return {std::move(backend),
          [](void* event) {
            const Current current;
            const CUresult status = Find<decltype(cuEventQuery)>("cuEventQuery")(EventAt(event));
            EXPECT_TRUE(status == CUDA_SUCCESS || status == CUDA_ERROR_NOT_READY) << status;
            return status == CUDA_SUCCESS;
          },
          [](void* event) {
            const Current current;
            EXPECT_EQ(Find<decltype(cuEventSynchronize)>("cuEventSynchronize")(EventAt(event)),
                      CUDA_SUCCESS);
          },
          [](void* event, void* stream) {
            const Current current;
            EXPECT_EQ(Find<decltype(cuStreamWaitEvent)>("cuStreamWaitEvent")(
                          static_cast<CUstream>(stream), EventAt(event), CU_EVENT_WAIT_DEFAULT),
                      CUDA_SUCCESS);
          }};
}
