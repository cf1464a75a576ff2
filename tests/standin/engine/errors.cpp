// SPDX-License-Identifier: Apache-2.0
#include "errors.hpp"

#include <algorithm>

namespace fletching::standin {
namespace {

template <class Matches>
const face::Error* find(Matches matches) {
  const auto found = std::ranges::find_if(face::kErrors, matches);
  return found == face::kErrors.end() ? nullptr : &*found;
}

}  // namespace

const face::Error* find_error(int number) {
  return find([=](const face::Error& error) { return error.number == number; });
}

const face::Error* find_error(std::string_view name) {
  return find([=](const face::Error& error) { return error.name == name; });
}

}  // namespace fletching::standin
