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

CUevent EventAt(void* sync_event) { return *static_cast<CUevent*>(sync_event); }

}  // namespace

// An event is asked and waited on without a context, and an enqueued wait takes the stream's.
Consumer CudaConsumer(std::string backend) {
  return {std::move(backend),
          [](void* event) {
            const CUresult status = Find<decltype(cuEventQuery)>("cuEventQuery")(EventAt(event));
            EXPECT_TRUE(status == CUDA_SUCCESS || status == CUDA_ERROR_NOT_READY) << status;
            return status == CUDA_SUCCESS;
          },
          [](void* event) {
            EXPECT_EQ(Find<decltype(cuEventSynchronize)>("cuEventSynchronize")(EventAt(event)),
                      CUDA_SUCCESS);
          },
          [](void* event, void* stream) {
            EXPECT_EQ(Find<decltype(cuStreamWaitEvent)>("cuStreamWaitEvent")(
                          static_cast<CUstream>(stream), EventAt(event), CU_EVENT_WAIT_DEFAULT),
                      CUDA_SUCCESS);
          }};
}
