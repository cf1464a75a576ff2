// SPDX-License-Identifier: Apache-2.0
// What the engine asks of the vendor's face that it is built into.
#ifndef FLETCHING_STANDIN_FACE_HPP
#define FLETCHING_STANDIN_FACE_HPP

#include <optional>
#include <string_view>

namespace fletching::standin::face {

// "cuda" or "hip".
extern const char* const kName;
// What the vendor's functions begin with.
extern const char* const kPrefix;
// The number of an error by its name.
std::optional<int> error_number(std::string_view name);

}  // namespace fletching::standin::face

#endif  // FLETCHING_STANDIN_FACE_HPP
