// SPDX-License-Identifier: Apache-2.0
// The vendor's results, by number and by name.
#ifndef FLETCHING_STANDIN_ERRORS_HPP
#define FLETCHING_STANDIN_ERRORS_HPP

#include <cstring>
#include <string_view>

#include "face.hpp"

namespace fletching::standin {

// NULL when the vendor has none.
const face::Error* find_error(int number);
const face::Error* find_error(std::string_view name);

// The number of a result, copied as bytes: callers ask about numbers that are not enumerator.
template <class Result>
int number_of(const Result& result) {
  static_assert(sizeof(Result) == sizeof(int));
  int number = 0;
  std::memcpy(&number, &result, sizeof(number));
  return number;
}

}  // namespace fletching::standin

#endif  // FLETCHING_STANDIN_ERRORS_HPP
