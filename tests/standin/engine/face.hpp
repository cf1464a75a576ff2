// SPDX-License-Identifier: Apache-2.0
// What the engine asks of the vendor's face that it is built into.
#ifndef FLETCHING_STANDIN_FACE_HPP
#define FLETCHING_STANDIN_FACE_HPP

#include <cstddef>
#include <span>

namespace fletching::standin::face {

// A result of the vendor's, as its header numbers and names it.
struct Error {
  int number;
  const char* name;
  const char* text;
};

// "cuda" or "hip".
extern const char* const kName;
// What the vendor's functions begin with.
extern const char* const kPrefix;
// How many queues of the hardware streams share in the mode `driver`: what a variable of the
// vendor's says, and the number without it.
struct Queues {
  const char* variable;
  std::size_t without;
};
extern const Queues kQueues;
// The vendor's variable that is EAGER when kernels are loaded with their module; NULL when there is
// none.
extern const char* const kEager;
// Every result.
extern const std::span<const Error> kErrors;

}  // namespace fletching::standin::face

#endif  // FLETCHING_STANDIN_FACE_HPP
