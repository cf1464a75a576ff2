#include "waiting.hpp"

namespace fletching::gpu {
namespace {

void require_ready(Asserter& asserter, const DeviceArray& array, bool expected) {
  const Result<bool> ready = SyncEvent(array).ready();
  asserter.require_success("ready", ready);
  asserter.require(*ready == expected, expected ? "ready() is false, and the gate is open"
                                                : "ready() is true, and the gate is shut");
}

}  // namespace

void require_waits(Asserter& asserter, const Device& device, GatedProducer& gate, const char* name,
                   std::span<const DeviceArray> batches) {
  Queue careful(device);
  Queue careless(device);
  const ScopedGateOpener open_at_last(gate);
  for (const DeviceArray& batch : batches) {
    asserter.require(batch->sync_event != nullptr, "sync_event is NULL");
    require_ready(asserter, batch, false);
    asserter.require_success("wait_on", wait_on(batch, careful.handle()));
    careful.read(name, batch);
  }
  // While this read completes, the careful one would complete too if it did not wait.
  for (const DeviceArray& batch : batches) careless.read(name, batch);
  asserter.add("the read on a queue that has not waited", careless.verify(FLETCHING_PRODUCER_OLD));
  asserter.require(!careful.is_idle(),
                   "a read on a queue that waits is done, and the gate is shut");

  gate.open();
  asserter.add("the read on a queue that has waited", careful.verify(FLETCHING_PRODUCER_NEW));
  for (const DeviceArray& batch : batches) {
    asserter.require_success("synchronize", SyncEvent(batch).synchronize());
    require_ready(asserter, batch, true);
  }
}

void require_old_data_without_wait(Asserter& asserter, const Device& device, GatedProducer& gate,
                                   const char* name, std::span<const DeviceArray> batches) {
  Queue careless(device);
  const ScopedGateOpener open_at_last(gate);
  for (const DeviceArray& batch : batches) careless.read(name, batch);
  asserter.add("the read on a queue that has not waited", careless.verify(FLETCHING_PRODUCER_OLD));
  for (const DeviceArray& batch : batches) require_ready(asserter, batch, false);
  gate.open();
}

}  // namespace fletching::gpu
