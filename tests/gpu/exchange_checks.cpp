// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdint>
#include <utility>

#include "arrays.hpp"
#include "checks.hpp"
#include "fletching/cuda_array.hpp"
#include "fletching/dlpack.hpp"
#include "fletching/dlpack_stream.hpp"

namespace fletching::gpu {
namespace {

ConsumerStream ordered_on(const Stream& stream) {
  return {Ordering::kStream, {ARROW_DEVICE_CUDA, stream.get()}};
}

/// Requires that the array has an event for the work behind the gate.
void require_pending(Asserter& asserter, Gated& gated, ImportedTensor& imported) {
  const SyncEvent event(imported.array);
  asserter.require(!event.is_null(), "sync_event is NULL");
  settle();
  const Result<bool> ready = event.ready();
  asserter.require_success("ready", ready);
  asserter.require(!*ready, "ready() is true, and the gate is shut");
  asserter.require(imported.array->array.buffers[1] == gated.memory().data(),
                   "buffer: expected the memory of the tensor");
  gated.require_old_data(asserter);
  asserter.require_success("wait_on", event.wait_on({ARROW_DEVICE_CUDA, gated.consumer().get()}));
  gated.require_waits(asserter, gated.consumer());
  asserter.require_success("synchronize", event.synchronize());
  imported.array.release();
  asserter.require(gated.releases().wait_for(1), "the owner was not let go");
}

}  // namespace

void check_to_dlpack(Asserter& asserter) {
  Gated gated;
  const Schema schema = int32_schema();
  DeviceArray array = gated.array_with_event(asserter);
  gated.require_old_data(asserter);
  const Result<DlpackTensor> tensor = to_dlpack(*schema, array, ordered_on(gated.consumer()));
  asserter.require_success("to_dlpack", tensor);
  asserter.require((*tensor)->dl_tensor.data == gated.memory().data(),
                   "the tensor's data is not the buffer");
  gated.require_waits(asserter, gated.consumer());
}

void check_from_dlpack(Asserter& asserter) {
  Gated gated;
  const Schema schema = int32_schema();
  DeviceArray array = gated.array();
  Result<DlpackTensor> tensor = to_dlpack(*schema, array);
  asserter.require_success("to_dlpack", tensor);
  Result<ImportedTensor> imported = from_dlpack(*std::move(tensor), ordered_on(gated.producer()));
  asserter.require_success("from_dlpack", imported);
  require_pending(asserter, gated, *imported);
}

void check_to_cuda_array(Asserter& asserter) {
  Gated gated;
  const Schema schema = int32_schema();
  DeviceArray array = gated.array_with_event(asserter);
  {
    const Result<CudaArray> described = to_cuda_array(*schema, array);
    asserter.require_success("to_cuda_array", described);
    const cuda_array_interface::Interface& says = described->array_interface();
    asserter.require(says.pointer == gated.memory().address(), "the pointer is not the buffer");
    asserter.require(says.stream.has_value(), "no stream is named, and there is an event");
    gated.require_old_data(asserter);
    gated.require_waits(asserter, reinterpret_cast<void*>(says.stream.value_or(0)));
  }
  asserter.require(gated.releases().wait_for(1), "the array was not released");
}

void check_from_cuda_array(Asserter& asserter) {
  Gated gated;
  constexpr std::array<std::int64_t, 1> kShape{kBytes / sizeof(std::int32_t)};
  cuda_array_interface::Interface says;
  says.shape = kShape;
  says.typestr = "<i4";
  says.pointer = gated.memory().address();
  says.stream = static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(gated.producer().get()));
  Result<ImportedTensor> imported = from_cuda_array(says, Counted(&gated.releases()));
  asserter.require_success("from_cuda_array", imported);
  asserter.require_equal("the device type", imported->array->device_type, ARROW_DEVICE_CUDA);
  require_pending(asserter, gated, *imported);
}

}  // namespace fletching::gpu
