// SPDX-License-Identifier: Apache-2.0
// The vendor-specific constants that each stand-in provides to the engine.
#ifndef FLETCHING_STANDIN_FACE_HPP
#define FLETCHING_STANDIN_FACE_HPP

#include <cstddef>
#include <span>

namespace fletching::standin::face {

// A result, with its number and name in the vendor's header.
struct Error {
  int number;
  const char* name;
  const char* text;
};

// "cuda" or "hip".
extern const char* const kName;
// The prefix of the vendor's functions.
extern const char* const kPrefix;
// The number of hardware queues that streams share in `driver` mode: the vendor's environment
// variable, and the default if it is not set.
struct Queues {
  const char* variable;
  std::size_t without;
};
extern const Queues kQueues;
// The vendor's variable that is EAGER if kernels are loaded with their module, or NULL.
extern const char* const kEager;
// All results.
extern const std::span<const Error> kErrors;

}  // namespace fletching::standin::face

#endif  // FLETCHING_STANDIN_FACE_HPP
