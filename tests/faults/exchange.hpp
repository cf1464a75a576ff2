// SPDX-License-Identifier: Apache-2.0
//
// DLPack and the CUDA Array Interface, both ways.
#pragma once

#include <functional>
#include <string>

#include "fletching/sync_event.hpp"
#include "scenario.hpp"

namespace fletching::faults {

// Who takes what is exchanged. The streams are NULL where the runtime has none that wait.
struct Consumer {
  void* stream = nullptr;
  void* other_stream = nullptr;
  std::function<Status(const SyncEvent&)> synchronize;
};

// Arrays of the reference producer as tensors, and the tensors as arrays: versioned and legacy.
void exchange_dlpack(Run& run, const std::string& backend, const Consumer& consumer);

// Arrays of the reference producer as what __cuda_array_interface__ says, and that as arrays. Does
// nothing where the interface does not exist: on devices other than CUDA's.
void exchange_cuda_arrays(Run& run, const std::string& backend, const Consumer& consumer);

}  // namespace fletching::faults
