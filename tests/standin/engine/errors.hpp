// SPDX-License-Identifier: Apache-2.0
// The vendor's results by number and by name.
#ifndef FLETCHING_STANDIN_ERRORS_HPP
#define FLETCHING_STANDIN_ERRORS_HPP

#include <cstring>
#include <string_view>

#include "face.hpp"

namespace fletching::standin {

// NULL if the vendor has no such result.
const face::Error* find_error(int number);
const face::Error* find_error(std::string_view name);

// The number of a result, copied as bytes: callers pass numbers that are not enumerators.
template <class Result>
int number_of(const Result& result) {
  static_assert(sizeof(Result) == sizeof(int));
  int number = 0;
  std::memcpy(&number, &result, sizeof(number));
  return number;
}

}  // namespace fletching::standin

#endif  // FLETCHING_STANDIN_ERRORS_HPP
