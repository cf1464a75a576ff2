// SPDX-License-Identifier: Apache-2.0
//
// Failures that are not a single failed call.
#pragma once

#include <string>

namespace fletching::faults {

// Returns 0 if the failure is handled. Prints a line of JSON. NAME: `absent` (the environment
// removes the library, the device or a function of the library), `wrong-device`, `lost-device`.
int special(const std::string& name, const std::string& backend);

}  // namespace fletching::faults
