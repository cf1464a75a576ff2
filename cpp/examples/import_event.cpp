// SPDX-License-Identifier: Apache-2.0
//
// Imports an array that is still being written to, and makes your stream wait for it. The host
// waits only when it needs the result.
#include <cuda.h>

#include <cstdint>
#include <iostream>
#include <vector>

#include "fletching/owner.hpp"
#include "fletching/release_after.hpp"
#include "fletching/sync_event.hpp"

using namespace fletching;

extern "C" int produce(CUstream stream, ArrowDeviceArray* out) noexcept;  // export_event.cpp

int main() try {
  CUcontext context = nullptr;
  CUstream theirs = nullptr, ours = nullptr;
  cuInit(0);
  cuDevicePrimaryCtxRetain(&context, 0);
  cuCtxSetCurrent(context);
  cuStreamCreate(&theirs, CU_STREAM_NON_BLOCKING);
  cuStreamCreate(&ours, CU_STREAM_NON_BLOCKING);

  DeviceArray array;
  if (produce(theirs, array.out()) != 0) return 1;
  std::vector<std::int8_t> values(static_cast<std::size_t>(array->array.length));
  const auto address = reinterpret_cast<CUdeviceptr>(array->array.buffers[1]);

  const Stream stream(ARROW_DEVICE_CUDA, ours);
  SyncEvent(array).wait_on(stream).value();  // throws if there is an error
  cuMemcpyDtoHAsync(values.data(), address, values.size(), ours);
  const Status deferred = release_after(array, stream);  // not before the copy is done
  cuStreamSynchronize(ours);                             // `values` is written until here
  deferred.value();
  std::cout << values.size() << " values, the last is " << int{values.back()} << '\n';
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
