// SPDX-License-Identifier: Apache-2.0
// The stand-in's mode: strict, or like a driver (README.md). Read once per process.
#ifndef FLETCHING_STANDIN_MODE_HPP
#define FLETCHING_STANDIN_MODE_HPP

#include <cstddef>
#include <string_view>

namespace fletching::standin {

// FLETCHING_STANDIN_MODE=driver: lenient where real drivers are, and blocking where they may block.
bool as_driver();

// Number of hardware queues that a context's streams share, from the vendor's own variable
// (face.hpp); 0 if no queue is shared.
std::size_t hardware_queues();

// Whether a kernel is loaded at its first launch instead of with its module.
bool loads_lazily();

// Ends the process: with an ignored unknown setting, a test could pass without testing anything.
[[noreturn]] void refuse(const char* variable, std::string_view text, const char* wanted);

}  // namespace fletching::standin

#endif  // FLETCHING_STANDIN_MODE_HPP
