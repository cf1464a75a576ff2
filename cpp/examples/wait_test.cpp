// SPDX-License-Identifier: Apache-2.0
//
// Tests that a library waits for the event of an array. The producer's work stands behind a gate,
// here a user event of OpenCL, so that no clock decides the result.
#define CL_TARGET_OPENCL_VERSION 200
#include <CL/cl.h>

#include <cstdint>
#include <iostream>

#include "fletching/array_builder.hpp"
#include "fletching/export_event.hpp"
#include "fletching/sync_event.hpp"

using namespace fletching;

// The library under test: starts to read the first value on `queue`, and does not block.
static Status start_reading(const DeviceArray& array, cl_command_queue queue, std::int32_t* out,
                            bool wait) {
  if (wait) {  // the line that the test is about
    const Status waiting = SyncEvent(array).wait_on({ARROW_DEVICE_OPENCL, queue});
    if (!waiting) return waiting;
  }
  auto* const buffer = static_cast<cl_mem>(const_cast<void*>(array->array.buffers[1]));
  clEnqueueReadBuffer(queue, buffer, CL_FALSE, 0, sizeof *out, out, 0, nullptr, nullptr);
  clFlush(queue);
  return {};
}

int main() try {  // value() throws if there is an error
  cl_platform_id platform = nullptr;
  cl_device_id device = nullptr;
  clGetPlatformIDs(1, &platform, nullptr);
  clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr);
  cl_context context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, nullptr);
  cl_command_queue theirs = clCreateCommandQueueWithProperties(context, device, nullptr, nullptr);
  cl_command_queue ours = clCreateCommandQueueWithProperties(context, device, nullptr, nullptr);

  const std::int32_t before = 1, after = 7;
  std::int32_t content = before;
  cl_mem memory = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof content, &content, nullptr);
  cl_event gate = clCreateUserEvent(context, nullptr);
  clEnqueueFillBuffer(theirs, memory, &after, sizeof after, 0, sizeof after, 1, &gate, nullptr);
  clFlush(theirs);
  DeviceArray array =
      make_device_array({.length = 1}, {nullptr, memory}, nullptr, ARROW_DEVICE_OPENCL, 0).value();
  export_with_event(array, {ARROW_DEVICE_OPENCL, theirs}).value();

  // The negative control: without the wait the library must see the old value.
  std::int32_t read = 0;
  start_reading(array, ours, &read, /*wait=*/false).value();
  clFinish(ours);
  std::cout << "without a wait: " << read << '\n';

  // With the wait the call returns while the gate is shut, and the read comes after the fill.
  start_reading(array, ours, &read, /*wait=*/true).value();
  const Result<bool> completed = SyncEvent(array).ready();
  clSetUserEventStatus(gate, CL_COMPLETE);
  clFinish(ours);  // `read` is written until here
  std::cout << "gate shut, event completed: " << completed.value() << '\n'
            << "after a wait: " << read << '\n';
  array.release();  // before the memory, whose owner is this function
  clReleaseMemObject(memory);
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
