// A HIP consumer built on AMD's hip_runtime_api.h. Uses the library that the producer has loaded.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <hip/hip_runtime_api.h>

#include "consumers.hpp"

namespace {

template <class Function>
Function* find(const char* symbol) {
  for (const char* name :
       {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"}) {
    void* library = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
    if (library != nullptr) return reinterpret_cast<Function*>(dlsym(library, symbol));
  }
  ADD_FAILURE() << "no libamdhip64 is loaded";
  return nullptr;
}

hipEvent_t event_at(void* sync_event) { return *static_cast<hipEvent_t*>(sync_event); }

}  // namespace

Consumer rocm_consumer(std::string backend) {
  return {std::move(backend),
          [](void* event) {
            const hipError_t status =
                find<decltype(hipEventQuery)>("hipEventQuery")(event_at(event));
            EXPECT_TRUE(status == hipSuccess || status == hipErrorNotReady) << status;
            return status == hipSuccess;
          },
          [](void* event) {
            EXPECT_EQ(find<decltype(hipEventSynchronize)>("hipEventSynchronize")(event_at(event)),
                      hipSuccess);
          },
          [](void* event, void* stream) {
            EXPECT_EQ(find<decltype(hipStreamWaitEvent)>("hipStreamWaitEvent")(
                          static_cast<hipStream_t>(stream), event_at(event), 0),
                      hipSuccess);
          }};
}
