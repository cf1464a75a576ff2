// SPDX-License-Identifier: Apache-2.0
// How the stand-in behaves: strict, or as a driver does (README.md). Asked once for each process.
#ifndef FLETCHING_STANDIN_MODE_HPP
#define FLETCHING_STANDIN_MODE_HPP

#include <cstddef>
#include <string_view>

namespace fletching::standin {

// FLETCHING_STANDIN_MODE=driver: forgiving where real drivers are, and waiting where they may.
bool as_driver();

// How many queues of the hardware the streams of a context share; 0 when each has its own. As many
// as the vendor's own variable says (face.hpp).
std::size_t hardware_queues();

// Whether a kernel is loaded when it is first launched, and not with its module.
bool loads_lazily();

// A stand-in that ignored an unknown setting would make a test pass for nothing.
[[noreturn]] void refuse(const char* variable, std::string_view text, const char* wanted);

}  // namespace fletching::standin

#endif  // FLETCHING_STANDIN_MODE_HPP
