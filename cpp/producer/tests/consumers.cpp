#include "consumers.hpp"

#include <gtest/gtest.h>

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include "ext_dev.h"

Consumer ExtDevConsumer() {
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

Consumer OpenClConsumer() {
  return {
      "opencl",
      [](void* event) {
        cl_int state = -1;
        EXPECT_EQ(clGetEventInfo(*static_cast<cl_event*>(event), CL_EVENT_COMMAND_EXECUTION_STATUS,
                                 sizeof state, &state, nullptr),
                  CL_SUCCESS);
        EXPECT_GE(state, CL_COMPLETE);
        return state == CL_COMPLETE;
      },
      [](void* event) { EXPECT_EQ(clWaitForEvents(1, static_cast<cl_event*>(event)), CL_SUCCESS); },
      [](void* event, void* queue) {
        EXPECT_EQ(clEnqueueBarrierWithWaitList(static_cast<cl_command_queue>(queue), 1,
                                               static_cast<cl_event*>(event), nullptr),
                  CL_SUCCESS);
      }};
}

#ifndef FLETCHING_HAS_VULKAN_HEADERS
// The backend is absent then, and nobody calls it.
Consumer VulkanConsumer() { return {"vulkan", nullptr, nullptr, nullptr}; }
#endif

std::vector<Consumer> Consumers() {
  return {CudaConsumer("cuda"), CudaConsumer("cuda_host"), CudaConsumer("cuda_managed"),
          RocmConsumer("rocm"), RocmConsumer("rocm_host"), OpenClConsumer(),
          VulkanConsumer(),     ExtDevConsumer()};
}
