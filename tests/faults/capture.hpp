// SPDX-License-Identifier: Apache-2.0
//
// Library operations on a stream that is being captured into a graph.
#pragma once

#include <string>

#include "fletching/abi.h"
#include "scenario.hpp"

namespace fletching::faults {

// For CUDA and HIP backends; `handle` is an idle stream of device 0.
void capture(Run& run, const std::string& backend, ArrowDeviceType type, void* handle);

}  // namespace fletching::faults
