#include "consumers.hpp"

#include <gtest/gtest.h>

#include "ext_dev.h"

Consumer ext_dev_consumer() {
  const auto event_of = [](void* sync_event) {
    return static_cast<const FletchingExtDevEvent*>(sync_event);
  };
  return {"ext_dev", [=](void* event) { return event_of(event)->query(event_of(event)) == 1; },
          [=](void* event) { event_of(event)->synchronize(event_of(event)); },
          [=](void* event, void* queue) {
            EXPECT_EQ(event_of(event)->wait_on(event_of(event),
                                               static_cast<FletchingExtDevQueue*>(queue)),
                      0);
          }};
}

std::vector<Consumer> consumers() {
  return {
#ifdef FLETCHING_HAS_CUDA_HEADERS
      cuda_consumer("cuda"), cuda_consumer("cuda_host"), cuda_consumer("cuda_managed"),
#endif
#ifdef FLETCHING_HAS_HIP_HEADERS
      rocm_consumer("rocm"), rocm_consumer("rocm_host"),
#endif
#ifdef FLETCHING_HAS_OPENCL_HEADERS
      opencl_consumer(),
#endif
#ifdef FLETCHING_HAS_VULKAN_HEADERS
      vulkan_consumer(),
#endif
      ext_dev_consumer()};
}
