// SPDX-License-Identifier: Apache-2.0
//
// The consumer of docs/tutorial.md: imports a batch, makes its queue wait for it, and reads it.
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <iostream>
#include <vector>

#include "fletching/check_array.hpp"
#include "fletching/owner.hpp"
#include "fletching/release_after.hpp"
#include "fletching/sync_event.hpp"
#include "fletching/tables.hpp"

using namespace fletching;

// tutorial_export.cpp
extern "C" int export_batch(ArrowSchema* out_schema, ArrowDeviceArray* out) noexcept;

static cl_command_queue make_queue_for(cl_mem buffer) {
  cl_context context = nullptr;
  cl_device_id device = nullptr;
  clGetMemObjectInfo(buffer, CL_MEM_CONTEXT, sizeof context, &context, nullptr);
  clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof device, &device, nullptr);
  return clCreateCommandQueue(context, device, 0, nullptr);
}

int main() try {  // value() throws if there is an error
  Schema schema;
  DeviceArray batch;
  if (const int code = export_batch(schema.out(), batch.out()); code != 0) {
    std::cerr << "export_batch returned " << code << ": is there an OpenCL device?\n";
    return 1;
  }
  verify_array(*schema, *batch).value();
  std::cout << schema->n_children << " columns of " << batch.length() << " rows on "
            << device_name(batch->device_type) << '\n';

  const ArrowArray& price = *batch->array.children[1];
  auto* const buffer = static_cast<cl_mem>(const_cast<void*>(price.buffers[1]));
  cl_command_queue queue = make_queue_for(buffer);
  const Stream stream(ARROW_DEVICE_OPENCL, queue);
  SyncEvent(batch).wait_on(stream).value();  // the queue waits; this thread continues

  std::vector<std::int32_t> prices(static_cast<std::size_t>(price.length));
  const std::size_t bytes = prices.size() * sizeof(std::int32_t);
  clEnqueueReadBuffer(queue, buffer, CL_FALSE, 0, bytes, prices.data(), 0, nullptr, nullptr);

  const Status deferred = release_after(batch, stream);  // the release follows the read
  clFinish(queue);                                       // `prices` is written until here
  deferred.value();
  std::cout << "the last price is " << prices.back() << '\n';
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
