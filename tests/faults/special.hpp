// SPDX-License-Identifier: Apache-2.0
//
// What can go wrong that is not one call.
#pragma once

#include <string>

namespace fletching::faults {

// 0 when it is handled. Prints a line of JSON. NAME: `absent` (the library or the device is not
// there, or the library lacks a function: the environment says which), `wrong-device`,
// `lost-device`.
int special(const std::string& name, const std::string& backend);

}  // namespace fletching::faults
