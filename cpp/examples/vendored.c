// SPDX-License-Identifier: Apache-2.0
//
// A C project that vendors fletching_core.{c,h} and nanoarrow. It exports an array that an OpenCL
// queue is still writing to, with an event, and the consumer waits for the event.
//
//   cc vendored.c fletching_core.c nanoarrow.c -lOpenCL -pthread -ldl
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>

#include "fletching_core.h"
#include "nanoarrow/nanoarrow.h"

// The producer: the queue copies three values to the device after its current work.
static int export_values(cl_context context, cl_command_queue queue, const int32_t* values,
                         struct ArrowDeviceArray* out, struct FletchingMessage* message) {
  static cl_mem memory;  // device memory, which lives as long as the program
  cl_int error = CL_SUCCESS;
  memory = clCreateBuffer(context, CL_MEM_READ_WRITE, 3 * sizeof *values, NULL, &error);
  if (error != CL_SUCCESS) return ENOMEM;
  clEnqueueWriteBuffer(queue, memory, CL_FALSE, 0, 3 * sizeof *values, values, 0, NULL, NULL);
  FletchingDeviceArrayInit(out);
  out->device_type = ARROW_DEVICE_OPENCL;
  if (ArrowArrayInitFromType(&out->array, NANOARROW_TYPE_INT32) != NANOARROW_OK) return ENOMEM;
  out->array.length = 3;
  out->array.buffers[1] = (const void*)memory;
  return FletchingDeviceArrayExportWithEvent(out, FletchingStreamOfArray(queue),
                                             FLETCHING_CAPTURE_REFUSE, message);
}

int main(void) {
  const int32_t values[] = {7, 8, 9};
  int32_t last = 0;
  cl_platform_id platform;
  cl_device_id device;
  struct ArrowDeviceArray array;
  struct FletchingMessage message = {""};
  clGetPlatformIDs(1, &platform, NULL);
  if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) != CL_SUCCESS) return 1;
  cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
  cl_command_queue queue = clCreateCommandQueue(context, device, 0, NULL);
  if (export_values(context, queue, values, &array, &message) != 0 ||
      FletchingDeviceArraySynchronize(&array, &message) != 0) {
    fprintf(stderr, "vendored: %s\n", message.text);
    return 1;
  }
  const cl_mem memory = (cl_mem)(uintptr_t)array.array.buffers[1];
  clEnqueueReadBuffer(queue, memory, CL_TRUE, 2 * sizeof last, sizeof last, &last, 0, NULL, NULL);
  printf("%d values, the last is %d\n", (int)array.array.length, (int)last);
  FletchingDeviceArrayRelease(&array);  // and the event with it
  clReleaseMemObject(memory);
  clReleaseCommandQueue(queue);
  clReleaseContext(context);
  return 0;
}
