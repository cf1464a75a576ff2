// Whether a consumer that uses the library waits, and which data it sees if not (gate.h).
#ifndef FLETCHING_TESTS_GPU_WAITING_HPP
#define FLETCHING_TESTS_GPU_WAITING_HPP

#include <span>

#include "asserter.hpp"
#include "device.hpp"
#include "fletching/owner.hpp"
#include "gated.hpp"

namespace fletching::gpu {

/// With the gate shut no event has happened, and a wait on a queue returns at once and holds back
/// what is read there, while a read on another queue completes. Opens the gate: then the new
/// data are read, the host's wait returns, and the events have happened.
void require_waits(Asserter& asserter, const Device& device, GatedProducer& gate, const char* name,
                   std::span<const DeviceArray> batches);

/// The negative control: with the gate shut a queue that has not waited reads the old data, at
/// once. Opens the gate then.
void require_old_data_without_wait(Asserter& asserter, const Device& device, GatedProducer& gate,
                                   const char* name, std::span<const DeviceArray> batches);

}  // namespace fletching::gpu

#endif  // FLETCHING_TESTS_GPU_WAITING_HPP
