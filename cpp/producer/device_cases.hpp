// SPDX-License-Identifier: Apache-2.0
#ifndef FLETCHING_PRODUCER_DEVICE_CASES_HPP
#define FLETCHING_PRODUCER_DEVICE_CASES_HPP

#include <array>

namespace fletching::producer {

/// The cases for device tests: one per layout. tests/roundtrip/devices.py expects their cells.
inline constexpr std::array kDeviceCases{"int32",  "utf8",       "utf8_view",   "list",
                                         "struct", "dictionary", "dense_union", "record_batch"};

}  // namespace fletching::producer

#endif  // FLETCHING_PRODUCER_DEVICE_CASES_HPP
