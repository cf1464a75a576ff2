// Uses Khronos' cl.h.
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <gtest/gtest.h>

#include "consumers.hpp"

Consumer opencl_consumer() {
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
