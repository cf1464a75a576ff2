// SPDX-License-Identifier: Apache-2.0
//
// Exports an array that a CUDA stream is still writing to: sync_event completes when the stream is
// done. The consumer is in import_event.cpp.
#include <cuda.h>

#include <memory>
#include <utility>

#include "fletching/array_builder.hpp"
#include "fletching/export_event.hpp"
#include "fletching/release_after.hpp"

using namespace fletching;

struct Free {
  void operator()(void* memory) const { cuMemFree(reinterpret_cast<CUdeviceptr>(memory)); }
};
using DeviceMemory = std::unique_ptr<void, Free>;

static Result<DeviceArray> make_array(std::int64_t length) {
  CUdeviceptr address = 0;
  if (cuMemAlloc(&address, length) != CUDA_SUCCESS) return Error(ENOMEM, "cuMemAlloc failed");
  DeviceMemory memory(reinterpret_cast<void*>(address));
  auto builder = build_array({.buffers = 2}, std::move(memory));
  if (!builder) return std::move(builder).error();
  builder->set(builder->root(), {.length = length}, {nullptr, builder->object().get()});
  return builder->finish(ARROW_DEVICE_CUDA, /*device_id=*/0);
}

extern "C" int produce(CUstream stream, ArrowDeviceArray* out) noexcept {
  Result<DeviceArray> array = make_array(1000);
  if (!array) return array.error().code();
  const ArrowArray& values = (*array)->array;
  cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(values.buffers[1]), 7, values.length, stream);

  const Stream ours(ARROW_DEVICE_CUDA, stream);
  const Status exported = export_with_event(*array, ours);
  if (!exported) {
    (void)release_after(*array, ours);  // not before the stream has written
    return exported.error().code();
  }
  array->move_to(out);
  return 0;
}
