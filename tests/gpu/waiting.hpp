// Checks whether a consumer waits, and the data that it sees if not (gate.h).
#ifndef FLETCHING_TESTS_GPU_WAITING_HPP
#define FLETCHING_TESTS_GPU_WAITING_HPP

#include <span>

#include "asserter.hpp"
#include "device.hpp"
#include "fletching/owner.hpp"
#include "gated.hpp"

namespace fletching::gpu {

/// With the gate shut, requires that no event has completed, and that a wait on a queue returns
/// immediately and blocks the reads on it, while a read on another queue completes. Then opens the
/// gate and requires the new data, the end of a host wait, and that the events have completed.
void require_waits(Asserter& asserter, const Device& device, GatedProducer& gate, const char* name,
                   std::span<const DeviceArray> batches);

/// Negative control: with the gate shut, a queue that does not wait reads the old data immediately.
/// Then opens the gate.
void require_old_data_without_wait(Asserter& asserter, const Device& device, GatedProducer& gate,
                                   const char* name, std::span<const DeviceArray> batches);

}  // namespace fletching::gpu

#endif  // FLETCHING_TESTS_GPU_WAITING_HPP
