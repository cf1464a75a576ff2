// SPDX-License-Identifier: Apache-2.0
//
// DLPack and the CUDA Array Interface in both directions.
#pragma once

#include <functional>
#include <string>

#include "fletching/sync_event.hpp"
#include "scenario.hpp"

namespace fletching::faults {

// The consumer of an exchange. The streams are NULL if the runtime has no waiting streams.
struct Consumer {
  void* stream = nullptr;
  void* other_stream = nullptr;
  std::function<Status(const SyncEvent&)> synchronize;
};

// Exchanges arrays of the reference producer as versioned and legacy tensors, and back.
void exchange_dlpack(Run& run, const std::string& backend, const Consumer& consumer);

// Exchanges arrays of the reference producer through __cuda_array_interface__, and back. Does
// nothing on devices without the interface, that is, other than CUDA.
void exchange_cuda_arrays(Run& run, const std::string& backend, const Consumer& consumer);

}  // namespace fletching::faults
